//! Signs of a trouble that a user sees: conditions and logs.

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::kinds::Kind;
use crate::{Program, World, kinds};

/// Maximum wait for a sign of trouble.
const LIMIT: Duration = Duration::from_secs(45);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum length of a message in the report, in characters.
const LENGTH: usize = 300;

/// A program of the world.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Catalogd,
    Controller,
}

impl Which {
    /// Returns the program in the world.
    pub(super) fn of(self, world: &mut World) -> &mut Program {
        match self {
            Self::Catalogd => &mut world.catalogd,
            Self::Controller => &mut world.controller,
        }
    }
}

/// Returns the first condition of an object that reports trouble, as `TYPE REASON: MESSAGE`.
pub(super) async fn condition(client: &Client, kind: Kind, name: &str) -> Result<Option<String>> {
    let Some(object) = kind.all(client).get_opt(name).await? else {
        return Ok(None);
    };
    let conditions = object.data["status"]["conditions"].as_array();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let trouble = conditions.into_iter().flatten().find(|condition| {
        let (kind, reason) = (text(condition, "type"), text(condition, "reason"));
        let unready = kind == "Ready" && condition["status"] == "False" && reason == "ProbeFailure";
        unready || (kind == "Progressing" && ["Retrying", "Blocked"].contains(&reason.as_str()))
    });
    Ok(trouble.map(|condition| {
        let message: String = text(condition, "message").chars().take(LENGTH).collect();
        format!(
            "{} {}: {message}",
            text(condition, "type"),
            text(condition, "reason")
        )
    }))
}

/// Waits until a catalog is served. Without it, the extension would report a different trouble.
pub(super) async fn wait_for_catalog(client: &Client, name: &str) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        let catalog = kinds::CATALOG.all(client).get(name).await?;
        let conditions = catalog.data["status"]["conditions"].as_array();
        let serving = |condition: &Value| condition["type"] == "Serving" && condition["status"] == "True";
        if conditions.into_iter().flatten().any(serving) {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    anyhow::bail!("the catalog {name} is not served")
}

/// Waits until a condition of the object reports trouble or the program ends, for [`LIMIT`] at most. Returns what happened.
pub(super) async fn trouble(world: &mut World, which: Which, kind: Kind, name: &str) -> Result<String> {
    let client = world.client();
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if let Some(told) = condition(&client, kind, name).await? {
            return Ok(told);
        }
        if let Err(ended) = which.of(world).check() {
            let text = ended.to_string();
            let last = text
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .unwrap_or_default();
            let last: String = last.chars().take(LENGTH).collect();
            let head = text.lines().next().unwrap_or_default();
            return Ok(format!("{head}; its log ends with {last}"));
        }
        sleep(PAUSE).await;
    }
    Ok("nothing".to_owned())
}
