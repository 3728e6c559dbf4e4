//! Client that reads packages from catalogd.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use olm_fbc::PackageContent;
use olm_runtime::{locks::Locks, tls::Profile};
use olm_text::name::{CatalogName, PackageName};
use parking_lot::Mutex;
use reqwest::{
    Response, StatusCode,
    header::{HeaderName, HeaderValue},
};
use tokio::sync::Semaphore;

use crate::{
    cache::{Cache, Key, Lookup},
    catalog_ref::CatalogRef,
    connection::{Connections, Transport},
    error::ClientError,
    names::{self, PackageNames},
    providers::{self, Providers},
    read::{PackageReader, Slot},
    trust::Trust,
};

/// Header of our catalogd with the digest of the content.
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("olm-content-digest");

/// Content of a package in a catalog, current or stale.
#[derive(Clone, Debug)]
pub struct PackageAnswer {
    /// Content of the package; `None` if the catalog has no such package.
    pub content: Option<Arc<PackageContent>>,
    /// Set if `content` is from before the catalog's current digest.
    pub former: Option<StaleReason>,
}

/// Reason why stale content stands in for the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleReason {
    /// Time of the first failed read.
    pub since: SystemTime,
    /// Error of the last read, in one line.
    pub why: String,
}

/// Limits on reads and on the cache. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of one package's metas.
    pub package: u64,
    /// Memory of one package.
    pub footprint: u64,
    /// Size of a whole catalog, if it must be read for one package.
    pub catalog: u64,
    /// Memory of all cached packages.
    pub cache: u64,
    /// Number of concurrent reads; each package is parsed while it arrives.
    pub reads: usize,
    /// Timeout of one read of a package, without the wait for a slot.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            package: 64 * MIB,
            footprint: 160 * MIB,
            catalog: 4096 * MIB,
            cache: 64 * MIB,
            reads: 4,
            time: Duration::from_mins(2),
        }
    }
}

/// Client of catalogd with a cache of packages.
#[derive(Debug)]
pub struct CatalogClient {
    transport: Transport,
    limits: Limits,
    providers: Providers,
    names: PackageNames,
    cache: Mutex<Cache>,
    /// Allows one read at a time per package: the second reader finds it in the cache.
    in_progress: Locks<Key>,
    read_slots: Arc<Semaphore>,
}

impl CatalogClient {
    /// Creates a client with the default limits.
    pub fn new(trust: Trust) -> Self {
        Self::with_limits(trust, Limits::default())
    }

    /// Creates a client with other limits.
    pub fn with_limits(trust: Trust, limits: Limits) -> Self {
        Self {
            transport: Transport::new(trust),
            limits,
            providers: providers::cache(),
            names: names::cache(),
            cache: Mutex::new(Cache::new(limits.cache)),
            in_progress: Locks::default(),
            read_slots: Arc::new(Semaphore::new(limits.reads)),
        }
    }

    /// Sends the bearer token in a file, read again for every request, over HTTPS only. catalogd requires one with
    /// `--catalogs-server-require-token`. The token should be limited to catalogd's audience: whoever may write a
    /// catalog's status decides where it is sent.
    #[must_use]
    pub fn with_token_file(mut self, path: Option<PathBuf>) -> Self {
        self.transport.token = path;
        self
    }

