//! Garbage collection of content of deleted catalogs.
//!
//! The finalizer removes content while catalogd runs. This covers catalogs whose finalizer was removed by force, and
//! content on another replica's disk. Work on a catalog holds its lock. The collector takes the lock and asks the API
//! server once more for each candidate, so content in use is never removed.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use olm_api::ClusterCatalog;
use olm_image::Puller;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::controller::DeletedCatalogs;
use crate::storage::{Store, ValidCatalogName};

/// Timeout of one call to the API server.
const API_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum delay before an incomplete round is repeated.
const RETRY: Duration = Duration::from_secs(30);
/// Page size of catalog lists.
const PAGE: u32 = 500;

/// Garbage collector of stored content and unpacked images.
pub struct Collector {
    /// The API server.
    pub client: Client,
    /// The served content.
    pub store: Arc<Store>,
    /// The cache of images.
    pub puller: Arc<Puller>,
    /// Directory with one folder of unpacked images per catalog.
    pub unpacked: PathBuf,
}

impl Collector {
    /// Collects at the start, every `interval`, and when catalogs are deleted, until `shutdown`.
    pub async fn run(&self, interval: Duration, mut deleted: DeletedCatalogs, shutdown: CancellationToken) {
        loop {
            let pause = match shutdown.run_until_cancelled(self.collect()).await {
                Some(Ok(true)) | None => interval,
                Some(Ok(false)) => interval.min(RETRY),
                Some(Err(error)) => {
                    tracing::warn!(error, "garbage collection failed; retrying");
                    interval.min(RETRY)
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                _ = deleted.next() => {}
            }
        }
    }

    /// Runs one round. Returns false if a deleted catalog was locked.
    async fn collect(&self) -> Result<bool, String> {
        let existing = self.existing().await?;
        let candidates: Vec<ValidCatalogName> = self
            .on_disk()
            .await?
            .into_iter()
            .filter(|name| !existing.contains(name.as_str()))
            .collect();
        let mut complete = true;
        for name in candidates {
            let Some(guard) = self.store.try_lock(&name) else {
                complete = false;
                continue;
            };
            let api = Api::<ClusterCatalog>::all(self.client.clone());
            match timeout(API_TIMEOUT, api.get_metadata_opt(name.as_str())).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(_))) => continue,
                Ok(Err(error)) => return Err(format!("error listing clustercatalogs: {error}")),
                Err(_) => return Err("error listing clustercatalogs: no answer in time".to_owned()),
            }
            let (store, owner) = (self.store.clone(), name.clone());
            let removed = tokio::task::spawn_blocking(move || {
                let _guard = guard;
                store.remove(&owner)
            });
            match removed.await {
                Ok(Ok(())) => tracing::info!(catalog = %name, "removed the content of a deleted catalog"),
                Ok(Err(error)) => {
                    tracing::warn!(catalog = %name, error = olm_text::chain(&error), "could not remove content");
                }
                Err(error) => tracing::warn!(catalog = %name, %error, "could not remove content"),
            }
            if let Err(error) = self.puller.forget(name.as_str()).await {
                tracing::warn!(catalog = %name, error = error.message(), "could not remove the unpacked image");
            }
        }
        Ok(complete)
    }

    /// Returns the names of all ClusterCatalogs.
    async fn existing(&self) -> Result<BTreeSet<String>, String> {
        let api = Api::<ClusterCatalog>::all(self.client.clone());
        let mut params = ListParams::default().limit(PAGE);
        let mut names = BTreeSet::new();
        loop {
            let page = timeout(API_TIMEOUT, api.list_metadata(&params))
                .await
                .map_err(|_| "error listing clustercatalogs: no answer in time".to_owned())?
                .map_err(|error| format!("error listing clustercatalogs: {error}"))?;
            let own = |object: PartialObjectMeta<ClusterCatalog>| object.metadata.name;
            names.extend(page.items.into_iter().filter_map(own));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(names),
            }
        }
    }

    /// Returns the catalogs with content or unpacked images on disk.
    async fn on_disk(&self) -> Result<BTreeSet<ValidCatalogName>, String> {
        let (store, unpacked) = (self.store.clone(), self.unpacked.clone());
        let listed =
            tokio::task::spawn_blocking(move || {
                let mut names: BTreeSet<_> = store.names()?.into_iter().collect();
                if let Ok(entries) = std::fs::read_dir(&unpacked) {
                    names.extend(entries.flatten().filter_map(|entry| {
                        ValidCatalogName::new(entry.file_name().into_string().ok()?).ok()
                    }));
                }
                Ok::<_, crate::storage::StorageError>(names)
            });
        match listed.await {
            Ok(Ok(names)) => Ok(names),
            Ok(Err(error)) => Err(format!(
                "error reading cache directory: {}",
                olm_text::chain(&error)
            )),
            Err(error) => Err(format!("error reading cache directory: {error}")),
        }
    }
}
