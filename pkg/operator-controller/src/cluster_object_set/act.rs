//! Writes of a reconcile: owners of Secrets, the finalizer, the objects, and the archiving of older revisions.

mod finalizer;
mod secrets;

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use olm_api::event::Reason;
use olm_api::{ClusterObjectSet, LifecycleState, ObservedPhase};
use olm_applier::custom_resources::HeldCrd;
use olm_applier::engine::{EngineError, Revision, Teardown, TeardownPass, chain};
use olm_applier::left_behind::HeldNamespace;
use olm_applier::ownership;
use olm_decide::object_set::{self as decide, Goal};
use olm_runtime::client::is_absent;
use olm_runtime::clock;
use olm_status::cluster_object_set::{Observed, Outcome};
use serde_json::json;

use super::action::{Action, BLOCKED, COLLISION_RETRY, Decision, Next, REMOVING};
use super::context::Context;
use super::error::{Error, limited};

/// Delay before a teardown is looked at again without an event.
const TEARDOWN_RETRY: Duration = Duration::from_secs(5);
/// Most objects that an event names.
const NAMED: usize = 5;

/// Result of an action: input of the status, and the time of the next reconcile.
pub(super) struct Done {
    /// Outcome for the status; `None` leaves the status alone.
    pub(super) outcome: Option<Outcome>,
    /// Digests of the phases for the status.
    pub(super) observed_phases: Option<Vec<ObservedPhase>>,
    /// Time of the next reconcile.
    pub(super) next: Next,
}

impl Done {
    fn new(outcome: Outcome, next: Next) -> Self {
        Self {
            outcome: Some(outcome),
            ..Self::silent(next)
        }
    }

    /// Returns a result that does not change the status.
    pub(super) fn silent(next: Next) -> Self {
        Self {
            outcome: None,
            observed_phases: None,
            next,
        }
    }
}

/// Returns the time of the retry.
fn retry(error: &EngineError) -> Next {
    error.max_delay().map_or(Next::Backoff, Next::BackoffUpTo)
}

/// Returns the extension that controls the revision.
pub(super) fn owner(set: &ClusterObjectSet) -> Option<ObjectReference> {
    let owner = ownership::controller(set.meta())?;
    Some(ObjectReference {
        api_version: Some(owner.api_version.clone()),
        kind: Some(owner.kind.clone()),
        name: Some(owner.name.clone()),
        uid: Some(owner.uid.clone()),
        ..ObjectReference::default()
    })
}

