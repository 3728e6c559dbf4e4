//! Reads packages from catalogd.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use olm_fbc::PackageContent;
use olm_runtime::tls::Profile;
use parking_lot::Mutex;
use reqwest::{
    Response, StatusCode,
    header::{HeaderName, HeaderValue},
};
use tokio::sync::Semaphore;
use url::Url;

use crate::{
    cache::{Cache, Key, Known},
    connection::{Connected, Connections},
    error::ClientError,
    names::Names,
    providers::Providers,
    read::Reading,
    trust::Trust,
};

/// Our catalogd's name for the content that an answer is of.
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("olm-content-digest");

/// A catalog as its status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRef {
    /// Its name.
    pub name: String,
    /// `status.urls.base`.
    pub base_url: String,
    /// `status.resolvedSource.image.ref`, or its digest: what the content is cached by. Answers of another digest are refused;
    /// if it is empty, any content is taken.
    pub digest: String,
}

/// Content of a package in a catalog, present or former.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Content of the package; `None` if the catalog has no such package.
    pub content: Option<Arc<PackageContent>>,
    /// Set if `content` is what the catalog had before its present digest.
    pub former: Option<Former>,
}

/// Reason why the former content of a package stands in for the present one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// Time of the first read that failed.
    pub since: SystemTime,
    /// Failure of the last read, in one line.
    pub why: String,
}

/// How much is read and kept. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The metas of one package.
    pub package: u64,
    /// Memory of one package.
    pub footprint: u64,
    /// A whole catalog, when it has to be read for one package.
    pub catalog: u64,
    /// Memory of all packages kept.
    pub cache: u64,
    /// Packages that are read at the same time: each is parsed as it comes.
    pub reads: usize,
    /// Time that one read of a package may take, once it has its turn.
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

/// Reads packages, and keeps them.
#[derive(Debug)]
pub struct CatalogClient {
    pub(crate) trust: Trust,
    /// A file with the bearer token to bring.
    pub(crate) token: Option<PathBuf>,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) providers: Providers,
    pub(crate) names: Names,
    cache: Mutex<Cache>,
    /// Made at the first request, and anew if TLS fails (authorities change) or a replica has other content.
    pub(crate) http: tokio::sync::Mutex<Option<Connected>>,
    /// One read at a time of a package: who comes second finds it in the cache.
    reading: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>,
    turns: Semaphore,
}

impl CatalogClient {
    /// A client with the default limits.
    pub fn new(trust: Trust) -> Self {
        Self::with_limits(trust, Limits::default())
    }

    /// A client with other limits.
    pub fn with_limits(trust: Trust, limits: Limits) -> Self {
        Self {
            trust,
            token: None,
            profile: Profile::default(),
            limits,
            providers: Providers::default(),
            names: Names::default(),
            cache: Mutex::new(Cache::new(limits.cache)),
            http: tokio::sync::Mutex::default(),
            reading: Mutex::default(),
            turns: Semaphore::new(limits.reads),
        }
    }

    /// Brings the bearer token in a file, read anew for every request, over HTTPS alone. Where it says so, catalogd asks
    /// for one. The token should be made for catalogd's audience: whoever may write a catalog's status says where
    /// it is sent.
    #[must_use]
    pub fn with_token_file(mut self, path: Option<PathBuf>) -> Self {
        self.token = path;
        self
    }

    /// The same client, speaking TLS by another profile than the intermediate one.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Returns a package's content. Asks catalogd only for content that was not read before.
    ///
    /// If the present content cannot be read, returns the former one, marked so, where there is one.
    ///
    /// # Errors
    /// [`ClientError`], if there is no former content either.
    pub async fn package(&self, catalog: &CatalogRef, package: &str) -> Result<Answer, ClientError> {
        let key = (catalog.name.clone(), package.to_owned());
        if let Known::Current(content) = self.cache.lock().get(&key, &catalog.digest) {
            return Ok(current(content));
        }
        let lock = self.reading.lock().entry(key.clone()).or_default().clone();
        let result = {
            let _alone = lock.lock().await;
            self.read(catalog, package, &key).await
        };
        let mut reading = self.reading.lock();
        // Ours and the map's: nobody else waits for it.
        if Arc::strong_count(&lock) <= 2 {
            reading.remove(&key);
        }
        result
    }

    /// Drops all that is kept of a catalog.
    pub fn forget(&self, catalog: &str) {
        self.cache.lock().forget(catalog);
        self.names.forget(catalog);
        self.providers.forget(catalog);
    }

