//! The puller, on threads of its own.
//!
//! Its futures hold async closures over borrowed values, which the compiler cannot prove to be `Send`; a controller's reconciles
//! must be. A thread that waits for the future needs no such proof. The puller has its own limits of time.

use std::sync::Arc;

use olm_image::{CanonicalRef, Filter, Puller, Reference, Unpacked};
use tokio::runtime::Handle;

use super::failure::Failure;

/// The image that `reference` names now.
pub(crate) async fn resolve(puller: &Arc<Puller>, reference: Reference) -> Result<CanonicalRef, Failure> {
    let (puller, runtime) = (puller.clone(), Handle::current());
    let work = move || {
        runtime
            .block_on(puller.resolve(&reference))
            .map_err(Failure::image)
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::Interrupted("finding the image"))?
}

/// The unpacked content of `image`, which was `named` so, kept for `owner`.
pub(crate) async fn fetch(
    puller: &Arc<Puller>,
    owner: String,
    named: Reference,
    image: CanonicalRef,
) -> Result<Unpacked, Failure> {
    let (puller, runtime) = (puller.clone(), Handle::current());
    let work = move || {
        runtime
            .block_on(puller.fetch_as(&owner, &named, &image, Filter::All))
            .map_err(Failure::image)
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::Interrupted("pulling the image"))?
}
