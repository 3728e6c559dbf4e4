//! Decides the action for a revision from what was gathered. Pure.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, ObservedPhase};
use olm_applier::account::Account;
use olm_applier::engine::Revision;
use olm_applier::ownership::Identity;
use olm_applier::probe::Prober;
use olm_decide::object_set::{self as decide, Goal};
use olm_status::cluster_object_set::Outcome;

use super::content::Prepared;
use super::context::Policies;
use super::gather::{Gathered, SecretKey};
use crate::ServiceAccountPolicy;

/// Delay before a collision or an invalid object is retried.
pub(super) const COLLISION_RETRY: Duration = Duration::from_secs(10);
/// Delay before a blocked revision is looked at again: its Secrets are not watched.
const BLOCKED_RETRY: Duration = Duration::from_mins(1);
/// Finalizer of `kubectl delete --cascade=orphan`, which leaves all objects on the cluster.
const ORPHAN: &str = "orphan";
const NO_ACCOUNT: &str = "no service account is named: operator-controller runs with --service-account-policy=Require and acts \
                          only as service accounts; set spec.serviceAccount.name of the ClusterExtension";
pub(super) const BLOCKED: &str = "nothing is removed, because spec.deletion.customResources is Block and there are custom resources; \
                                  delete them, or set the field to Keep or Delete";
pub(super) const REMOVING: &str = "removing revision resources that are not owned by another revision";

/// Event or delay that triggers the next reconcile of a revision, and the work that precedes it.
pub(super) enum Next {
    /// The next reconcile follows a change of an object.
    Settled,
    /// The next reconcile follows a change of an object, at the latest the deadline of the rollout.
    Deadline,
    /// The reconcile is repeated after this delay.
    After(Duration),
    /// The reconcile failed and is repeated after the growing delay for failures.
    Backoff,
    /// The reconcile failed and is repeated after the growing delay for failures, at most this one.
    BackoffUpTo(Duration),
    /// The older revisions are archived first; then the next reconcile follows a change.
    ArchiveOlder,
    /// The finalizer is removed. A revision that is being deleted disappears, and no reconcile follows. An archived one stays, and late
    /// objects of it are looked for until [`watched_for`](decide::watched_for) ends.
    Release,
}

/// Action that a reconcile carries out for a revision.
pub(super) enum Action {
    /// Report the outcome; write no object.
    Report(Outcome, Next),
    /// Apply the objects.
    Apply(Box<Revision>),
    /// Delete the objects. With `orphan`, only release them.
    TearDown { revision: Box<Revision>, orphan: bool },
}

/// Action for a revision, with the writes that precede it.
pub(super) struct Decision {
    /// The action, carried out after the writes.
    pub(super) action: Action,
    /// Digests of the phases for the status.
    pub(super) observed_phases: Option<Vec<ObservedPhase>>,
    /// Secrets that need the revision's owner.
    pub(super) unowned: Vec<SecretKey>,
    /// Objects to cache until the rollout ends, if the action applies them.
    pub(super) content: Option<Arc<Prepared>>,
}

impl From<Action> for Decision {
    fn from(action: Action) -> Self {
        Self {
            action,
            observed_phases: None,
            unowned: Vec::new(),
            content: None,
        }
    }
}

/// Decides the action for `set`. `identity` names the revision and its siblings.
pub(super) fn decide(
    set: &ClusterObjectSet,
    goal: Goal,
    gathered: Gathered,
    identity: Identity,
    policies: Policies,
) -> Decision {
    match goal {
        Goal::Archived | Goal::Deleted => tear_down(set, goal, gathered, identity, policies).into(),
        Goal::Applied | Goal::Reached => apply(set, gathered, identity, policies),
    }
}

