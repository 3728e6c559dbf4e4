//! Images of catalogs: resolved and unpacked, or given up when the process ends.

use std::sync::Arc;

use olm_image::{CanonicalRef, Error, Filter, Puller, Reference, Unpacked};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::storage::CatalogName;

/// The image label that names the folder of the catalog.
const CONFIGS: Filter = Filter::LabelDir(olm_api::keys::CATALOG_CONFIGS_IMAGE_LABEL);

/// Pulls on threads of its own: the puller's futures do not move between threads.
#[derive(Clone)]
pub(super) struct Images {
    puller: Arc<Puller>,
    shutdown: CancellationToken,
}

/// The process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

impl Images {
    pub(super) fn new(puller: Arc<Puller>, shutdown: CancellationToken) -> Self {
        Self { puller, shutdown }
    }

    /// What a reference names now.
    pub(super) async fn resolve(
        &self,
        reference: &Reference,
    ) -> Result<Result<CanonicalRef, Error>, Stopped> {
        let reference = reference.clone();
        self.apart(move |images| {
            Handle::current().block_on(
                images
                    .shutdown
                    .run_until_cancelled(images.puller.resolve(&reference)),
            )
        })
        .await
    }

    /// The unpacked catalog of an image.
    pub(super) async fn fetch(
        &self,
        owner: &CatalogName,
        reference: &CanonicalRef,
    ) -> Result<Result<Unpacked, Error>, Stopped> {
        let (owner, reference) = (owner.clone(), reference.clone());
        self.apart(move |images| {
            let fetch = images.puller.fetch(owner.as_str(), &reference, CONFIGS);
            Handle::current().block_on(images.shutdown.run_until_cancelled(fetch))
        })
        .await
    }

    /// Removes what is unpacked of a catalog.
    pub(super) async fn forget(&self, owner: &CatalogName) -> Result<(), Error> {
        self.puller.forget(owner.as_str()).await
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Option<T> + Send + 'static,
    ) -> Result<T, Stopped> {
        let images = self.clone();
        tokio::task::spawn_blocking(move || work(&images))
            .await
            .ok()
            .flatten()
            .ok_or(Stopped)
    }
}
