//! Removes what is kept of catalogs that are gone.
//!
//! The finalizer does this while catalogd runs; this is for what a catalog leaves that was deleted
//! by force, or when its content moved to another replica's disk. Whoever is at work on a catalog
//! holds its lock, and every candidate is asked for once more under it, so nothing in flight goes.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use olm_api::ClusterCatalog;
use olm_image::Puller;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::controller::Vanished;
use crate::storage::{CatalogName, Store};

/// How long one call to the API server may take.
const CALL: Duration = Duration::from_secs(30);
/// Longest delay before a round that did not collect everything is made again.
const RETRY: Duration = Duration::from_secs(30);
/// Catalogs asked for in one answer.
const PAGE: u32 = 500;

/// What is collected where.
pub struct Collector {
    /// The API server.
    pub client: Client,
    /// The served content.
    pub store: Arc<Store>,
    /// The cache of images.
    pub puller: Arc<Puller>,
    /// Where the cache of images keeps a folder per owner.
    pub unpacked: PathBuf,
}

impl Collector {
    /// Collects now, every `interval`, and when catalogs vanish, until `shutdown`.
    pub async fn run(&self, interval: Duration, mut vanished: Vanished, shutdown: CancellationToken) {
        loop {
            let pause = match shutdown.run_until_cancelled(self.round()).await {
                Some(Ok(true)) | None => interval,
                Some(Ok(false)) => interval.min(RETRY),
                Some(Err(error)) => {
                    tracing::warn!(error, "nothing collected; trying again");
                    interval.min(RETRY)
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                _ = vanished.next() => {}
            }
        }
    }

    /// One round; false if somebody was at work on a catalog that is gone.
    async fn round(&self) -> Result<bool, String> {
        let existing = self.existing().await?;
        let candidates: Vec<CatalogName> = self
            .kept()
            .await?
            .into_iter()
            .filter(|name| !existing.contains(name.as_str()))
            .collect();
        let mut all = true;
        for name in candidates {
            let Some(guard) = self.store.try_lock(&name) else {
                all = false;
                continue;
            };
            let api = Api::<ClusterCatalog>::all(self.client.clone());
            match timeout(CALL, api.get_metadata_opt(name.as_str())).await {
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
                Ok(Ok(())) => tracing::info!(catalog = %name, "content of a catalog that is gone removed"),
                Ok(Err(error)) => {
                    tracing::warn!(catalog = %name, error = olm_runtime::telemetry::chain(&error), "content stays");
                }
                Err(error) => tracing::warn!(catalog = %name, %error, "content stays"),
            }
            if let Err(error) = self.puller.forget(name.as_str()).await {
                tracing::warn!(catalog = %name, error = error.message(), "unpacked image stays");
            }
        }
        Ok(all)
    }

    /// The names of all catalogs.
    async fn existing(&self) -> Result<BTreeSet<String>, String> {
        let api = Api::<ClusterCatalog>::all(self.client.clone());
        let mut params = ListParams::default().limit(PAGE);
        let mut names = BTreeSet::new();
        loop {
            let page = timeout(CALL, api.list_metadata(&params))
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

    /// The catalogs of which something is on disk.
    async fn kept(&self) -> Result<BTreeSet<CatalogName>, String> {
        let (store, unpacked) = (self.store.clone(), self.unpacked.clone());
        let listed = tokio::task::spawn_blocking(move || {
            let mut names: BTreeSet<_> = store.names()?.into_iter().collect();
            if let Ok(entries) = std::fs::read_dir(&unpacked) {
                names.extend(
                    entries
                        .flatten()
                        .filter_map(|entry| CatalogName::new(entry.file_name().into_string().ok()?).ok()),
                );
            }
            Ok::<_, crate::storage::StorageError>(names)
        });
        match listed.await {
            Ok(Ok(names)) => Ok(names),
            Ok(Err(error)) => Err(format!(
                "error reading cache directory: {}",
                olm_runtime::telemetry::chain(&error)
            )),
            Err(error) => Err(format!("error reading cache directory: {error}")),
        }
    }
}