fn apply(set: &ClusterObjectSet, gathered: Gathered, identity: Identity, policies: Policies) -> Decision {
    let (content, unowned) = match gathered {
        Gathered::Unchanged => return Action::Report(Outcome::RolledOut, Next::ArchiveOlder).into(),
        Gathered::Objects { content, unowned } => (content, unowned),
        Gathered::Mutable(secrets) => {
            let text = format!(
                "the following secrets are not immutable (referenced secrets must have immutable set to true): {}",
                secrets.join(", ")
            );
            return Action::Report(Outcome::Blocked(text), Next::After(BLOCKED_RETRY)).into();
        }
        Gathered::Missing(why) => return Action::Report(Outcome::Retrying(why), Next::Backoff).into(),
    };
    let observed = set.status.as_ref().and_then(|s| s.observed_phases.as_deref());
    let changed = decide::changed(observed.unwrap_or_default(), &content.digests);
    let observed_phases = changed.is_none().then(|| content.digests.clone());
    let action = if let Some(text) = changed {
        Action::Report(Outcome::Blocked(text), Next::After(BLOCKED_RETRY))
    } else if let Some(text) = &content.refused {
        Action::Report(Outcome::Blocked(text.clone()), Next::After(BLOCKED_RETRY))
    } else if let Some(text) = &content.invalid {
        Action::Report(Outcome::Retrying(text.clone()), Next::After(COLLISION_RETRY))
    } else {
        match Prober::new(set.spec.progression_probes.as_deref().unwrap_or_default()) {
            Err(wrong) => Action::Report(Outcome::Blocked(wrong.to_string()), Next::Settled),
            Ok(prober) => match revision(set, &content, identity, policies, prober) {
                Ok(revision) => Action::Apply(Box::new(revision)),
                Err(text) => Action::Report(Outcome::Retrying(text), Next::After(COLLISION_RETRY)),
            },
        }
    };
    Decision {
        action,
        observed_phases,
        unowned,
        content: Some(content),
    }
}

fn tear_down(
    set: &ClusterObjectSet,
    goal: Goal,
    gathered: Gathered,
    identity: Identity,
    policies: Policies,
) -> Action {
    let content = match gathered {
        Gathered::Objects { content, .. } => content,
        // A teardown neither skips unchanged objects nor refuses mutable Secrets.
        Gathered::Unchanged | Gathered::Mutable(_) => {
            return Action::Report(Outcome::Removing(REMOVING.to_owned()), Next::Backoff);
        }
        Gathered::Missing(why) => {
            let text = format!(
                "{REMOVING}; waiting until its objects are known: {why}; delete the Secret to leave its objects to the \
                 garbage collector"
            );
            return Action::Report(Outcome::Removing(text), Next::Backoff);
        }
    };
    // A teardown probes nothing, so a wrong expression does not hold it up.
    match revision(set, &content, identity, policies, Prober::default()) {
        Ok(revision) => Action::TearDown {
            revision: Box::new(revision),
            orphan: goal == Goal::Deleted && set.finalizers().iter().any(|f| f == ORPHAN),
        },
        Err(text) => Action::Report(Outcome::Retrying(text), Next::Backoff),
    }
}

/// Returns the revision in the form of the engine.
fn revision(
    set: &ClusterObjectSet,
    content: &Prepared,
    identity: Identity,
    policies: Policies,
    prober: Prober,
) -> Result<Revision, String> {
    let account = match policies.accounts {
        ServiceAccountPolicy::Ignore => None,
        ServiceAccountPolicy::Impersonate | ServiceAccountPolicy::Require => {
            Account::from_annotations(set).map_err(|error| error.to_string())?
        }
    };
    if account.is_none() && policies.accounts == ServiceAccountPolicy::Require {
        return Err(NO_ACCOUNT.to_owned());
    }
    Ok(Revision {
        identity,
        state: decide::state(set),
        phases: content.phases.clone(),
        prober,
        account,
        custom_resources: decide::custom_resources(set, policies.custom_resources),
        observe: decide::is_paused(set),
    })
}
