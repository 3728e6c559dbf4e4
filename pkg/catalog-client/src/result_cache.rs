//! Cache of results from a catalog's metas, by content digest.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::Read;

use olm_runtime::locks::Locks;
use olm_text::name::CatalogName;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::catalog_ref::CatalogRef;
use crate::connection::Transport;
use crate::error::ClientError;
use crate::read::{LimitedReader, reader_until};

/// Results by catalog and key.
#[derive(Debug)]
pub(crate) struct ResultCache<K, V> {
    entries: Mutex<HashMap<(CatalogName, K), Entry<V>>>,
    /// Allows one scan at a time per catalog and key: the second reader finds its result in the cache.
    in_progress: Locks<(CatalogName, K)>,
    /// Maximum number of results; beyond it, the cache is cleared.
    capacity: usize,
}

/// Result of one content.
#[derive(Debug)]
struct Entry<V> {
    digest: String,
    value: V,
}

impl<K: Clone + Eq + Hash, V: Clone + Send + 'static> ResultCache<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: Mutex::default(),
            in_progress: Locks::default(),
            capacity,
        }
    }

    /// Returns the result of `scan` on the catalog's metas of a schema. Asks catalogd only if the result is not cached. A
    /// response has at most `limit` bytes.
    pub(crate) async fn get(
        &self,
        transport: &Transport,
        catalog: &CatalogRef,
        key: K,
        (schema, limit): (&str, u64),
        scan: impl FnOnce(&mut dyn Read, &CatalogName) -> Result<V, ClientError> + Send + 'static,
    ) -> Result<V, ClientError> {
        let key = (catalog.name.clone(), key);
        let _guard = self.in_progress.lock(key.clone()).await;
        if let Some(entry) = self.entries.lock().get(&key)
            && entry.digest == catalog.digest
        {
            return Ok(entry.value.clone());
        }
        let metas = catalog.url("metas", &[("schema", schema)])?;
        let response = transport.response(catalog, &metas).await?;
        let name = catalog.name.clone();
        // The response ends when this future is dropped: nobody waits for its thread then.
        let abandoned = CancellationToken::new();
        let _abandons = abandoned.clone().drop_guard();
        let reader = reader_until(response, abandoned.cancelled_owned());
        let value = tokio::task::spawn_blocking(move || scan(&mut LimitedReader::new(reader, limit), &name))
            .await
            .map_err(|_| ClientError::Interrupted {
                catalog: catalog.name.clone(),
            })??;
        let mut entries = self.entries.lock();
        if entries.len() >= self.capacity {
            entries.clear();
        }
        let entry = Entry {
            digest: catalog.digest.clone(),
            value: value.clone(),
        };
        entries.insert(key, entry);
        Ok(value)
    }

    /// Drops the results of a catalog.
    pub(crate) fn forget(&self, catalog: &CatalogName) {
        self.entries.lock().retain(|(name, _), _| name != catalog);
    }
}
