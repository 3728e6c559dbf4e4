//! The puller, which a reconcile waits for without a worker.

use olm_image::{CanonicalRef, Filter, Puller, Reference, Unpacked};
use olm_runtime::workers::aside;

use super::failure::Failure;

/// The image that `reference` names now.
pub(crate) async fn resolve(puller: &Puller, reference: Reference) -> Result<CanonicalRef, Failure> {
    aside(puller.resolve(&reference)).await.map_err(Failure::image)
}

/// The unpacked content of `image`, which was `named` so, kept for `owner`.
pub(crate) async fn fetch(
    puller: &Puller,
    owner: String,
    named: Reference,
    image: CanonicalRef,
) -> Result<Unpacked, Failure> {
    aside(puller.fetch_as(&owner, &named, &image, Filter::All))
        .await
        .map_err(Failure::image)
}
