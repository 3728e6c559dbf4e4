//! Trace of a schedule with violations: files with the requests, the objects and the controller's log.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use kube::api::ListParams;

use crate::{Scenario, World, kinds};

/// Maximum size of the controller's log in bytes. The end of the log is kept.
const LOG_LIMIT: usize = 4 << 20;

/// Writes the requests, the objects and the end of the controller's log to files in `dir`. Their names start with the seed.
pub(super) async fn write(dir: &Path, seed: u64, world: &World, scenario: &Scenario) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let write = |name: &str, content: &[u8]| {
        let path = dir.join(format!("{seed}-{name}"));
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut requests = world.proxy.injector().take_log().join("\n");
    requests.push('\n');
    write("requests.log", requests.as_bytes())?;
    let log = fs::read(world.controller.log()).unwrap_or_default();
    write(
        "controller.log",
        log.get(log.len().saturating_sub(LOG_LIMIT)..).unwrap_or_default(),
    )?;
    let mut objects = String::new();
    let client = world.client();
    let owned = format!("olm.operatorframework.io/owner-name={}", scenario.extension());
    if let Some(extension) = kinds::EXTENSION
        .all(&client)
        .get_opt(&scenario.extension())
        .await?
    {
        let _ = writeln!(objects, "{}", serde_json::to_string(&extension)?);
    }
    if let Some(catalog) = kinds::CATALOG.all(&client).get_opt(&scenario.catalog()).await? {
        let _ = writeln!(objects, "{}", serde_json::to_string(&catalog)?);
    }
    for kind in kinds::ALL {
        let Ok(list) = kind
            .all(&client)
            .list(&ListParams::default().labels(&owned))
            .await
        else {
            continue;
        };
        for object in list {
            let _ = writeln!(objects, "{}", serde_json::to_string(&object)?);
        }
    }
    write("objects.jsonl", objects.as_bytes())
}
