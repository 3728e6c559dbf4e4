//! Version of the cluster, and the object that holds the verdict.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use olm_api::condition::external::ClusterOperator;
use olm_api::keys;
use olm_runtime::clock;
use olm_status::cluster_upgrade::{Minor, Upgradeability, reached_version};
use olm_status::condition::{self, NewCondition};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster_extension::{CallError, call};

const GROUP: &str = "config.openshift.io";
/// Group of cluster-olm-operator's configuration.
const OPERATORS: &str = "operator.openshift.io";
const OPERATOR: &str = "olm";
/// Interval between reads of the cluster's version.
pub(super) const RESYNC: Duration = Duration::from_mins(1);

/// Version of the cluster as last read.
#[derive(Debug, Default)]
pub(super) struct Looked(Option<(Instant, Option<Cluster>)>);

impl Looked {
    /// Returns the version of the cluster, at most [`RESYNC`] old; `None` if the version is unknown or irrelevant to bundles.
    pub(super) async fn look(&mut self, client: &Client) -> Result<Option<Cluster>, CallError> {
        if let Some((at, cluster)) = self.0
            && at.elapsed() < RESYNC
        {
            return Ok(cluster);
        }
        let at = Instant::now();
        let cluster = Cluster::look(client).await?;
        self.0 = Some((at, cluster));
        Ok(cluster)
    }

    /// Returns the time until the version is read again.
    pub(super) fn valid_for(&self) -> Duration {
        let at = self.0.map(|(at, _)| at);
        at.map_or(RESYNC, |at| RESYNC.saturating_sub(at.elapsed()))
    }
}

/// Version of the cluster, and on OpenShift the writer of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cluster {
    /// OpenShift, where the verdict is a condition of the `ClusterOperator`.
    OpenShift {
        /// Minor version of OpenShift.
        minor: Minor,
        /// True if cluster-olm-operator writes the `ClusterOperator`.
        told_by_others: bool,
    },
    /// Plain Kubernetes, as the minor version of OpenShift that contains it.
    Kubernetes(Minor),
}

impl Cluster {
    /// Reads the version of the cluster; `None` if the version is unknown or irrelevant to bundles.
    async fn look(client: &Client) -> Result<Option<Self>, CallError> {
        let versions: Api<DynamicObject> =
            Api::all_with(client.clone(), &kind("ClusterVersion", "clusterversions"));
        match call("reading the ClusterVersion", versions.get("version")).await {
            Ok(version) => {
                let Some(minor) = reached_version(&version.data).and_then(Minor::of_version) else {
                    return Ok(None);
                };
                let groups = call("listing the API groups", client.list_api_groups()).await?;
                let told_by_others = groups.groups.iter().any(|group| group.name == OPERATORS);
                Ok(Some(Self::OpenShift {
                    minor,
                    told_by_others,
                }))
            }
            Err(error) if error.is_not_found() => {
                let info = call("reading the API server's version", client.apiserver_version()).await?;
                let minor = Minor::of_version(&info.git_version);
                Ok(minor
                    .and_then(Minor::openshift_of_kubernetes)
                    .map(Self::Kubernetes))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the minor version of OpenShift that bundles are checked against.
    pub(super) fn minor(self) -> Minor {
        match self {
            Self::OpenShift { minor, .. } | Self::Kubernetes(minor) => minor,
        }
    }

    /// Returns a minor version of OpenShift as the administrator of the cluster knows it: on plain Kubernetes, the version of Kubernetes.
    pub(super) fn named(self, minor: Minor) -> String {
        match (self, minor.kubernetes_of_openshift()) {
            (Self::Kubernetes(_), Some(kubernetes)) => format!("Kubernetes {kubernetes}"),
            _ => minor.to_string(),
        }
    }

    /// Writes the verdict to the `ClusterOperator`, if it differs.
    pub(super) async fn report(self, client: &Client, verdict: &Upgradeability) -> Result<(), CallError> {
        let Self::OpenShift {
            told_by_others: false,
            ..
        } = self
        else {
            return Ok(());
        };
        let operator = kind("ClusterOperator", "clusteroperators");
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &operator);
        let there = match call("reading ClusterOperator \"olm\"", api.get_opt(OPERATOR)).await {
            Ok(there) => there,
            // The API appears and disappears with the cluster's own operators.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        let before: Option<Condition> = there.as_ref().and_then(|there| {
            let conditions = there.data.pointer("/status/conditions")?.as_array()?;
            let found = conditions
                .iter()
                .find(|c| c["type"] == ClusterOperator::Upgradeable.as_str())?;
            serde_json::from_value(found.clone()).ok()
        });
        let condition = upgradeable(before.as_ref(), verdict, &Time(clock::now()));
        if before.as_ref() == Some(&condition) {
            return Ok(());
        }
        let params = PatchParams::apply(keys::CLUSTER_UPGRADE_FIELD_MANAGER).force();
        let object = |status: Option<Value>| {
            let mut object = json!({"apiVersion": operator.api_version, "kind": operator.kind,
                "metadata": {"name": OPERATOR}});
            if let Some(status) = status {
                object["status"] = status;
            }
            Patch::Apply(object)
        };
        if there.is_none() {
            let what = "creating ClusterOperator \"olm\"";
            call(what, api.patch(OPERATOR, &params, &object(None))).await?;
        }
        // Conditions of a ClusterOperator have no observedGeneration.
        let status = json!({"conditions": [{
            "type": condition.type_, "status": condition.status, "reason": condition.reason,
            "message": condition.message, "lastTransitionTime": condition.last_transition_time,
        }]});
        let what = "writing the status of ClusterOperator \"olm\"";
        call(what, api.patch_status(OPERATOR, &params, &object(Some(status)))).await?;
        Ok(())
    }
}

fn kind(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1", kind), plural)
}

fn upgradeable(before: Option<&Condition>, verdict: &Upgradeability, now: &Time) -> Condition {
    let (reason, message) = verdict.upgradeable_condition();
    let new = NewCondition {
        type_: ClusterOperator::Upgradeable.into(),
        status: verdict.upgradeable().into(),
        reason,
        message,
        observed_generation: 0,
    };
    let mut conditions: Vec<Condition> = before.into_iter().cloned().collect();
    condition::set(&mut conditions, new, now);
    let mut condition = conditions.swap_remove(0);
    condition.observed_generation = None;
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_minor_is_one_that_the_cluster_can_have() {
        let (minor, next) = (Minor { major: 4, minor: 20 }, Minor { major: 4, minor: 21 });
        assert_eq!(Cluster::Kubernetes(minor).named(next), "Kubernetes 1.34");
        let openshift = Cluster::OpenShift {
            minor,
            told_by_others: false,
        };
        assert_eq!(openshift.named(next), "4.21");
    }

    #[test]
    fn the_same_verdict_is_the_same_condition() {
        let verdict = Upgradeability {
            next: Minor { major: 4, minor: 19 },
            blockers: Vec::new(),
            errors: Vec::new(),
        };
        let time = |text: &str| Time(text.parse().unwrap());
        let first = upgradeable(None, &verdict, &time("2026-01-01T00:00:00Z"));
        assert_eq!(
            (first.status.as_str(), first.reason.as_str()),
            ("True", "AsExpected")
        );
        assert_eq!(
            upgradeable(Some(&first), &verdict, &time("2026-02-01T00:00:00Z")),
            first
        );
    }
}
