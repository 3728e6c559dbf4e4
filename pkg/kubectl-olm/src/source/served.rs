//! Catalog served by catalogd, read directly or through the API server's service proxy.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use olm_catalog_client::{CatalogClient, CatalogRef, ClientError, Trust};
use olm_fbc::{PackageContent, schema};
use olm_runtime::tls;
use olm_text::name::{CatalogName, PackageName};
use reqwest::StatusCode;
use tokio::sync::OnceCell;
use url::Url;

use super::bearer::Bearer;
use super::error::SourceError;
use super::folder;
use super::proxy::Proxy;
use super::query::{AddMeta, FIELDS, Query};
use super::spool::Spool;
use crate::cli::AccessArgs;

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 4 << 30;
/// Time limit of a response.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A served catalog.
#[derive(Debug)]
pub(super) struct ServedCatalog {
    catalog: CatalogRef,
    direct: Arc<Direct>,
    proxy: Option<Proxied>,
    /// The reader, if the content is read for one: catalogd may ask for a token.
    bearer: Option<Arc<Bearer>>,
}

/// Access through the API server, while it works.
#[derive(Debug)]
struct Proxied {
    proxy: Arc<Proxy>,
    works: AtomicBool,
}

/// Access to catalogd's own address.
#[derive(Debug)]
pub(super) struct Direct {
    trust: Authorities,
    clients: OnceCell<(CatalogClient, reqwest::Client)>,
}

/// Authorities trusted besides the system's.
#[derive(Debug)]
pub(super) enum Authorities {
    /// PEM text, if any.
    Given(Option<String>),
    /// Certificate authorities of catalogd's own Secret.
    Secret(Arc<Proxy>),
    /// PEM file, and directory of PEM files; all of them may be absent.
    Files {
        file: Option<PathBuf>,
        directory: Option<PathBuf>,
    },
}

impl Direct {
    pub(super) fn new(trust: Authorities) -> Arc<Self> {
        Arc::new(Self {
            trust,
            clients: OnceCell::new(),
        })
    }

    async fn clients(&self) -> Result<&(CatalogClient, reqwest::Client), SourceError> {
        self.clients
            .get_or_try_init(async || {
                let pem = match &self.trust {
                    Authorities::Given(pem) => pem.clone(),
                    Authorities::Secret(proxy) => proxy.own_ca().await?,
                    Authorities::Files { file, directory } => {
                        of_files(file.clone(), directory.clone()).await?
                    }
                };
                let failed = |error: tls::TlsError| SourceError::Trust {
                    cause: olm_text::chain(&error),
                };
                let extra = match &pem {
                    Some(pem) => tls::authorities(pem.as_bytes()).map_err(failed)?,
                    None => Vec::new(),
                };
                let http = reqwest::Client::builder()
                    .tls_backend_preconfigured(tls::client_config(&extra).map_err(failed)?)
                    .connect_timeout(CONNECT_TIMEOUT)
                    .read_timeout(READ_TIMEOUT)
                    .timeout(REQUEST_TIMEOUT)
                    .build()
                    .map_err(|error| SourceError::Trust {
                        cause: olm_text::chain(&error),
                    })?;
                let trust = Trust::provider(move || {
                    let pem = pem.clone();
                    async move { Ok(pem) }
                });
                Ok((CatalogClient::new(trust), http))
            })
            .await
    }
}

