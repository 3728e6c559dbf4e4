//! Carries out what was decided: applies, archives siblings, takes down, and keeps the finalizer.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use olm_api::{ClusterObjectSet, ObservedPhase, keys};
use olm_applier::account::Account;
use olm_applier::engine::{Revision, Teardown, chain};
use olm_applier::probe::Prober;
use olm_runtime::client::is_absent;
use olm_status::cluster_object_set::Outcome;
use serde_json::json;

use crate::ServiceAccountPolicy;

use super::decide::{self, Course};
use super::gather::{Gathered, Prepared};
use super::{Context, Error, limited};

const COLLISION_RETRY: Duration = Duration::from_secs(10);
const TEARDOWN_RETRY: Duration = Duration::from_secs(5);
/// A blocked revision waits for a change; it is looked at again at this pace, since its Secrets are not watched.
const BLOCKED_RETRY: Duration = Duration::from_mins(1);
/// Number of objects that an event names.
const NAMED: usize = 5;
/// Refuses a revision that would be applied or removed with the controller's own rights.
const NO_ACCOUNT: &str = "no service account is named: operator-controller runs with --service-account-policy=Require and acts \
                          only as service accounts; set spec.serviceAccount.name of the ClusterExtension";
const REMOVING: &str = "removing revision resources that are not owned by another revision";

/// When to come back.
pub(super) enum Next {
    /// On a change.
    Settled,
    /// On a change, or when the deadline passes.
    Deadline,
    /// After this time.
    After(Duration),
    /// After the delay for failures.
    Backoff,
    /// On a change; the older revisions are archived first.
    ArchiveOlder,
    /// Never: the finalizer goes.
    Release,
}

/// What was done.
pub(super) struct Done {
    /// For the status; `None` leaves it alone.
    pub(super) outcome: Option<Outcome>,
    /// Digests of the phases.
    pub(super) observed_phases: Option<Vec<ObservedPhase>>,
    pub(super) next: Next,
}

impl Done {
    fn new(outcome: Outcome, next: Next) -> Self {
        Self {
            outcome: Some(outcome),
            observed_phases: None,
            next,
        }
    }
}

/// The extension that the revision is of.
pub(super) fn owner(set: &ClusterObjectSet) -> Option<ObjectReference> {
    let mut owners = set.owner_references().iter();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(ObjectReference {
        api_version: Some(owner.api_version.clone()),
        kind: Some(owner.kind.clone()),
        name: Some(owner.name.clone()),
        uid: Some(owner.uid.clone()),
        ..ObjectReference::default()
    })
}

