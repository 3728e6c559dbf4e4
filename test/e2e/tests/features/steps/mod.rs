//! Steps of the features, by topic.

mod api_service;
mod catalog;
mod certificate;
mod cluster_catalog;
mod columns;
mod content_api;
mod deadline;
mod extension;
mod handover;
mod helm;
mod namespace;
mod operator_hold;
mod permissions;
mod resource;
mod revision;
mod rollout;
mod status;
mod support;

pub(crate) use certificate::Certificate;
use serde_json::Value;

/// Returns the condition of `type_` in a status.
fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == type_)
}

/// Checks a condition of a status; the error shows the actual condition.
fn expect_condition(
    status: &Value,
    type_: &str,
    state: &str,
    reason: Option<&str>,
    message: Option<&str>,
) -> anyhow::Result<()> {
    let Some(found) = condition(status, type_) else {
        anyhow::bail!("there is no condition {type_}; the status is {status}");
    };
    let matches = found["status"] == state
        && reason.is_none_or(|reason| found["reason"] == reason)
        && message.is_none_or(|message| found["message"].as_str().unwrap_or_default().contains(message));
    anyhow::ensure!(matches, "{type_} is {found}");
    Ok(())
}
