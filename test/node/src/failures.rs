//! Upgrades whose pods cannot run, and the recovery from them.

use std::time::Duration;

use anyhow::{Result, ensure};
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::{SAMPLE, condition, get, is_ready, items, pin};
use crate::content::Change;

const LIMIT: Duration = Duration::from_mins(1);

/// A version whose pods cannot run.
pub(crate) struct Failure {
    pub(crate) title: &'static str,
    pub(crate) version: &'static str,
    pub(crate) change: Change,
    /// The next version, whose pods run.
    pub(crate) fixed: &'static str,
    reasons: &'static [&'static str],
}

/// Failures in the order of their versions.
pub(crate) const ALL: [Failure; 3] = [
    Failure {
        title: "an image that does not exist is reported, and the next version recovers",
        version: "1.2.0",
        change: Change::AbsentImage,
        fixed: "1.2.1",
        reasons: &["ErrImagePull", "ImagePullBackOff"],
    },
    Failure {
        title: "a crash loop is reported, and the next version recovers",
        version: "1.3.0",
        change: Change::Crash,
        fixed: "1.3.1",
        // The kubelet shows the last exit until it computes the next delay.
        reasons: &["CrashLoopBackOff", "Error"],
    },
    Failure {
        title: "an unschedulable pod is reported, and the next version recovers",
        version: "1.4.0",
        change: Change::AbsentNode,
        fixed: "1.4.1",
        reasons: &["Unschedulable"],
    },
];

impl Failure {
    /// Upgrades to the version, sees its failure, and upgrades to the fixed version.
    pub(crate) async fn run(&self) -> Result<String> {
        let before = installed()?;
        pin(self.version)?;
        eventually(LIMIT, "the pod's reason", async || {
            let reasons = reasons(&get(&format!("-n {SAMPLE} pods"))?);
            ensure!(
                reasons
                    .iter()
                    .any(|reason| self.reasons.contains(&reason.as_str())),
                "pods say {reasons:?}"
            );
            Ok(())
        })
        .await?;
        let extension = get(&format!("clusterextension {SAMPLE}"))?;
        let [status, reason, message] = condition(&extension, "Progressing");
        ensure!(
            (status, reason) == ("True", "RollingOut"),
            "Progressing is {status} {reason}: {message}"
        );
        ensure!(
            installed()? == before,
            "a version that does not run counts as installed"
        );
        let message = message.to_owned();
        pin(self.fixed)?;
        eventually(LIMIT, "the extension recovers", async || is_ready(self.fixed)).await?;
        Ok(format!("Progressing said: {message}"))
    }
}

fn installed() -> Result<Value> {
    Ok(get(&format!("clusterextension {SAMPLE}"))?["status"]["install"]["bundle"]["version"].take())
}

/// Returns why pods do not run: reasons of waiting and ended containers, and of missing nodes.
fn reasons(pods: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    items(pods)
        .flat_map(|pod| {
            let state = &pod["status"]["containerStatuses"][0]["state"];
            [
                text(&state["waiting"]["reason"]),
                text(&state["terminated"]["reason"]),
                condition(pod, "PodScheduled")[1].to_owned(),
            ]
        })
        .filter(|reason| !reason.is_empty())
        .collect()
}
