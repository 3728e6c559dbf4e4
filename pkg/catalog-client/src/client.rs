//! Reads packages from catalogd.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use olm_fbc::PackageContent;
use olm_runtime::tls::Profile;
use parking_lot::Mutex;
use reqwest::{
    Client, Response, StatusCode,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
    redirect,
};
use url::Url;

use crate::{
    cache::{Cache, Key, Known},
    error::ClientError,
    names::Names,
    providers::Providers,
    read::Reading,
    token,
    trust::Trust,
};

/// Our catalogd's name for the content that an answer is of.
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("olm-content-digest");
/// To open a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Silence in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(30);
/// One whole request.
const REQUEST: Duration = Duration::from_mins(5);

/// A catalog as its status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRef {
    /// Its name.
    pub name: String,
    /// `status.urls.base`.
    pub base_url: String,
    /// `status.resolvedSource.image.ref`, or its digest: what the content is cached by.
    pub digest: String,
}

/// How much is read and kept. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The metas of one package.
    pub package: u64,
    /// A whole catalog, when it has to be read for one package.
    pub catalog: u64,
    /// All packages kept.
    pub cache: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            package: 64 * MIB,
            catalog: 4096 * MIB,
            cache: 64 * MIB,
        }
    }
}

/// Reads packages, and keeps them.
#[derive(Debug)]
pub struct CatalogClient {
    trust: Trust,
    /// A file with the bearer token to bring.
    token: Option<PathBuf>,
    profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) providers: Providers,
    pub(crate) names: Names,
    cache: Mutex<Cache>,
    /// Made at the first request, and anew when TLS fails: authorities change.
    http: tokio::sync::Mutex<Option<Client>>,
    /// One read at a time of a package: who comes second finds it in the cache.
    reading: Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>,
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

    /// A package's content; `None` when the catalog has no such package.
    ///
    /// Network only when this digest's package was not read before.
    ///
    /// # Errors
    /// [`ClientError`]; for a failing catalog the last good content is returned instead when
    /// there is one.
    pub async fn package(
        &self,
        catalog: &CatalogRef,
        package: &str,
    ) -> Result<Option<Arc<PackageContent>>, ClientError> {
        let key = (catalog.name.clone(), package.to_owned());
        if let Known::Current(content) = self.cache.lock().get(&key, &catalog.digest) {
            return Ok(content);
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
    }

    async fn read(
        &self,
        catalog: &CatalogRef,
        package: &str,
        key: &Key,
    ) -> Result<Option<Arc<PackageContent>>, ClientError> {
        // Looked up again: another task may have read it meanwhile.
        let known = self.cache.lock().get(key, &catalog.digest);
        let former = match known {
            Known::Current(content) => return Ok(content),
            Known::Former(content) => Some(content),
            Known::Nothing => None,
        };
        match (self.load(catalog, package).await, former) {
            (Ok(reading), _) => {
                let (content, bytes) = reading.finish();
                let content = (!content.is_empty()).then(|| Arc::new(content));
                self.cache
                    .lock()
                    .put(key.clone(), &catalog.digest, content.clone(), bytes);
                Ok(content)
            }
            (Err(error), Some(former)) => {
                tracing::warn!(
                    catalog = catalog.name,
                    package,
                    error = error.message(),
                    "the last good content of the package is used"
                );
                Ok(Some(former))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The package by catalogd's own selection, else out of the whole catalog.
    async fn load(&self, catalog: &CatalogRef, package: &str) -> Result<Reading, ClientError> {
        let limit = self.limits.package;
        let by_package = url(catalog, "metas", &[("package", package)])?;
        // 404 also where the endpoint is switched off; then the whole catalog tells which it is.
        let response = match self.get(catalog, by_package).await {
            Err(ClientError::NoContent { .. }) => return self.load_from_all(catalog, package).await,
            Err(ClientError::Status {
                status: StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED,
                ..
            }) => {
                return self.load_from_all(catalog, package).await;
            }
            response => response?,
        };
        let of_metas = version(&response);
        let reading = Reading::new(catalog, package, limit)
            .absorb(response, limit)
            .await?;
        // The package object itself carries no package field.
        let itself = url(catalog, "metas", &[("schema", "olm.package"), ("name", package)])?;
        let response = self.get(catalog, itself).await?;
        if version(&response) != of_metas {
            return Err(ClientError::Changed {
                catalog: catalog.name.clone(),
            });
        }
        reading.absorb(response, limit).await
    }

    async fn load_from_all(&self, catalog: &CatalogRef, package: &str) -> Result<Reading, ClientError> {
        let response = self.get(catalog, url(catalog, "all", &[])?).await?;
        Reading::new(catalog, package, self.limits.package)
            .absorb(response, self.limits.catalog)
            .await
    }

    /// A successful answer. When TLS fails, once more with the authorities as they are then.
    pub(crate) async fn get(&self, catalog: &CatalogRef, url: Url) -> Result<Response, ClientError> {
        let failed = |error| ClientError::request(&catalog.name, error);
        let token = match &self.token {
            Some(path) if url.scheme() == "https" => Some(token::read(path, &catalog.name).await?),
            _ => None,
        };
        let send = async |client: Client| {
            let mut request = client.get(url.clone());
            if let Some(token) = &token {
                request = request.header(AUTHORIZATION, token.clone());
            }
            request.send().await.map_err(failed)
        };
        let response = match send(self.client(catalog, false).await?).await {
            Err(ClientError::Tls { cause, .. }) => {
                tracing::debug!(catalog = catalog.name, cause, "authorities are read again");
                send(self.client(catalog, true).await?).await?
            }
            response => response?,
        };
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::NOT_FOUND => Err(ClientError::NoContent {
                catalog: catalog.name.clone(),
            }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(ClientError::Denied {
                catalog: catalog.name.clone(),
                status,
                brought: token.is_some(),
            }),
            status => Err(ClientError::Status {
                catalog: catalog.name.clone(),
                status,
            }),
        }
    }

    async fn client(&self, catalog: &CatalogRef, anew: bool) -> Result<Client, ClientError> {
        let mut kept = self.http.lock().await;
        if let Some(client) = kept.as_ref().filter(|_| !anew) {
            return Ok(client.clone());
        }
        let tls = self
            .trust
            .config(&self.profile)
            .await
            .map_err(|cause| ClientError::Trust {
                catalog: catalog.name.clone(),
                cause,
            })?;
        let client = Client::builder()
            .user_agent(concat!("olm/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .timeout(REQUEST)
            .redirect(redirect::Policy::limited(3))
            .build()
            .map_err(|error| ClientError::request(&catalog.name, error))?;
        *kept = Some(client.clone());
        Ok(client)
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
