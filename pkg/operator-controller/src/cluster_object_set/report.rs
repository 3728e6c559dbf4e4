//! Writes the status of a revision, and the events of its changes.

use std::time::Duration;

use kube::api::{Api, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use olm_api::condition::{find, reasons::ObjectSet as Reason, types::ObjectSet as Type};
use olm_api::{ClusterObjectSet, ClusterObjectSetStatus, ObservedPhase};
use olm_decide::object_set as decide;
use olm_status::cluster_object_set as status;
use olm_status::recorded::bundle_version;
use serde_json::json;

use super::act::owner;
use super::context::Context;
use super::error::{Error, is_stale, limited};

use super::unwatched;

/// Minimum time between two writes that differ only in what a rollout waits for: each of many CRDs and Deployments may become ready
/// within milliseconds of the others.
pub(super) const ROLLOUT_WORDING: Duration = Duration::from_secs(1);
/// Minimum time between two writes that differ only in the wording of a failure.
///
/// The event of a write starts the next pass at once, before the growing delay for failures is over. If the text of an error changes with
/// every attempt, as that of a broken connection does with its port, each pass would lead to the next one.
pub(super) const FAILURE_WORDING: Duration = Duration::from_secs(30);

/// Effect of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reported {
    /// The status is current; it was written if it differed.
    Done,
    /// The status was not written, because the revision changed meanwhile.
    Overtaken,
    /// The status was not written, because it differs only in wording from one that was written just now; the time is the delay until
    /// it may be written.
    Later(Duration),
}

impl Context {
    /// Writes the status if it changes. A change of the wording alone is written at the earliest after `pace` since the last write.
    pub(super) async fn report(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        outcome: &status::Outcome,
        observed_phases: Option<Vec<ObservedPhase>>,
        now: jiff::Timestamp,
        pace: Duration,
    ) -> Result<Reported, Error> {
        let old = set.status.clone().unwrap_or_default();
        let remaining = decide::remaining(set, now);
        let facts = status::Facts {
            version: &bundle_version(set),
            overdue: match remaining {
                Some(left) if left.is_zero() => set.spec.progress_deadline_minutes,
                _ => None,
            },
            observed_phases,
            unwatched: unwatched::of(&self.watches, set),
            soaks: set.spec.soak.is_some(),
            generation: set.metadata.generation.unwrap_or_default(),
        };
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now);
        let new = status::object_set(&old, outcome, &facts, &time);
        if !status::same(&old, &new) {
            if differs_in_wording(&old, &new)
                && let Some(left) = self.written.rest_of(pace, set)
            {
                return Ok(Reported::Later(left));
            }
            if let status::Outcome::Retrying(_) | status::Outcome::Blocked(_) | status::Outcome::Removing(_) =
                outcome
            {
                // The log has the whole text, the status a part of a long one.
                tracing::warn!(?outcome, "not progressing");
            }
            if !self.write_status(set, name, &new).await? {
                return Ok(Reported::Overtaken);
            }
            self.announce(set, &old, &new);
        }
        Ok(Reported::Done)
    }

    async fn write_status(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        new: &ClusterObjectSetStatus,
    ) -> Result<bool, Error> {
        // Bound to the resource version of the read, so that a stale read never resets a latched condition.
        let patch = json!({"metadata": {"resourceVersion": set.resource_version()}, "status": new});
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = sets.patch_status(name, &params, &patch);
        match limited("writing the status of", name, call).await {
            Err(Error::Call { source, .. }) if is_stale(&source) => {
                self.written.note_overtaken(set);
                Ok(false)
            }
            other => other.map(|written| {
                self.written.note(&written);
                true
            }),
        }
    }

    /// Emits events if the reason of `Progressing` changed other than its extension announces, or if a watch fails or recovers.
    fn announce(&self, set: &ClusterObjectSet, old: &ClusterObjectSetStatus, new: &ClusterObjectSetStatus) {
        unwatched::announce(&self.events, set, old, new);
        let Some(now) = find(new.conditions(), Type::Progressing) else {
            return;
        };
        if find(old.conditions(), Type::Progressing).is_some_and(|before| before.reason == now.reason) {
            return;
        }
        // The events of an extension announce the usual course of its revisions.
        let usual = [Reason::RollingOut, Reason::Succeeded];
        if owner(set).is_some() && usual.iter().any(|reason| now.reason == *reason) {
            return;
        }
        let reference = set.object_ref(&());
        let warns = [
            Reason::Blocked,
            Reason::Retrying,
            Reason::ProgressDeadlineExceeded,
            Reason::SoakFailed,
        ];
        if warns.iter().any(|reason| now.reason == *reason) {
            self.events
                .warning(reference, &now.reason, "RollOut", &now.message);
        } else {
            self.events
                .normal(reference, &now.reason, "RollOut", &now.message);
        }
    }
}

/// Returns true if the statuses are equal but for the messages of their conditions.
fn differs_in_wording(old: &ClusterObjectSetStatus, new: &ClusterObjectSetStatus) -> bool {
    let wordless = |status: &ClusterObjectSetStatus| {
        let mut status = status.clone();
        for condition in status.conditions.iter_mut().flatten() {
            condition.message.clear();
        }
        status
    };
    status::same(&wordless(old), &wordless(new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_messages_are_wording() {
        let status = |reason: &str, message: &str, generation: i64| -> ClusterObjectSetStatus {
            let condition = json!({"type": "Progressing", "status": "True", "reason": reason, "message": message,
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({"conditions": [condition], "observedGeneration": generation}))
                .unwrap()
        };
        let before = status("RollingOut", "one is missing", 1);
        assert!(differs_in_wording(
            &before,
            &status("RollingOut", "two is missing", 1)
        ));
        assert!(!differs_in_wording(
            &before,
            &status("Retrying", "one is missing", 1)
        ));
        assert!(!differs_in_wording(
            &before,
            &status("RollingOut", "one is missing", 2)
        ));
        assert!(!differs_in_wording(&ClusterObjectSetStatus::default(), &before));
    }
}
