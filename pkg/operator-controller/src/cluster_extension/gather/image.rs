//! Finds the digest of a bundle's image.

use olm_decide::extension::{BundleRef, CertificateProvider, History, Resolved};
use olm_image::CanonicalRef;
use olm_runtime::workers::without_worker;
use tokio::time::Instant;

use crate::cluster_extension::call::CallError;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::gather::provider::provider;
use crate::cluster_extension::pass::Pass;

/// A resolved bundle with the digest of its image.
pub(crate) struct Located<'a> {
    /// The bundle.
    pub resolved: &'a Resolved,
    /// Image of the bundle, by digest.
    pub image: CanonicalRef,
    /// Issuer of webhook certificates. [`CertificateProvider::None`] if the newest revision has no webhooks.
    pub provider: CertificateProvider,
    /// Failure of the registry, if `image` comes from the newest revision instead.
    pub registry_error: Option<Failure>,
}

/// Returns the image of the bundle by digest.
///
/// If the registry fails, the digest in the newest revision of the same bundle stands in: the objects of that revision need
/// no image.
pub(crate) async fn locate<'a>(
    pass: &Pass<'_>,
    resolved: &'a Resolved,
    history: &History,
) -> Result<Located<'a>, Failure> {
    let bundle = &resolved.bundle;
    let (image, registry_error) = match digest(pass, bundle).await {
        Ok(image) => (image, None),
        Err(Failure::Superseded) => return Err(Failure::Superseded),
        Err(failure) => match recorded(history, bundle) {
            Some(image) => (image, Some(failure)),
            None => return Err(failure),
        },
    };
    Ok(Located {
        resolved,
        image,
        provider: assumed_provider(pass, history).await?,
        registry_error,
    })
}

/// Returns the issuer that identifies the objects. Most bundles have no webhooks, so the cluster is asked only if the newest
/// revision may have some. Without a revision there is nothing to compare, and rendering asks for a bundle with webhooks.
async fn assumed_provider(pass: &Pass<'_>, history: &History) -> Result<CertificateProvider, CallError> {
    let recorded = history.newest().map(|newest| newest.certificates.as_deref());
    if recorded.is_none_or(|recorded| recorded == Some(CertificateProvider::None.as_str())) {
        return Ok(CertificateProvider::None);
    }
    provider(pass.context).await
}

/// Returns the digest of the image. The registry is asked for tags only, once per interval of the cache.
pub(crate) async fn digest(pass: &Pass<'_>, bundle: &BundleRef) -> Result<CanonicalRef, Failure> {
    let tags = &pass.context.tags;
    let reference = bundle.image.reference();
    let reference = reference.map_err(|error| Failure::image(error.clone().into()))?;
    if let Some(image) = reference.canonical() {
        tags.remove(&pass.name);
        return Ok(image);
    }
    if let Some(image) = tags.get(&pass.name, bundle.image.text(), Instant::now()) {
        return Ok(image);
    }
    let resolving = without_worker(pass.context.images.resolve(reference));
    let image = pass
        .unless_superseded(async { resolving.await.map_err(Failure::image) })
        .await?;
    tags.insert(&pass.name, bundle.image.text(), &image, Instant::now());
    Ok(image)
}

/// Returns the image of the newest revision if the revision holds this bundle from the same reference.
fn recorded(history: &History, bundle: &BundleRef) -> Option<CanonicalRef> {
    let newest = history
        .newest()
        .filter(|newest| newest.bundle.same_bundle(bundle) && newest.bundle.image == bundle.image)?;
    newest.image.clone()
}