    async fn read(&self, catalog: &CatalogRef, package: &str, key: &Key) -> Result<Answer, ClientError> {
        // Looked up again: another task may have read it meanwhile.
        let known = self.cache.lock().get(key, &catalog.digest);
        let former = match known {
            Known::Current(content) => return Ok(current(content)),
            Known::Former(content) => Some(content),
            Known::Nothing => None,
        };
        // What is known already needs no turn.
        let loaded = {
            let _turn = self.turns.acquire().await;
            let load = tokio::time::timeout(self.limits.time, self.load(catalog, package));
            load.await.unwrap_or_else(|_| {
                Err(ClientError::Timeout {
                    catalog: catalog.name.clone(),
                })
            })
        };
        match (loaded, former) {
            (Ok(reading), _) => {
                let (content, bytes) = reading.finish();
                let content = (!content.is_empty()).then(|| Arc::new(content));
                self.cache
                    .lock()
                    .put(key.clone(), &catalog.digest, content.clone(), bytes);
                Ok(current(content))
            }
            (Err(error), Some(former)) => {
                let why = error.message();
                tracing::warn!(
                    catalog = catalog.name,
                    package,
                    error = why,
                    "the former content of the package stands in"
                );
                let since = self.cache.lock().failed(key, SystemTime::now());
                Ok(Answer {
                    content: Some(former),
                    former: Some(Former { since, why }),
                })
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Reads the package from a replica that has the present content.
    async fn load(&self, catalog: &CatalogRef, package: &str) -> Result<Reading, ClientError> {
        let mut connections = self.connections(catalog).await?;
        loop {
            let read = self.load_over(&mut connections, catalog, package).await;
            if let Some(done) = connections.settle(read).await {
                return done;
            }
        }
    }

    /// The package by catalogd's own selection, else out of the whole catalog.
    async fn load_over(
        &self,
        connections: &mut Connections<'_>,
        catalog: &CatalogRef,
        package: &str,
    ) -> Result<Reading, ClientError> {
        let limit = self.limits.package;
        let by_package = url(catalog, "metas", &[("package", package)])?;
        // 404 also where the endpoint is switched off; then the whole catalog tells which it is.
        let response = match connections.get(by_package).await {
            Err(
                ClientError::NoContent { .. }
                | ClientError::Status {
                    status: StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED,
                    ..
                },
            ) => return self.load_from_all(connections, catalog, package).await,
            response => response?,
        };
        let of_metas = version(&response);
        let reading = Reading::new(catalog, package, self.limits.footprint)
            .absorb(response, limit)
            .await?;
        // The package object itself carries no package field.
        let itself = url(catalog, "metas", &[("schema", "olm.package"), ("name", package)])?;
        let response = connections.get(itself).await?;
        if version(&response) != of_metas {
            return Err(ClientError::Changed {
                catalog: catalog.name.clone(),
            });
        }
        reading.absorb(response, limit).await
    }

    async fn load_from_all(
        &self,
        connections: &mut Connections<'_>,
        catalog: &CatalogRef,
        package: &str,
    ) -> Result<Reading, ClientError> {
        let response = connections.get(url(catalog, "all", &[])?).await?;
        Reading::new(catalog, package, self.limits.footprint)
            .absorb(response, self.limits.catalog)
            .await
    }
}

fn current(content: Option<Arc<PackageContent>>) -> Answer {
    Answer {
        content,
        former: None,
    }
}

/// What tells one content of a catalog from another; not every catalogd says. (An `ETag` is of one selection only.)
fn version(response: &Response) -> Option<HeaderValue> {
    response.headers().get(CONTENT_DIGEST).cloned()
}

pub(crate) fn url(catalog: &CatalogRef, endpoint: &str, query: &[(&str, &str)]) -> Result<Url, ClientError> {
    let refused = || ClientError::Url {
        catalog: catalog.name.clone(),
        url: catalog.base_url.clone(),
    };
    let mut url = Url::parse(&catalog.base_url).map_err(|_| refused())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused());
    }
    url.path_segments_mut()
        .map_err(|()| refused())?
        .pop_if_empty()
        .extend(["api", "v1", endpoint]);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let mut catalog = CatalogRef {
            name: "c".to_owned(),
            base_url: "https://catalogd.svc/catalogs/c/".to_owned(),
            digest: "d".to_owned(),
        };
        let built = url(&catalog, "metas", &[("package", "a&b c")]).unwrap();
        assert_eq!(
            built.as_str(),
            "https://catalogd.svc/catalogs/c/api/v1/metas?package=a%26b+c"
        );
        for bad in ["", "file:///etc", "catalogd"] {
            bad.clone_into(&mut catalog.base_url);
            assert!(url(&catalog, "all", &[]).is_err(), "{bad}");
        }
    }
}