/// The first of `objects`, and how many there are beside.
fn listed(objects: &[String]) -> String {
    let named: Vec<&str> = objects.iter().take(NAMED).map(String::as_str).collect();
    let more = match objects.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

impl Context {
    pub(super) async fn act(&self, set: &ClusterObjectSet, name: &str) -> Result<Done, Error> {
        match decide::course(set) {
            Course::Nothing => {
                self.forget(&set.uid().unwrap_or_default());
                Ok(Done {
                    outcome: None,
                    observed_phases: None,
                    next: Next::Settled,
                })
            }
            Course::Keep => self.keep(set, name).await,
            course @ (Course::Archive | Course::Remove) => Ok(self.take_down(set, course).await),
        }
    }

    fn revision(&self, set: &ClusterObjectSet, content: &Prepared) -> Result<Revision, String> {
        let all = self.store.state();
        let identity = decide::identity(set, all.iter().map(AsRef::as_ref));
        let account = match self.accounts {
            ServiceAccountPolicy::Ignore => None,
            ServiceAccountPolicy::Impersonate | ServiceAccountPolicy::Require => {
                Account::of(set).map_err(|error| error.to_string())?
            }
        };
        if account.is_none() && self.accounts == ServiceAccountPolicy::Require {
            return Err(NO_ACCOUNT.to_owned());
        }
        let probes = set.spec.progression_probes.as_deref().unwrap_or_default();
        let progression =
            Prober::new(probes).map_err(|error| format!("reading progressionProbes: {error}"))?;
        Ok(Revision {
            identity,
            state: decide::state(set),
            phases: content.phases.clone(),
            prober: progression,
            account,
        })
    }

    async fn keep(&self, set: &ClusterObjectSet, name: &str) -> Result<Done, Error> {
        let uid = set.uid().unwrap_or_default();
        let held = set.finalizers().iter().any(|f| f == keys::TEARDOWN_FINALIZER);
        if held && self.engine.idle(&uid, decide::state(set)) {
            return Ok(Done::new(Outcome::RolledOut, Next::ArchiveOlder));
        }
        let content = match self.gather(set, false).await {
            Gathered::Objects(content) => content,
            Gathered::Mutable(secrets) => {
                let text = format!(
                    "the following secrets are not immutable (referenced secrets must have immutable set to true): {}",
                    secrets.join(", ")
                );
                return Ok(Done::new(Outcome::Blocked(text), Next::After(BLOCKED_RETRY)));
            }
            Gathered::Missing(why) | Gathered::Unowned(why) => {
                return Ok(Done::new(Outcome::Retrying(why), Next::Backoff));
            }
        };
        let observed = set
            .status
            .as_ref()
            .and_then(|s| s.observed_phases.clone())
            .unwrap_or_default();
        if let Some(text) = decide::changed(&observed, &content.digests) {
            return Ok(Done::new(Outcome::Blocked(text), Next::After(BLOCKED_RETRY)));
        }
        let mut done = if let Some(text) = &content.refused {
            Done::new(Outcome::Blocked(text.clone()), Next::After(BLOCKED_RETRY))
        } else if let Some(text) = &content.invalid {
            Done::new(Outcome::Retrying(text.clone()), Next::After(COLLISION_RETRY))
        } else {
            // Held before anything is written, so that nothing is ever left behind. The change of the revision brings us back.
            if self.set_finalizer(set, name, true).await? {
                return Ok(Done {
                    outcome: None,
                    observed_phases: None,
                    next: Next::Settled,
                });
            }
            match self.revision(set, &content) {
                Ok(revision) => self.apply(set, &revision).await,
                Err(text) => Done::new(Outcome::Retrying(text), Next::After(COLLISION_RETRY)),
            }
        };
        done.observed_phases = Some(content.digests.clone());
        Ok(done)
    }

    async fn apply(&self, set: &ClusterObjectSet, revision: &Revision) -> Done {
        let applied = match self.engine.apply(revision).await {
            Ok(applied) => applied,
            Err(error) => return Done::new(Outcome::Retrying(chain(&error)), Next::Backoff),
        };
        if let Some((phase, reports)) = applied.collision {
            let text = format!(
                "revision object collisions in phase {phase}\n{}",
                reports.join("\n\n")
            );
            return Done::new(Outcome::Retrying(text), Next::After(COLLISION_RETRY));
        }
        self.tell_repairs(set, &applied.repaired);
        if applied.superseded {
            return Done::new(Outcome::HandingOver, Next::Deadline);
        }
        if !applied.complete {
            return Done::new(Outcome::NotReady(applied.failing), Next::Deadline);
        }
        self.contents.drop(&revision.identity.uid);
        Done::new(Outcome::RolledOut, Next::ArchiveOlder)
    }

    /// Tells the owner in an event what others had changed or deleted.
    fn tell_repairs(&self, set: &ClusterObjectSet, repaired: &[String]) {
        let Some(reference) = owner(set).filter(|_| !repaired.is_empty()) else {
            return;
        };
        let note = format!(
            "changed or deleted by others, and put right: {}",
            listed(repaired)
        );
        self.events.normal(reference, "DriftRepaired", "Apply", &note);
    }

    /// Archives the revisions that `set` took over from. Only once its status says that it has rolled out: else there
    /// would be a moment in which no revision of the extension counts as installed.
    pub(super) async fn archive_outdone(&self, set: &ClusterObjectSet) -> Result<(), Error> {
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        for other in self
            .store
            .state()
            .iter()
            .filter(|other| decide::outdone(set, other))
        {
            let (name, patch) = (other.name_any(), json!({"spec": {"lifecycleState": "Archived"}}));
            let params = PatchParams::default();
            match limited(
                "archiving",
                &name,
                sets.patch(&name, &params, &Patch::Merge(&patch)),
            )
            .await
            {
                Ok(_) => {}
                Err(Error::Call { source, .. }) if is_absent(&source) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn take_down(&self, set: &ClusterObjectSet, course: Course) -> Done {
        let content = match self.gather(set, true).await {
            Gathered::Objects(content) => content,
            // A teardown reads Secrets that may still change like any other.
            Gathered::Mutable(_) => return Done::new(Outcome::Removing(REMOVING.to_owned()), Next::Backoff),
            Gathered::Missing(why) | Gathered::Unowned(why) => {
                let text = format!(
                    "{REMOVING}; waiting until its objects are known: {why}; delete the Secret to leave its objects to the \
                     garbage collector"
                );
                return Done::new(Outcome::Removing(text), Next::Backoff);
            }
        };
        let orphan = course == Course::Remove && set.finalizers().iter().any(|f| f == "orphan");
        let revision = match self.revision(set, &content) {
            Ok(revision) => revision,
            Err(text) => return Done::new(Outcome::Retrying(text), Next::Backoff),
        };
        match self.engine.teardown(&revision, orphan).await {
            Ok(Teardown::Complete { passed }) => {
                self.tell_passed(set, &passed);
                if course == Course::Remove {
                    return Done {
                        outcome: None,
                        observed_phases: None,
                        next: Next::Release,
                    };
                }
                Done::new(Outcome::Archived, Next::Release)
            }
            Ok(Teardown::Waiting { objects }) => {
                let text = format!("{REMOVING}; waiting until these are gone: {}", objects.join(", "));
                Done::new(Outcome::Removing(text), Next::After(TEARDOWN_RETRY))
            }
            Err(error) => {
                let text = match course {
                    Course::Archive => format!("error archiving revision: {}", chain(&error)),
                    _ => chain(&error),
                };
                Done::new(Outcome::Removing(text), Next::Backoff)
            }
        }
    }

    /// Tells in an event and in the log which objects were not looked for, as no API server can hold them.
    fn tell_passed(&self, set: &ClusterObjectSet, passed: &[String]) {
        if passed.is_empty() {
            return;
        }
        let note = format!(
            "objects were not looked for, as no API server can hold them: {}",
            listed(passed)
        );
        tracing::warn!(name = set.name_any(), "{note}");
        let object = set.object_ref(&());
        self.events
            .warning(object, "ObjectsPassedOver", "TearDown", &note);
    }

    /// Adds or removes our finalizer. Tells whether there was anything to do.
    pub(super) async fn set_finalizer(
        &self,
        set: &ClusterObjectSet,
        name: &str,
        wanted: bool,
    ) -> Result<bool, Error> {
        let present = set.finalizers().iter().any(|f| f == keys::TEARDOWN_FINALIZER);
        if present == wanted {
            return Ok(false);
        }
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        // Read anew: the status may just have been written, and other finalizers must not be lost.
        let Some(live) = limited("reading", name, sets.get_opt(name)).await? else {
            return Ok(true);
        };
        if live.uid() != set.uid() {
            return Ok(true);
        }
        let mut finalizers = live.finalizers().to_vec();
        finalizers.retain(|f| f != keys::TEARDOWN_FINALIZER);
        if wanted {
            finalizers.push(keys::TEARDOWN_FINALIZER.to_owned());
        }
        let patch =
            json!({"metadata": {"resourceVersion": live.resource_version(), "finalizers": finalizers}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let call = sets.patch_metadata(name, &params, &patch);
        match limited("keeping the finalizer of", name, call).await {
            Err(Error::Call { source, .. }) if is_absent(&source) => Ok(true),
            other => other.map(|_| true),
        }
    }
}
