//! Checks the namespace that is created with an extension whose spec names none.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt as _};
use olm_api::keys;
use olm_applier::custom_resources::is_kept;

use super::render::Rendered;
use crate::cluster_extension::account;
use crate::cluster_extension::call::call;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Checks that the namespace does not exist, belongs to this extension, or stayed when an extension was removed. Nothing is
/// written into a namespace of others, whatever a bundle suggests.
pub(super) async fn check(pass: &Pass<'_>, rendered: &Rendered<'_>) -> Result<(), Failure> {
    if !rendered.has_namespace {
        return Ok(());
    }
    let name = &rendered.namespace;
    // Registered before the read, so that the end of a namespace in between wakes the extension.
    let waiters = &pass.context.namespace_waiters;
    waiters.insert(name, &pass.name);
    let api: Api<Namespace> = Api::all(account::reader(pass.context, pass.extension)?);
    let what = format!("reading namespace \"{name}\"");
    let Some(found) = call(what, api.get_metadata_opt(name)).await? else {
        waiters.remove(&pass.name);
        return Ok(());
    };
    if found.metadata.deletion_timestamp.is_some() {
        return Err(Failure::NamespaceGoing(name.clone()));
    }
    let ours = found.labels().get(keys::OWNER_NAME_LABEL) == Some(&pass.name);
    if ours || is_kept(&found.metadata) {
        waiters.remove(&pass.name);
        return Ok(());
    }
    Err(Failure::NamespaceTaken(name.clone()))
}
