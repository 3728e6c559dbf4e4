//! `RolledBack`: the extension has the content of a former revision. Present only while that holds. Additive to
//! upstream's conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::condition::{Status, reasons::Extension as Reason, types::Extension as Type};

use crate::condition::{self, NewCondition};

/// Appended to the message of `Ready`.
pub(crate) const NOTE: &str = " It was rolled back; see RolledBack.";

/// Rollback that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// True if a failed upgrade is the cause, false if `spec.rollout.rollBackTo` is.
    pub automatic: bool,
    /// Both versions, the cause, and the change that ends the rollback.
    pub message: String,
}

/// Sets the condition, or removes it if no rollback holds.
pub(crate) fn put(
    conditions: &mut Vec<Condition>,
    rollback: Option<&RolledBack>,
    generation: i64,
    now: &Time,
) {
    let Some(rollback) = rollback else {
        return conditions.retain(|condition| condition.type_ != Type::RolledBack);
    };
    let reason = if rollback.automatic {
        Reason::RolledBack
    } else {
        Reason::RollBackRequested
    };
    let new = NewCondition {
        type_: Type::RolledBack.into(),
        status: Status::True,
        reason: reason.into(),
        message: rollback.message.clone(),
        observed_generation: generation,
    };
    condition::set(conditions, new, now);
}
