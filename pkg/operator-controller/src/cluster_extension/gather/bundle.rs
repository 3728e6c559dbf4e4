//! Pulls and parses a bundle, and checks that the cluster is new enough for it.

use olm_bundle::Bundle;
use olm_image::{Filter, Reference};
use olm_runtime::parsing;
use olm_runtime::workers::without_worker;

use super::image::Located;
use super::kube_version;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// A bundle that was pulled and parsed.
pub(crate) struct Pulled<'a> {
    /// The bundle and its image.
    pub located: Located<'a>,
    /// Manifests and metadata of the image.
    pub bundle: Bundle,
}

/// Pulls the image of the bundle, or reads it from the cache, and parses its manifests. Compares its `minKubeVersion` with the cluster:
/// before the pull if the catalog states it, else afterwards.
pub(crate) async fn pull<'a>(pass: &Pass<'_>, located: Located<'a>) -> Result<Pulled<'a>, Failure> {
    kube_version::check_listed(pass, located.resolved).await?;
    // The signature policy applies to the reference in the catalog, which may be a tag.
    let written = located.resolved.bundle.image.reference();
    let named = written.map_or_else(|_| Reference::from(located.image.clone()), Clone::clone);
    let pulling = pass
        .context
        .images
        .fetch_as(&pass.name, &named, &located.image, Filter::All);
    let unpacked = pass
        .unless_superseded(async { without_worker(pulling).await.map_err(Failure::image) })
        .await?;
    let parsing = tokio::task::spawn_blocking(move || {
        let format = unpacked.labels.get(olm_bundle::FORMAT_LABEL);
        olm_bundle::check_format(format.map(String::as_str).unwrap_or_default()).map_err(Failure::Parse)?;
        // Bundles that wait for their turn are not in memory.
        let _turn = parsing::acquire(olm_bundle_files::size(&unpacked.root));
        let files = olm_bundle_files::read(&unpacked.root)?;
        olm_bundle::parse(&files).map_err(Failure::Parse)
    });
    let bundle = parsing
        .await
        .map_err(|_| Failure::Interrupted("reading the bundle"))??;
    kube_version::check_pulled(pass, located.resolved, &bundle).await?;
    Ok(Pulled { located, bundle })
}
