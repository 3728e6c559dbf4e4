//! Images of catalogs: resolved and unpacked, or given up when the process ends.

use std::sync::Arc;

use olm_image::{CanonicalRef, Error, Filter, Puller, Reference, Unpacked};
use olm_runtime::workers::aside;
use tokio_util::sync::CancellationToken;

use crate::storage::CatalogName;

/// The image label that names the folder of the catalog.
const CONFIGS: Filter = Filter::LabelDir(olm_api::keys::CATALOG_CONFIGS_IMAGE_LABEL);

/// A puller that stops with the process. Who waits for it keeps no worker of the controller.
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
        self.shutdown
            .run_until_cancelled(aside(self.puller.resolve(reference)))
            .await
            .ok_or(Stopped)
    }

    /// The unpacked catalog of an image.
    pub(super) async fn fetch(
        &self,
        owner: &CatalogName,
        requested: &Reference,
        reference: &CanonicalRef,
    ) -> Result<Result<Unpacked, Error>, Stopped> {
        let fetch = self
            .puller
            .fetch_as(owner.as_str(), requested, reference, CONFIGS);
        let fetched = self.shutdown.run_until_cancelled(aside(fetch)).await;
        fetched.ok_or(Stopped)
    }

    /// What the status says about signatures that are not verified.
    pub(super) fn warning(&self) -> Option<String> {
        self.puller.warning().map(str::to_owned)
    }

    /// Removes what is unpacked of a catalog.
    pub(super) async fn forget(&self, owner: &CatalogName) -> Result<(), Error> {
        self.puller.forget(owner.as_str()).await
    }
}
