//! Compares a bundle's `minKubeVersion` with the cluster.

use kube::ResourceExt as _;
use olm_api::keys;
use olm_bundle::{Bundle, kube_version};
use olm_decide::extension::Resolved;

use crate::cluster_extension::call::call;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Checks the `minKubeVersion` that the catalog states, before anything is pulled. Only the bundle itself is refused for a text that is
/// no version.
pub(crate) async fn check_listed(pass: &Pass<'_>, resolved: &Resolved) -> Result<(), Failure> {
    let listed = resolved.min_kube_version.as_deref();
    match listed.filter(|listed| kube_version::is_version(listed)) {
        Some(needed) => check(pass, needed).await,
        None => Ok(()),
    }
}

/// Checks the `minKubeVersion` of a bundle that was pulled. One that equals that of the catalog has been checked.
pub(crate) async fn check_pulled(
    pass: &Pass<'_>,
    resolved: &Resolved,
    bundle: &Bundle,
) -> Result<(), Failure> {
    let listed = resolved.min_kube_version.as_deref();
    let checked = |needed: &str| listed == Some(needed) && kube_version::is_version(needed);
    match bundle.min_kube_version().filter(|needed| !checked(needed)) {
        Some(needed) => check(pass, needed).await,
        None => Ok(()),
    }
}

/// Checks that the cluster is new enough, unless an annotation of the extension says that it need not be.
async fn check(pass: &Pass<'_>, needed: &str) -> Result<(), Failure> {
    let ignored = pass
        .extension
        .annotations()
        .get(keys::IGNORE_MIN_KUBE_VERSION_ANNOTATION);
    if ignored.is_some_and(|ignored| ignored == "true") {
        return Ok(());
    }
    let reading = pass.context.shared.client.apiserver_version();
    let cluster = call("reading the API server's version", reading).await?;
    kube_version::supports(needed, &cluster.git_version).map_err(|error| Failure::KubeVersion {
        error,
        extension: pass.name.clone(),
    })
}
