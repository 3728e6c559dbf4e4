//! Decides if a new revision may be written now.

use jiff::Timestamp;
use olm_api::{ApprovalCause, ApprovalTrigger, AutomaticUpgrades, RolloutApproval, RolloutConfig};
use olm_version::BundleVersion;

use crate::step::Step;
use crate::window::{State, Windows};

/// Change that a new revision brings.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Version of the newest revision that has rolled out.
    pub installed: Option<&'a BundleVersion>,
    /// Version of the newest revision, if it has not rolled out.
    pub rolling_out: Option<&'a BundleVersion>,
    /// Version that the new revision brings.
    pub to: &'a BundleVersion,
    /// True if no object changes but for renewed certificates.
    pub upkeep: bool,
    /// Digest of the plan.
    pub digest: &'a str,
    /// True if the extension gains rights.
    pub new_rights: bool,
    /// True if existing custom resource definitions change or are deleted.
    pub crd_changes: bool,
}

/// Verdict on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The revision may be written.
    Go {
        /// Settings that required the approval, which was given; empty if none was needed.
        approved: Vec<ApprovalCause>,
    },
    /// The plan needs an approval.
    AwaitApproval(Vec<ApprovalCause>),
    /// The plan waits for a window.
    AwaitWindow {
        /// Time of the next opening; `None` if there is none in the calendar.
        next: Option<Timestamp>,
    },
}

/// Returns true if a change may have to wait for an approval or a window.
#[must_use]
pub fn is_gated(rollout: &RolloutConfig) -> bool {
    rollout
        .windows
        .as_ref()
        .is_some_and(|windows| !windows.is_empty())
        || rollout.approval.unwrap_or_default() == RolloutApproval::Manual
        || rollout.automatic.unwrap_or_default() != AutomaticUpgrades::All
        || !triggers(rollout).is_empty()
        // The plan is compared with the joint plan, even if it needs no approval of its own.
        || rollout.joint_plan.is_some()
}

/// Returns the verdict on `change` at `now`; `windows` are those of `rollout`.
#[must_use]
pub fn decide(rollout: &RolloutConfig, windows: &Windows, change: &Change<'_>, now: Timestamp) -> Verdict {
    if change.upkeep {
        // Expired certificates would break the webhooks of an extension that nobody looks at.
        return Verdict::Go { approved: Vec::new() };
    }
    let causes = causes(rollout, change);
    if !causes.is_empty() && rollout.approved_plan.as_deref() != Some(change.digest) {
        return Verdict::AwaitApproval(causes);
    }
    if waits_for_window(change)
        && let State::Closed { next } = windows.state(now)
    {
        return Verdict::AwaitWindow { next };
    }
    Verdict::Go { approved: causes }
}

/// Returns the settings that require an approval.
fn causes(rollout: &RolloutConfig, change: &Change<'_>) -> Vec<ApprovalCause> {
    let step = change
        .installed
        .or(change.rolling_out)
        .map(|from| Step::between(from, change.to));
    let mut causes = Vec::new();
    if rollout.approval.unwrap_or_default() == RolloutApproval::Manual {
        causes.push(ApprovalCause::Manual);
    } else {
        let permitted = match rollout.automatic.unwrap_or_default() {
            AutomaticUpgrades::All => true,
            AutomaticUpgrades::Minor => !matches!(step, Some(Step::Major | Step::Back { .. })),
            AutomaticUpgrades::Patch => matches!(step, None | Some(Step::Same | Step::Patch)),
        };
        if !permitted {
            causes.push(ApprovalCause::Automatic);
        }
    }
    for trigger in triggers(rollout) {
        let cause = match trigger {
            ApprovalTrigger::NewRights if change.new_rights => ApprovalCause::NewRights,
            ApprovalTrigger::CrdChanges if change.crd_changes => ApprovalCause::CrdChanges,
            ApprovalTrigger::MajorVersion if step.is_some_and(Step::is_major) => ApprovalCause::MajorVersion,
            _ => continue,
        };
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes
}

/// Returns true for an upgrade. Installations, downgrades and changes that repair a rollout in progress do not wait.
fn waits_for_window(change: &Change<'_>) -> bool {
    let Some(installed) = change.installed else {
        return false;
    };
    match Step::between(change.rolling_out.unwrap_or(installed), change.to) {
        Step::Back { .. } => false,
        Step::Same => change.rolling_out.is_none(),
        Step::Patch | Step::Minor | Step::Major => true,
    }
}

fn triggers(rollout: &RolloutConfig) -> &[ApprovalTrigger] {
    rollout.require_approval_for.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
