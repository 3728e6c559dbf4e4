//! Checks of upgrades whose pods cannot run: the status of the extension reports the failure soon, and the next version recovers.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::Client;
use olm_harness::eventually;
use serde_json::Value;

use crate::bundles::Change;
use crate::cluster::{SAMPLE, condition, get, is_ready, kubectl, olm, pin};
use crate::timing::{DEPLOYMENT, EXTENSION, Kind, POD, Watch};

const LIMIT: Duration = Duration::from_mins(1);
/// Maximum time from the failure in the status of the pod or its Deployment to the report in the status of the extension.
const DELAY: Duration = Duration::from_secs(2);
const QUOTA: &str = "one-pod";

/// A version whose pods cannot run.
pub(crate) struct Failure {
    pub(crate) title: &'static str,
    pub(crate) version: &'static str,
    pub(crate) change: Change,
    /// Next version, whose pods run.
    pub(crate) fixed: &'static str,
    /// True if a quota allows no second pod during the upgrade.
    quota: bool,
    /// Kind of the object whose status shows the failure first.
    kind: Kind,
    failed: fn(&Value) -> bool,
    /// Reason that the status of the extension must contain after the name of the pod.
    reason: &'static str,
    /// Part of the reason that stays the same over several attempts of the kubelet.
    steady: &'static str,
}

/// Failures in the order of their versions.
pub(crate) const ALL: [Failure; 5] = [
    Failure {
        title: "an image that does not exist is reported, and the next version recovers",
        version: "1.2.0",
        change: Change::AbsentImage,
        fixed: "1.2.1",
        quota: false,
        kind: POD,
        failed: |pod| waits(pod, "ErrImagePull"),
        reason: "container operator cannot start: ErrImagePull: \"",
        steady: "container operator cannot start: ",
    },
    Failure {
        title: "a crash loop is reported, and the next version recovers",
        version: "1.3.0",
        change: Change::Crash,
        fixed: "1.3.1",
        quota: false,
        kind: POD,
        failed: |pod| waits(pod, "CrashLoopBackOff"),
        reason: "container operator ends again and again (CrashLoopBackOff), last with exit code 3, Error",
        steady: "exit code 3, Error",
    },
    Failure {
        title: "an unschedulable pod is reported, and the next version recovers",
        version: "1.4.0",
        change: Change::AbsentNode,
        fixed: "1.4.1",
        quota: false,
        kind: POD,
        failed: |pod| condition(pod, "PodScheduled")[1] == "Unschedulable",
        reason: "no node takes it: Unschedulable: \"0/1 nodes are available",
        steady: "no node takes it: Unschedulable",
    },
    Failure {
        title: "a readiness probe that fails is reported, and the next version recovers",
        version: "1.5.0",
        change: Change::FailingProbe,
        fixed: "1.5.1",
        quota: false,
        kind: POD,
        failed: |pod| {
            let status = &pod["status"]["containerStatuses"][0];
            !status["state"]["running"].is_null() && status["ready"] == false
        },
        reason: "container operator runs but is not ready: its readiness probe (HTTP GET /absent on port 8081) has not passed",
        steady: "its readiness probe (HTTP GET /absent on port 8081) has not passed",
    },
    Failure {
        title: "pods that a quota refuses are reported, and the next version recovers",
        version: "1.6.0",
        change: Change::None,
        fixed: "1.6.1",
        quota: true,
        kind: DEPLOYMENT,
        failed: |deployment| condition(deployment, "ReplicaFailure")[0] == "True",
        reason: "its pods cannot be created: FailedCreate: \"",
        steady: "exceeded quota",
    },
];

fn waits(pod: &Value, reason: &str) -> bool {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
}

impl Failure {
    /// Upgrades to the version, waits for the report of its failure, and upgrades to the fixed version. Returns the delay of the
    /// report.
    pub(crate) async fn run(&self, client: &Client) -> Result<String> {
        let before = installed()?;
        if self.quota {
            kubectl(&format!("-n {SAMPLE} create quota {QUOTA} --hard=pods=1"))?;
            eventually(LIMIT, "the quota counts the pod", async || {
                let used = get(&format!("-n {SAMPLE} quota {QUOTA}"))?["status"]["used"].take();
                ensure!(used["pods"] == "1", "used is {used}");
                Ok(())
            })
            .await?;
        }
        let (failed, reason) = (self.failed, self.reason);
        let failed = Watch::start(client, "the failure of the pod", self.kind, SAMPLE, failed).await;
        let told = Watch::start(
            client,
            "the reason in Progressing",
            EXTENSION,
            "",
            move |extension| condition(extension, "Progressing")[2].contains(reason),
        )
        .await;
        pin(self.version)?;
        let failed = failed.seen(LIMIT).await?;
        let told = told.seen(LIMIT).await?;
        let delay = told.at.saturating_duration_since(failed.at);
        ensure!(
            delay <= DELAY,
            "the status has the reason {delay:?} after that of the {}",
            self.kind.2
        );
        let message = self.is_told(&told.object)?;
        ensure!(
            installed()? == before,
            "a version that does not run counts as installed"
        );
        for command in ["status", "tree"] {
            let ended = olm(&format!("{command} {SAMPLE}"))?;
            ensure!(
                ended.code == Some(1) && ended.out.contains(self.steady),
                "kubectl olm {command} does not tell: {ended:?}"
            );
        }
        if self.quota {
            kubectl(&format!("-n {SAMPLE} delete quota {QUOTA}"))?;
        }
        pin(self.fixed)?;
        eventually(LIMIT, "the extension recovers", async || is_ready(self.fixed)).await?;
        Ok(format!("reported after {:.2} s: {message}", delay.as_secs_f64()))
    }

    /// Fails unless the conditions Progressing and Ready name the Deployment and the reason. Returns the message of Progressing.
    fn is_told(&self, extension: &Value) -> Result<String> {
        let [status, reason, message] = condition(extension, "Progressing");
        let start = format!(
            "Revision {} is rolling out. Deployment {SAMPLE}/sample-operator is not available: ",
            self.version
        );
        ensure!(
            (status, reason) == ("True", "RollingOut") && message.starts_with(&start),
            "Progressing is {status} {reason}: {message}"
        );
        let [ready, reason, why] = condition(extension, "Ready");
        ensure!(
            ready == "False" && why.contains(self.reason),
            "Ready is {ready} {reason}: {why}"
        );
        Ok(message.to_owned())
    }
}

fn installed() -> Result<Value> {
    Ok(get(&format!("clusterextension {SAMPLE}"))?["status"]["install"]["bundle"]["version"].take())
}
