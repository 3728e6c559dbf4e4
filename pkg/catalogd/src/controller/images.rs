//! Resolves and unpacks catalog images until the process shuts down.

use std::sync::Arc;

use olm_image::{CanonicalRef, Error, Fetched, Filter, Layers, Puller, Reference, Unpacked};
use olm_runtime::workers::without_worker;
use tokio_util::sync::CancellationToken;

use super::Judgement;
use crate::storage::{Origin, ValidCatalogName};

/// Image label that names the catalog's directory.
const CONFIGS: Filter = Filter::LabelDir(olm_api::keys::CATALOG_CONFIGS_IMAGE_LABEL);

/// Puller that stops at shutdown. A waiting pull does not occupy a worker of the controller.
pub(super) struct Images {
    puller: Arc<Puller>,
    shutdown: CancellationToken,
}

/// The process is shutting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShuttingDown;

impl Images {
    pub(super) fn new(puller: Arc<Puller>, shutdown: CancellationToken) -> Self {
        Self { puller, shutdown }
    }

    /// Resolves a reference to a digest.
    pub(super) async fn resolve(
        &self,
        reference: &Reference,
    ) -> Result<Result<CanonicalRef, Error>, ShuttingDown> {
        self.shutdown
            .run_until_cancelled(without_worker(self.puller.resolve(reference)))
            .await
            .ok_or(ShuttingDown)
    }

    /// Pulls a catalog image, without unpacking it.
    pub(super) async fn fetch(
        &self,
        owner: &ValidCatalogName,
        requested: &Reference,
        reference: &CanonicalRef,
    ) -> Result<Result<Fetched, Error>, ShuttingDown> {
        let fetch = self
            .puller
            .fetch_layers(owner.as_str(), requested, reference, CONFIGS);
        let fetched = self.shutdown.run_until_cancelled(without_worker(fetch)).await;
        fetched.ok_or(ShuttingDown)
    }

    /// Unpacks the layers of a catalog image.
    pub(super) async fn unpack(&self, layers: Layers) -> Result<Result<Unpacked, Error>, ShuttingDown> {
        let unpack = without_worker(layers.unpack());
        let unpacked = self.shutdown.run_until_cancelled(unpack).await;
        unpacked.ok_or(ShuttingDown)
    }

    /// Returns true if stored content is accepted by the present signature policy, false if its signatures must be
    /// verified first.
    ///
    /// # Errors
    /// The policy cannot be used, or rejects the content whatever its signatures.
    pub(super) async fn accepts(&self, origin: &Origin) -> Result<bool, Error> {
        let resolved: CanonicalRef = origin.resolved.parse()?;
        let requested = judged_reference(&origin.requested, &resolved);
        let required = self.puller.judge(&requested, &resolved).await?;
        Ok(required.is_none() || required == origin.verified)
    }

    /// Judges stored content by the present signature policy.
    pub(super) async fn judge(&self, origin: &Origin) -> Judgement {
        match self.accepts(origin).await {
            Ok(true) => Judgement::Accepted,
            Ok(false) => Judgement::Unverified,
            Err(error) if is_refusal(&error) => Judgement::Refused,
            Err(_) => Judgement::Unknown,
        }
    }

    /// Returns the warning about unverified signatures for the status.
    pub(super) fn warning(&self) -> Option<String> {
        self.puller.warning().map(str::to_owned)
    }

    /// Removes the unpacked image of a catalog.
    pub(super) async fn forget(&self, owner: &ValidCatalogName) -> Result<(), Error> {
        self.puller.forget(owner.as_str()).await
    }
}

/// Returns true if the signature policy refuses an image. A policy that cannot be used refuses nothing.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Refused { .. })
}

/// Returns the reference that the signature policy applies to: the one that the user requested, also if only the digest
/// is pulled.
pub(super) fn judged_reference(requested: &str, resolved: &CanonicalRef) -> Reference {
    requested.parse().unwrap_or_else(|_| resolved.clone().into())
}
