//! Events of a pass that no change of the status announces.

use kube::Resource as _;
use olm_api::event::Reason;
use olm_api::rollback::Rollback;
use olm_decide::extension::BundleRef;

use crate::cluster_extension::gather::admit::Approval;
use crate::cluster_extension::pass::Pass;

/// Announces the bundle of a new revision.
pub(super) fn resolved(pass: &Pass<'_>, bundle: &BundleRef, revision: &str) {
    let note = format!(
        "bundle {} with version {} of catalog {} was chosen; it is rolled out as revision {revision}",
        bundle.name,
        bundle.version,
        bundle.catalog.as_deref().unwrap_or("unknown")
    );
    let object = pass.extension.object_ref(&());
    let reason = Reason::Resolved.as_str();
    pass.context.events.normal(object, reason, "Resolve", &note);
}

/// Announces a rollback to the content of `former`.
pub(super) fn rolled_back(pass: &Pass<'_>, rollback: &Rollback, former: &BundleRef, revision: &str) {
    let cause = match &rollback.failure {
        Some(failure) => format!("because its rollout failed: {}", failure.message),
        None => format!("as spec.rollout.rollBackTo: {} requests", rollback.to),
    };
    let note = format!(
        "version {} is rolled back to version {}, {cause}. The content of revision {} is rolled out as revision {revision}",
        rollback.from_version, former.version, rollback.to
    );
    let (object, reason) = (pass.extension.object_ref(&()), Reason::RolledBack.as_str());
    let events = &pass.context.events;
    if rollback.failure.is_some() {
        events.warning(object, reason, "RollBack", &note);
    } else {
        events.normal(object, reason, "RollBack", &note);
    }
}

/// Announces the approval of the plan of a new revision.
pub(super) fn approved(pass: &Pass<'_>, approval: &Approval, revision: &str) {
    let by: Vec<String> = approval
        .approvers
        .iter()
        .map(|approver| match &approver.at {
            Some(at) => format!("field manager \"{}\" at {at}", approver.manager),
            None => format!("field manager \"{}\"", approver.manager),
        })
        .collect();
    let by = if by.is_empty() {
        "an unknown field manager".to_owned()
    } else {
        by.join(" and ")
    };
    let causes: Vec<&str> = approval.causes.iter().map(|cause| cause.setting()).collect();
    let note = format!(
        "plan {} was approved by {by}, as spec.rollout ({}) requires; it is rolled out as revision {revision}",
        approval.digest,
        causes.join(", ")
    );
    let object = pass.extension.object_ref(&());
    let reason = Reason::Approved.as_str();
    pass.context.events.normal(object, reason, "Approve", &note);
}
