//! Compares a bundle's `minKubeVersion` with the cluster.

use kube::ResourceExt as _;
use olm_api::keys;
use olm_bundle::{Bundle, kube_version};

use crate::cluster_extension::call::call;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Checks that the cluster is new enough for the bundle, unless an annotation of the extension says that it need not be. The
/// API server is asked at most once for a new revision, and only if the CSV names a version.
pub(crate) async fn check(pass: &Pass<'_>, bundle: &Bundle) -> Result<(), Failure> {
    let Some(needed) = bundle.min_kube_version() else {
        return Ok(());
    };
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