/// Returns the PEM texts of a file and of the files of a directory, as far as these exist.
async fn of_files(file: Option<PathBuf>, directory: Option<PathBuf>) -> Result<Option<String>, SourceError> {
    let mut paths = Vec::from_iter(file);
    if let Some(path) = directory {
        match tls::certificate_files(&path) {
            Ok(found) => paths.extend(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(SourceError::Read { path, source }),
        }
    }
    let mut pem = String::new();
    for path in paths {
        match tokio::fs::read_to_string(&path).await {
            Ok(text) => pem.extend([text.as_str(), "\n"]),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(SourceError::Read { path, source }),
        }
    }
    Ok(Some(pem).filter(|pem| !pem.is_empty()))
}

impl ServedCatalog {
    /// Creates a catalog at a base URL.
    ///
    /// # Errors
    /// The URL is invalid, or the file of authorities cannot be read.
    pub(super) async fn direct(base_url: &str, access: &AccessArgs) -> Result<Self, SourceError> {
        let wrong = || SourceError::Url {
            url: base_url.to_owned(),
        };
        let url = Url::parse(base_url).map_err(|_| wrong())?;
        let last = url
            .path_segments()
            .ok_or_else(wrong)?
            .rfind(|part| !part.is_empty());
        let name = last.unwrap_or("catalog").into();
        let pem = match &access.ca_file {
            None => None,
            Some(path) => {
                Some(
                    tokio::fs::read_to_string(path)
                        .await
                        .map_err(|source| SourceError::Read {
                            path: path.clone(),
                            source,
                        })?,
                )
            }
        };
        let catalog = CatalogRef {
            name,
            base_url: base_url.to_owned(),
            digest: String::new(),
        };
        Ok(Self {
            catalog,
            direct: Direct::new(Authorities::Given(pem)),
            proxy: None,
            bearer: None,
        })
    }

    /// Creates a catalog of the cluster.
    pub(super) fn of_cluster(catalog: CatalogRef, direct: Arc<Direct>, proxy: Arc<Proxy>) -> Self {
        Self {
            catalog,
            direct,
            proxy: Some(Proxied {
                proxy,
                works: AtomicBool::new(true),
            }),
            bearer: None,
        }
    }

    /// Creates a catalog that is read from catalogd's own address for a reader.
    pub(super) fn of_bearer(catalog: CatalogRef, direct: Arc<Direct>, bearer: Arc<Bearer>) -> Self {
        Self {
            catalog,
            direct,
            proxy: None,
            bearer: Some(bearer),
        }
    }

    pub(super) fn name(&self) -> &CatalogName {
        &self.catalog.name
    }

    /// Returns the resolved image of the content; empty for a catalog that is known by its address alone.
    pub(super) fn digest(&self) -> &str {
        &self.catalog.digest
    }

    /// Passes the metas of `query` to `add`.
    pub(super) async fn fold<T: Send + 'static>(
        &self,
        query: &Query,
        state: T,
        add: AddMeta<T>,
    ) -> Result<T, SourceError> {
        let selections: &[Vec<(&str, &str)>] = match query {
            Query::Everything => &[],
            Query::Packages => &[vec![("schema", schema::PACKAGE)]],
            Query::Descriptions => &[
                vec![("schema", schema::PACKAGE)],
                vec![("schema", schema::BUNDLE), ("fields", FIELDS)],
            ],
            Query::Package(name) => &[
                vec![("package", name.as_str())],
                vec![("schema", schema::PACKAGE), ("name", name.as_str())],
            ],
        };
        let mut files = Vec::new();
        for selection in selections {
            match self.download("metas", selection).await {
                Ok(file) => files.push(file),
                // Not every catalogd serves parts of objects; the packages suffice.
                Err(SourceError::NotServed { .. })
                    if matches!(query, Query::Descriptions) && !files.is_empty() =>
                {
                    break;
                }
                // The endpoint may be disabled; read the whole catalog instead.
                Err(SourceError::NotServed { .. }) => {
                    files.clear();
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if files.is_empty() {
            files.push(self.download("all", &[]).await?);
        }
        let place = format!("catalog \"{}\"", self.catalog.name);
        let interrupted = SourceError::Interrupted { place: place.clone() };
        let package = query.package().cloned();
        let work = move || {
            files.into_iter().try_fold(state, |state, file| {
                folder::each(file, &place, package.as_ref(), state, add)
            })
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| interrupted)?
    }

    /// Returns true if a package is read by a query like everything else, not by the controllers' client: that client knows neither the
    /// API server's proxy nor the tokens of readers.
    pub(super) fn reads_by_query(&self) -> bool {
        self.bearer.is_some() || self.proxied().is_some()
    }

    /// Reads a package from catalogd's own address, with the controllers' client.
    pub(super) async fn package(
        &self,
        package: &PackageName,
    ) -> Result<Option<Arc<PackageContent>>, SourceError> {
        let (client, _) = self.direct.clients().await?;
        let package = client.package(&self.catalog, package).await;
        // A process with a single read has no former content.
        package
            .map(|answer| answer.content)
            .map_err(|source| match source {
                ClientError::Denied {
                    status: StatusCode::UNAUTHORIZED,
                    ..
                } => self.token_required(),
                source => SourceError::Client {
                    source: Box::new(source),
                },
            })
    }

    fn token_required(&self) -> SourceError {
        SourceError::TokenRequired {
            catalog: self.catalog.name.clone(),
        }
    }

    fn proxied(&self) -> Option<&Proxied> {
        self.proxy
            .as_ref()
            .filter(|proxied| proxied.works.load(Ordering::Relaxed))
    }

    async fn download(&self, endpoint: &str, query: &[(&str, &str)]) -> Result<File, SourceError> {
        let mut url = self.url(endpoint)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let Some(proxied) = self.proxied() else {
            return self.download_directly(url, endpoint).await;
        };
        match proxied
            .proxy
            .download(&self.catalog.name, &url, endpoint, MAX_RESPONSE_BYTES)
            .await
        {
            Ok(file) => Ok(file),
            // Its own address would ask for the token, too: a catalog that is read through the proxy has no reader.
            Err(
                error @ (SourceError::NotServed { .. }
                | SourceError::TooLong { .. }
                | SourceError::TokenRequired { .. }),
            ) => Err(error),
            Err(refused) => {
                proxied.works.store(false, Ordering::Relaxed);
                let direct = self.download_directly(url, endpoint).await;
                direct.map_err(|source| match source {
                    source @ (SourceError::NotServed { .. } | SourceError::TokenRequired { .. }) => source,
                    source => SourceError::Unreachable {
                        catalog: self.catalog.name.clone(),
                        proxy: olm_text::chain(&refused),
                        source: Box::new(source),
                    },
                })
            }
        }
    }

    fn url(&self, endpoint: &str) -> Result<Url, SourceError> {
        let wrong = || SourceError::Url {
            url: self.catalog.base_url.clone(),
        };
        let mut url = Url::parse(&self.catalog.base_url).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong());
        }
        url.path_segments_mut()
            .map_err(|()| wrong())?
            .pop_if_empty()
            .extend(["api", "v1", endpoint]);
        Ok(url)
    }

    async fn download_directly(&self, url: Url, endpoint: &str) -> Result<File, SourceError> {
        let failed = |error: reqwest::Error| SourceError::Http {
            url: self.catalog.base_url.clone(),
            cause: olm_text::chain(&error.without_url()),
        };
        let (_, http) = self.direct.clients().await?;
        let mut response = http.get(url.clone()).send().await.map_err(failed)?;
        // The token goes only to a catalogd that asks for one. Its host is the configured one.
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(bearer) = &self.bearer
        {
            let request = http.get(url).bearer_auth(bearer.token());
            response = request.send().await.map_err(failed)?;
        }
        match response.status() {
            StatusCode::OK => {}
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => {
                return Err(SourceError::NotServed {
                    catalog: self.catalog.name.clone(),
                    endpoint: endpoint.to_owned(),
                });
            }
            StatusCode::UNAUTHORIZED if self.bearer.is_none() => return Err(self.token_required()),
            status => {
                return Err(SourceError::Http {
                    url: self.catalog.base_url.clone(),
                    cause: format!("HTTP status {status}"),
                });
            }
        }
        let mut spool = Spool::new(&self.catalog.name, MAX_RESPONSE_BYTES)?;
        while let Some(bytes) = response.chunk().await.map_err(failed)? {
            spool.write(&bytes)?;
        }
        spool.finish()
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use kube::{Client, Config};
    use tokio::net::TcpListener;

    use super::*;

    /// Returns a catalog at this address. `proxy` is the address of an API server, if the catalog is read through one.
    fn served(address: &str, proxy: Option<&str>) -> ServedCatalog {
        let catalog = CatalogRef {
            name: "sky".into(),
            base_url: format!("{address}/catalogs/sky"),
            digest: String::new(),
        };
        let direct = Direct::new(Authorities::Given(None));
        let Some(server) = proxy else {
            return ServedCatalog {
                catalog,
                direct,
                proxy: None,
                bearer: None,
            };
        };
        let config = Config::new(server.parse().unwrap());
        let client = Client::try_from(config.clone()).unwrap();
        let proxy = Proxy::new(client, config, "olmv1-system".to_owned()).unwrap();
        ServedCatalog::of_cluster(catalog, direct, Arc::new(proxy))
    }

    #[tokio::test]
    async fn a_catalogd_that_asks_for_a_token_is_not_unreachable() {
        tls::install_provider();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(async || (StatusCode::UNAUTHORIZED, "Unauthorized"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        // Nobody answers at the address of the proxied catalog.
        let proxied = served("http://127.0.0.1:1", Some(&server));
        let direct = served(&server, None);
        let fold = async |catalog: &ServedCatalog| {
            let folded = catalog.fold(&Query::Packages, (), |(), _| Ok(()));
            folded.await.unwrap_err()
        };
        let package = direct.package(&"kite".into()).await.unwrap_err();
        for refused in [fold(&proxied).await, fold(&direct).await, package] {
            assert!(refused.is_denied());
            let text = olm_text::chain(&refused);
            assert!(
                text.starts_with("catalogd asks for a token to read catalog \"sky\""),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn authorities_of_files_that_exist() {
        let folder = tempfile::tempdir().unwrap();
        let (file, directory) = (folder.path().join("one"), folder.path().join("more"));
        let read = async || {
            let pem = of_files(Some(file.clone()), Some(directory.clone())).await;
            pem.unwrap()
        };
        assert_eq!(read().await, None);
        std::fs::create_dir(&directory).unwrap();
        assert_eq!(read().await, None);
        for (path, text) in [
            (file.clone(), "one"),
            (directory.join("b.crt"), "three"),
            (directory.join("a.pem"), "two"),
            (directory.join("tls.key"), "key"),
        ] {
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(read().await.as_deref(), Some("one\ntwo\nthree\n"));
        // A path that cannot be read is an error, not a missing authority.
        assert!(of_files(Some(directory.clone()), None).await.is_err());
        assert!(of_files(None, Some(file.clone())).await.is_err());
    }
}
