//! Decides if a verified revision may be written now, and what the status says if it may not.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use olm_api::{ApprovalCause, PendingPlan, RolloutConfig, RolloutStatus, WindowState};
use olm_plan::Plan;
use olm_rollout::{Change, State, Verdict, Windows};
use olm_status::cluster_extension::Progress;
use olm_status::upgrade::Upgrade;

use super::desired_state::NewRevision;
use super::history::{BundleRef, History};
use super::plan;

/// Verdict on a new revision.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// The revision may be written. Lists the settings that required its approval; empty if none did.
    Granted(Vec<ApprovalCause>),
    /// The revision waits.
    Waiting(Waiting),
}

/// A revision that waits for its approval, for a window or for the installed operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Progress for the status.
    pub progress: Progress,
    /// The plan for the status.
    pub pending: PendingPlan,
}

impl Waiting {
    /// Returns the upgrade for the status: `otherwise` unless the plan brings another version or release than the installed one.
    pub fn upgrade(&self, history: &History, otherwise: Upgrade) -> Upgrade {
        let Some(installed) = &history.installed else {
            return otherwise;
        };
        let (installed, planned) = (&installed.bundle.version, &self.pending.bundle);
        // An empty release is recorded for a bundle that has none.
        let release = |recorded: Option<&str>| recorded.unwrap_or_default().to_owned();
        if *installed.as_str() == planned.version
            && release(installed.release()) == release(planned.release.as_deref())
        {
            return otherwise;
        }
        match &self.progress {
            Progress::AwaitingApproval(message) => Upgrade::AwaitingApproval(message.clone()),
            Progress::AwaitingWindow(message) => Upgrade::AwaitingWindow(message.clone()),
            Progress::HeldByOperator(message) => Upgrade::HeldByOperator(message.clone()),
            _ => otherwise,
        }
    }
}

/// Settings and facts that an admission depends on, besides the plan.
pub struct Circumstances<'a> {
    /// Name of the extension.
    pub extension: &'a str,
    /// `spec.rollout`.
    pub rollout: &'a RolloutConfig,
    /// Windows of `spec.rollout`.
    pub windows: &'a Windows,
    /// The revisions.
    pub history: &'a History,
    /// Time of the pass.
    pub now: Timestamp,
}

/// Decides if the revision `new` of `bundle` may be written now.
pub fn admission(at: &Circumstances<'_>, new: &NewRevision, bundle: &BundleRef, plan: &Plan) -> Admission {
    let rolling_out = at.history.newest().filter(|revision| !revision.succeeded);
    let change = Change {
        installed: at
            .history
            .installed
            .as_ref()
            .map(|revision| &revision.bundle.version),
        rolling_out: rolling_out.map(|revision| &revision.bundle.version),
        to: &bundle.version,
        // A revision from a Helm release gets its annotations, and no object changes.
        upkeep: new.renewal || (new.taken_over.is_some() && plan::changes_nothing(plan)),
        digest: &plan.digest,
        new_rights: plan::gains_rights(plan),
        crd_changes: plan::changes_crds(plan),
    };
    match olm_rollout::decide(at.rollout, at.windows, &change, at.now) {
        Verdict::Go { approved } => Admission::Granted(approved),
        Verdict::AwaitApproval(causes) => {
            let pending = plan::pending(plan, bundle, &causes);
            let required: Vec<&str> = causes.iter().map(|cause| cause.setting()).collect();
            let message = format!(
                "{} waits for approval, required by spec.rollout ({}): {}. Approve it with: kubectl olm approve {} --digest {}",
                subject(bundle),
                required.join(", "),
                counts(&pending),
                at.extension,
                pending.digest
            );
            Admission::Waiting(Waiting {
                progress: Progress::AwaitingApproval(message),
                pending,
            })
        }
        Verdict::AwaitWindow { next } => {
            let pending = plan::pending(plan, bundle, &[]);
            let next = next.map_or_else(|| "at no known time".to_owned(), |next| format!("at {next}"));
            let message = format!(
                "{} waits for the next window of spec.rollout.windows, which opens {next}: {}. It is then rolled out without \
                 further action",
                subject(bundle),
                counts(&pending)
            );
            Admission::Waiting(Waiting {
                progress: Progress::AwaitingWindow(message),
                pending,
            })
        }
    }
}

pub(super) fn subject(bundle: &BundleRef) -> String {
    match &bundle.catalog {
        Some(catalog) => format!(
            "Version {} (bundle \"{}\" of catalog \"{catalog}\")",
            bundle.version, bundle.name
        ),
        None => format!("Version {} (bundle \"{}\")", bundle.version, bundle.name),
    }
}

pub(super) fn counts(pending: &PendingPlan) -> String {
    let objects = pending.objects;
    format!(
        "objects to create: {}, to change: {}, to delete: {}",
        objects.created, objects.changed, objects.deleted
    )
}

/// Returns the windows' state in the form of the status; `None` without windows.
pub fn window_status(state: State) -> Option<RolloutStatus> {
    match state {
        State::Unrestricted => None,
        State::Open { until } => Some(RolloutStatus {
            window: WindowState::Open,
            closes_at: until.map(Time),
            opens_at: None,
        }),
        State::Closed { next } => Some(RolloutStatus {
            window: WindowState::Closed,
            closes_at: None,
            opens_at: next.map(Time),
        }),
    }
}

/// Time after which windows are read again whose end is not known. Such an end is more than three hours away, so that it becomes known
/// before the windows close.
const REREAD: SignedDuration = SignedDuration::from_hours(1);

/// Returns the time until the state of the windows changes, or until it is to be read again.
pub fn until_change(state: State, now: Timestamp) -> Option<SignedDuration> {
    match state {
        State::Unrestricted => None,
        State::Open { until: None } => Some(REREAD),
        State::Open { until: at } | State::Closed { next: at } => at.map(|at| at.duration_since(now)),
    }
}

#[cfg(test)]
mod tests;
