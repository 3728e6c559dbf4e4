//! Events of a pass that no change of the status announces.

use kube::Resource as _;
use olm_api::event::Reason;

use crate::cluster_extension::decide::BundleRef;
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
