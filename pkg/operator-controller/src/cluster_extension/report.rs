//! Writes the status, once per reconcile and only when it says something new.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterExtensionStatus, keys};
use olm_status::cluster_extension::{self, Outcome};
use serde_json::{Map, Value, json};

use super::Context;
use super::call::{CallError, call};

/// Tells `outcome` in the status of `extension`, as read at the start of this reconcile.
pub(crate) async fn write(
    context: &Context,
    extension: &ClusterExtension,
    outcome: &Outcome,
    now: &Time,
) -> Result<(), CallError> {
    let old = extension.status.clone().unwrap_or_default();
    let generation = extension.metadata.generation.unwrap_or_default();
    let new = cluster_extension::extension(&old, outcome, generation, now);
    if cluster_extension::same(&old, &new) {
        return Ok(());
    }
    let name = extension.name_any();
    let api: Api<ClusterExtension> = Api::all(context.shared.client.clone());
    let patch = Patch::Merge(json!({ "status": whole(&new) }));
    let params = PatchParams {
        field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
        ..Default::default()
    };
    let what = format!("writing the status of ClusterExtension \"{name}\"");
    match call(what, api.patch_status(&name, &params, &patch)).await {
        Err(error) if error.is_not_found() => return Ok(()),
        written => context.stores.wrote(&written?),
    }
    for news in news(&old, &new) {
        let object = extension.object_ref(&());
        if news.warning {
            context
                .events
                .warning(object, news.reason, "Reconcile", &news.note);
        } else {
            context
                .events
                .normal(object, news.reason, "Reconcile", &news.note);
        }
    }
    Ok(())
}

/// What is worth an event.
#[derive(Debug, PartialEq, Eq)]
struct News {
    warning: bool,
    reason: &'static str,
    note: String,
}

/// What happened between two statuses.
fn news(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> Vec<News> {
    let mut all = Vec::new();
    let bundle = |status: &ClusterExtensionStatus| status.install.as_ref().map(|i| i.bundle.clone());
    match (bundle(old), bundle(new)) {
        (None, Some(now)) => {
            let note = format!("bundle {} with version {} is installed", now.name, now.version);
            all.push(News {
                warning: false,
                reason: "Installed",
                note,
            });
        }
        (Some(before), Some(now)) if before != now => {
            let note = format!("went from version {} to version {}", before.version, now.version);
            all.push(News {
                warning: false,
                reason: "Upgraded",
                note,
            });
        }
        _ => {}
    }
    let progressing = |status: &ClusterExtensionStatus| {
        let mut all = status.conditions.iter().flatten();
        all.find(|c| c.type_ == "Progressing")
            .map(|c| (c.reason.clone(), c.message.clone()))
    };
    if let Some((reason, message)) = progressing(new)
        && progressing(old).as_ref() != Some(&(reason.clone(), message.clone()))
    {
        let (warning, reason) = match reason.as_str() {
            "RollingOut" => (false, "RollingOut"),
            "Retrying" => (true, "Retrying"),
            "Blocked" => (true, "Blocked"),
            "InvalidConfiguration" => (true, "InvalidConfiguration"),
            "ProgressDeadlineExceeded" => (true, "ProgressDeadlineExceeded"),
            // Told above by what is installed.
            _ => return all,
        };
        all.push(News {
            warning,
            reason,
            note: message,
        });
    }
    all
}

/// The status with an explicit null for what is absent: a merge patch keeps what it does not name.
fn whole(status: &ClusterExtensionStatus) -> Value {
    let mut map = Map::new();
    for key in ["conditions", "install", "activeRevisions"] {
        map.insert(key.to_owned(), Value::Null);
    }
    if let Ok(Value::Object(known)) = serde_json::to_value(status) {
        map.extend(known);
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(version: Option<&str>, reason: &str, message: &str) -> ClusterExtensionStatus {
        let install =
            version.map(|version| json!({"bundle": {"name": format!("a.v{version}"), "version": version}}));
        serde_json::from_value(json!({
            "install": install,
            "conditions": [{"type": "Progressing", "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }))
        .unwrap()
    }

    #[test]
    fn what_happened_is_told_once() {
        let rolling = status(None, "RollingOut", "Revision 1.0.0 is rolling out.");
        let installed = status(Some("1.0.0"), "Succeeded", "Revision 1.0.0 has rolled out.");
        let upgraded = status(Some("1.0.1"), "Succeeded", "Revision 1.0.1 has rolled out.");
        let blocked = status(Some("1.0.1"), "Blocked", "no");
        let reasons = |old: &ClusterExtensionStatus, new: &ClusterExtensionStatus| {
            news(old, new)
                .into_iter()
                .map(|n| (n.warning, n.reason))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            reasons(&ClusterExtensionStatus::default(), &rolling),
            [(false, "RollingOut")]
        );
        assert_eq!(reasons(&rolling, &installed), [(false, "Installed")]);
        assert_eq!(reasons(&installed, &upgraded), [(false, "Upgraded")]);
        assert_eq!(reasons(&upgraded, &blocked), [(true, "Blocked")]);
        assert_eq!(reasons(&blocked, &blocked), []);
    }

    #[test]
    fn what_is_absent_is_taken_away() {
        let whole = whole(&ClusterExtensionStatus::default());
        assert_eq!(
            whole,
            json!({"conditions": null, "install": null, "activeRevisions": null})
        );
    }
}