/// Returns the first of `objects` and the number of the others.
fn listed(objects: &[String]) -> String {
    let named: Vec<&str> = objects.iter().take(NAMED).map(String::as_str).collect();
    let more = match objects.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

impl Context {
    /// Carries out the decision.
    pub(super) async fn act(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        decision: Decision,
    ) -> Result<Done, Error> {
        if let Err(why) = secrets::own(&self.client, set, &decision.unowned).await {
            return Ok(Done::new(Outcome::Retrying(why), Next::Backoff));
        }
        let uid = set.uid().unwrap_or_default();
        match (decision.content, &decision.action) {
            (Some(content), Action::Apply(_)) => self.contents.insert(uid, decide::state(set), content),
            // The revision may wait for other content of its Secrets, so every retry reads them.
            (Some(_), _) => self.contents.remove(&uid),
            (None, _) => {}
        }
        let mut done = match decision.action {
            Action::Report(outcome, next) => Done::new(outcome, next),
            Action::Apply(revision) if revision.observe => self.observe(&revision).await,
            Action::Apply(revision) => {
                // Set before the first object, so that no object is ever left behind. The change of the revision
                // triggers the next reconcile.
                if self.set_finalizer(set, name, true).await? {
                    return Ok(Done::silent(Next::Settled));
                }
                self.apply(set, &revision).await
            }
            Action::TearDown { revision, orphan } => self.tear_down(set, &revision, orphan).await,
        };
        done.observed_phases = decision.observed_phases;
        Ok(done)
    }

    async fn apply(&self, set: &ClusterObjectSet, revision: &Revision) -> Done {
        let applied = match self.engine.apply(revision).await {
            Ok(applied) => applied,
            Err(error) => return Done::new(Outcome::Retrying(chain(&error)), retry(&error)),
        };
        if let Some((phase, reports)) = applied.collision {
            let text = format!(
                "revision object collisions in phase {phase}\n{}",
                reports.join("\n\n")
            );
            return Done::new(Outcome::Retrying(text), Next::After(COLLISION_RETRY));
        }
        self.announce_repairs(set, &applied.repaired);
        if applied.superseded {
            self.contents.remove(&revision.identity.uid);
            return Done::new(Outcome::HandingOver, Next::Deadline);
        }
        let outdated = applied.outdated;
        if let Some(grace) = outdated.and_then(|time| decide::grace(set, time, clock::now())) {
            let outcome = Outcome::Soaking(Time(grace.soak_end));
            return Done::new(outcome, Next::After(grace.left));
        }
        if !applied.complete {
            let outcome = Outcome::NotReady {
                lines: applied.failing,
                reason: applied.reason,
            };
            let next = applied.recheck.map_or(Next::Deadline, Next::After);
            return Done::new(outcome, next);
        }
        self.contents.remove(&revision.identity.uid);
        Done::new(Outcome::RolledOut, Next::ArchiveOlder)
    }

    /// Reads and probes the objects of a paused revision. Their changes trigger the next reconcile.
    async fn observe(&self, revision: &Revision) -> Done {
        let (observed, next) = match self.engine.apply(revision).await {
            Err(error) => (Observed::Unread(chain(&error)), retry(&error)),
            Ok(applied) if applied.superseded => (Observed::TakenOver, Next::Settled),
            Ok(applied) if applied.complete => (Observed::Ready, Next::Settled),
            Ok(applied) => {
                let collisions = applied.collision.map(|(_, reports)| reports).unwrap_or_default();
                let observed = Observed::NotReady {
                    lines: applied.failing.into_iter().chain(collisions).collect(),
                    reason: applied.reason,
                };
                (observed, applied.recheck.map_or(Next::Settled, Next::After))
            }
        };
        if matches!(next, Next::Settled) {
            // A paused revision may rest for weeks; its content is read again when one of its objects changes.
            self.contents.remove(&revision.identity.uid);
        }
        Done::new(Outcome::Paused(observed), next)
    }

    /// Emits an event on the extension with the objects that others changed or deleted.
    fn announce_repairs(&self, set: &ClusterObjectSet, repaired: &[String]) {
        let Some(reference) = owner(set).filter(|_| !repaired.is_empty()) else {
            return;
        };
        let note = format!("changed or deleted by others, and restored: {}", listed(repaired));
        let reason = Reason::DriftRepaired.as_str();
        self.events.normal(reference, reason, "Apply", &note);
    }

    /// Archives the revisions that `set` superseded. The status of `set` must say that it has rolled out: otherwise no
    /// revision of the extension would count as installed for a moment.
    pub(super) async fn archive_superseded(&self, set: &ClusterObjectSet) -> Result<(), Error> {
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        let family = self.family(set);
        for other in family.iter().filter(|other| decide::superseded(set, other)) {
            // The uid protects the revision of a new extension of the same name.
            let patch = json!({"metadata": {"uid": other.metadata.uid}, "spec": {"lifecycleState": LifecycleState::Archived}});
            let (name, params, patch) = (other.name_any(), PatchParams::default(), Patch::Merge(&patch));
            match limited("archiving", &name, sets.patch(&name, &params, &patch)).await {
                Ok(_) => {}
                Err(Error::Call { source, .. }) if is_absent(&source) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn tear_down(&self, set: &ClusterObjectSet, revision: &Revision, orphan: bool) -> Done {
        let goal = decide::goal(set);
        let TeardownPass {
            kept,
            kept_namespaces,
            progress,
        } = self.engine.teardown(revision, orphan).await;
        self.announce_kept(set, &kept);
        self.announce_kept_namespaces(set, &kept_namespaces);
        match progress {
            Ok(Teardown::Complete { skipped }) => {
                self.announce_skipped(set, &skipped);
                if goal == Goal::Deleted {
                    return Done::silent(Next::Release);
                }
                Done::new(Outcome::Archived, Next::Release)
            }
            Ok(Teardown::Waiting { objects }) => {
                let text = format!("{REMOVING}; waiting until these are gone: {}", objects.join(", "));
                Done::new(Outcome::Removing(text), Next::After(TEARDOWN_RETRY))
            }
            Ok(Teardown::Blocked { crds }) => {
                let crds: Vec<String> = crds.iter().map(ToString::to_string).collect();
                let text = format!("{BLOCKED}; {}", listed(&crds));
                Done::new(Outcome::Removing(text), Next::After(TEARDOWN_RETRY))
            }
            Err(error) => {
                let text = match goal {
                    Goal::Deleted => chain(&error),
                    _ => format!("error archiving revision: {}", chain(&error)),
                };
                Done::new(Outcome::Removing(text), Next::Backoff)
            }
        }
    }

    /// Emits an event, on the extension if there is one, and a log line for each CRD that stays with its custom
    /// resources.
    fn announce_kept(&self, set: &ClusterObjectSet, kept: &[HeldCrd]) {
        let object = owner(set).unwrap_or_else(|| set.object_ref(&()));
        for crd in kept {
            let note = format!(
                "CustomResourceDefinition {crd}; it stays, and the next extension that installs it adopts it. To delete it \
                 with its custom resources: kubectl delete crd {}",
                crd.name
            );
            tracing::info!("{note}");
            let reason = Reason::CustomResourcesKept.as_str();
            self.events.normal(object.clone(), reason, "TearDown", &note);
        }
    }

    /// Emits an event, on the extension if there is one, and a log line for each namespace that stays with objects of others.
    fn announce_kept_namespaces(&self, set: &ClusterObjectSet, kept: &[HeldNamespace]) {
        let object = owner(set).unwrap_or_else(|| set.object_ref(&()));
        for namespace in kept {
            let note = format!(
                "Namespace {namespace}; it stays, and the next extension that would create it adopts it. To delete it with all its \
                 objects: kubectl delete namespace {}",
                namespace.name
            );
            tracing::info!("{note}");
            let reason = Reason::NamespaceKept.as_str();
            self.events.normal(object.clone(), reason, "TearDown", &note);
        }
    }

    /// Emits an event and a log line with the objects that a teardown skipped.
    fn announce_skipped(&self, set: &ClusterObjectSet, skipped: &[String]) {
        if skipped.is_empty() {
            return;
        }
        let note = format!(
            "objects were skipped, because no API server accepts their names: {}",
            listed(skipped)
        );
        tracing::warn!("{note}");
        let (object, reason) = (set.object_ref(&()), Reason::ObjectsPassedOver.as_str());
        self.events.warning(object, reason, "TearDown", &note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_deletion_is_looked_for_soon() {
        let head = "ConfigMap a".to_owned();
        let reason = "refused".to_owned();
        let going = |watched| EngineError::Going {
            head: head.clone(),
            watched,
        };
        assert!(matches!(retry(&going(false)), Next::BackoffUpTo(_)));
        assert!(
            matches!(retry(&going(true)), Next::Backoff),
            "its end is an event"
        );
        let other = EngineError::Invalid {
            head: head.clone(),
            reason,
        };
        assert!(matches!(retry(&other), Next::Backoff));
    }
}