    /// Sets another TLS profile than the intermediate one.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.transport.profile = profile;
        self
    }

    /// Returns a package's content. Asks catalogd only for content that is not cached.
    ///
    /// If the current content cannot be read, returns stale content, marked as such, if there is any.
    ///
    /// # Errors
    /// [`ClientError`], if there is no stale content either.
    pub async fn package(
        &self,
        catalog: &CatalogRef,
        package: &PackageName,
    ) -> Result<PackageAnswer, ClientError> {
        let key = (catalog.name.clone(), package.clone());
        if let Lookup::Hit(content) = self.cache.lock().get(&key, &catalog.digest) {
            return Ok(fresh(content));
        }
        let _guard = self.in_progress.lock(key.clone()).await;
        self.read(catalog, package, &key).await
    }

    /// Returns the names of the packages of `catalog`, sorted; only the first 512 KiB of them.
    ///
    /// # Errors
    /// [`ClientError`]; also if catalogd does not support filters.
    pub async fn package_names(&self, catalog: &CatalogRef) -> Result<Arc<[PackageName]>, ClientError> {
        names::get(&self.names, &self.transport, catalog, self.limits.package).await
    }

    /// Returns the packages of `catalog` with a bundle that provides the API (a property `olm.gvk`), by name, at most
    /// 16.
    ///
    /// # Errors
    /// [`ClientError`]; also if catalogd does not support filters.
    pub async fn providers(
        &self,
        catalog: &CatalogRef,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Vec<PackageName>, ClientError> {
        let api = (group.to_owned(), version.to_owned(), kind.to_owned());
        providers::get(
            &self.providers,
            &self.transport,
            catalog,
            api,
            self.limits.catalog,
        )
        .await
    }

    /// Drops the cached data of a catalog.
    pub fn forget(&self, catalog: &CatalogName) {
        self.cache.lock().forget(catalog);
        self.names.forget(catalog);
        self.providers.forget(catalog);
    }

    async fn read(
        &self,
        catalog: &CatalogRef,
        package: &PackageName,
        key: &Key,
    ) -> Result<PackageAnswer, ClientError> {
        // Looked up again: another task may have read the content meanwhile.
        let cached = self.cache.lock().get(key, &catalog.digest);
        let former = match cached {
            Lookup::Hit(content) => return Ok(fresh(content)),
            Lookup::Stale(content) => Some(content),
            Lookup::Miss => None,
        };
        // Cached content needs no slot.
        let loaded = {
            // The semaphore is never closed.
            let slot = self.read_slots.clone().acquire_owned().await.ok().map(Arc::new);
            let load = tokio::time::timeout(self.limits.time, self.load(catalog, package, slot));
            load.await.unwrap_or_else(|_| {
                Err(ClientError::Timeout {
                    catalog: catalog.name.clone(),
                })
            })
        };
        match (loaded, former) {
            (Ok(reader), _) => {
                let (content, bytes) = reader.finish();
                let content = (!content.is_empty()).then(|| Arc::new(content));
                self.cache
                    .lock()
                    .put(key.clone(), &catalog.digest, content.clone(), bytes);
                Ok(fresh(content))
            }
            (Err(error), Some(former)) => {
                let why = error.message();
                tracing::warn!(
                    catalog = catalog.name.as_str(),
                    package = package.as_str(),
                    error = why,
                    "using stale content of the package"
                );
                let since = self.cache.lock().failed(key, SystemTime::now());
                Ok(PackageAnswer {
                    content: Some(former),
                    former: Some(StaleReason { since, why }),
                })
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Reads the package from a replica that has the current content.
    async fn load(
        &self,
        catalog: &CatalogRef,
        package: &PackageName,
        slot: Option<Slot>,
    ) -> Result<PackageReader, ClientError> {
        let mut connections = self.transport.connections(catalog).await?;
        loop {
            let reader = PackageReader::new(catalog, package, self.limits.footprint, slot.clone());
            let read = self.load_over(&mut connections, catalog, package, reader).await;
            if let Some(done) = connections.settle(read).await {
                return done;
            }
        }
    }

    /// Reads the package by catalogd's own filter, or from the whole catalog.
    async fn load_over(
        &self,
        connections: &mut Connections<'_>,
        catalog: &CatalogRef,
        package: &PackageName,
        reader: PackageReader,
    ) -> Result<PackageReader, ClientError> {
        let limit = self.limits.package;
        let by_package = catalog.url("metas", &[("package", package)])?;
        // catalogd also responds with 404 if the endpoint is disabled; the whole catalog shows which it is.
        let response = match connections.get(by_package).await {
            Err(
                ClientError::NoContent { .. }
                | ClientError::Status {
                    status: StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED,
                    ..
                },
            ) => return self.load_from_all(connections, catalog, reader).await,
            response => response?,
        };
        let of_metas = version(&response);
        let reader = reader.read_response(response, limit).await?;
        // The package object itself has no package field.
        let itself = catalog.url("metas", &[("schema", "olm.package"), ("name", package)])?;
        let response = connections.get(itself).await?;
        if version(&response) != of_metas {
            return Err(ClientError::Changed {
                catalog: catalog.name.clone(),
            });
        }
        reader.read_response(response, limit).await
    }

    async fn load_from_all(
        &self,
        connections: &mut Connections<'_>,
        catalog: &CatalogRef,
        reader: PackageReader,
    ) -> Result<PackageReader, ClientError> {
        let response = connections.get(catalog.url("all", &[])?).await?;
        reader.read_response(response, self.limits.catalog).await
    }
}

fn fresh(content: Option<Arc<PackageContent>>) -> PackageAnswer {
    PackageAnswer {
        content,
        former: None,
    }
}

/// Returns the digest of the catalog's content, if catalogd sends one. An `ETag` identifies only one selection.
fn version(response: &Response) -> Option<HeaderValue> {
    response.headers().get(CONTENT_DIGEST).cloned()
}
