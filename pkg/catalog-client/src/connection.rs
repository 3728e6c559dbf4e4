//! Connections to catalogd, which may be several replicas behind one address.
//!
//! Invariant: a response with another image digest than the catalog's status is never passed on. A response without a
//! digest, as upstream's catalogd sends it, is taken to match the status.

use std::{path::PathBuf, time::Duration};

use olm_runtime::tls::Profile;
use reqwest::{
    Client, Response, StatusCode,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
    redirect,
};
use url::Url;

use crate::{catalog_ref::CatalogRef, error::ClientError, token, trust::Trust};

/// Header with the image digest of the content.
const IMAGE_DIGEST: HeaderName = HeaderName::from_static("olm-image-digest");
/// Maximum number of new connections that one read opens to find a replica with the content.
const MAX_RECONNECTS: u8 = 3;
/// Timeout of opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of silence during a response.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of one whole request.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);

/// HTTP client and its TLS configuration.
#[derive(Clone, Debug)]
struct HttpClient {
    client: Client,
    tls: rustls::ClientConfig,
}

impl HttpClient {
    /// Creates a client without any open connection.
    fn new(catalog: &CatalogRef, mut tls: rustls::ClientConfig) -> Result<Self, ClientError> {
        // The requests of a read share one connection, and so one replica. With HTTP/1.1, a request opens another one
        // if the previous connection is not yet back in the pool.
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = Client::builder()
            .user_agent(concat!("olm/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(redirect::Policy::limited(3))
            .build()
            .map_err(|error| ClientError::request(&catalog.name, error))?;
        Ok(Self { client, tls })
    }
}

/// Connections of one read, which may take several requests.
#[derive(Debug)]
pub(crate) struct Connections<'a> {
    transport: &'a Transport,
    catalog: &'a CatalogRef,
    http_client: HttpClient,
    /// Number of new connections that may still be opened.
    reconnects_left: u8,
}

/// Settings of all connections, and the HTTP client that reads share.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) trust: Trust,
    /// File with the bearer token.
    pub(crate) token: Option<PathBuf>,
    pub(crate) profile: Profile,
    /// Created at the first request; replaced if TLS fails (authorities change) or a replica has other content.
    http: tokio::sync::Mutex<Option<HttpClient>>,
}

impl Transport {
    /// Creates the transport without a token, with the default TLS profile.
    pub(crate) fn new(trust: Trust) -> Self {
        Self {
            trust,
            token: None,
            profile: Profile::default(),
            http: tokio::sync::Mutex::default(),
        }
    }

    /// Starts a read of `catalog` over the open connections.
    pub(crate) async fn connections<'a>(
        &'a self,
        catalog: &'a CatalogRef,
    ) -> Result<Connections<'a>, ClientError> {
        Ok(Connections {
            http_client: self.http_client(catalog, false).await?,
            transport: self,
            catalog,
            reconnects_left: MAX_RECONNECTS,
        })
    }

    /// Returns the response of a replica that has the current content.
    pub(crate) async fn response(&self, catalog: &CatalogRef, url: &Url) -> Result<Response, ClientError> {
        let mut connections = self.connections(catalog).await?;
        loop {
            let response = connections.get(url.clone()).await;
            if let Some(done) = connections.settle(response).await {
                return done;
            }
        }
    }

    /// Returns the shared client; with `reread` a new one that trusts the current authorities.
    async fn http_client(&self, catalog: &CatalogRef, reread: bool) -> Result<HttpClient, ClientError> {
        let mut shared = self.http.lock().await;
        if let Some(http_client) = shared.as_ref().filter(|_| !reread) {
            return Ok(http_client.clone());
        }
        let tls = self
            .trust
            .config(&self.profile)
            .await
            .map_err(|cause| ClientError::Trust {
                catalog: catalog.name.clone(),
                cause,
            })?;
        let http_client = HttpClient::new(catalog, tls)?;
        *shared = Some(http_client.clone());
        Ok(http_client)
    }
}

impl Connections<'_> {
    /// Returns a successful response with the catalog's current content. If TLS fails, retries once with the current
    /// authorities.
    pub(crate) async fn get(&mut self, url: Url) -> Result<Response, ClientError> {
        let catalog = self.catalog;
        let token = match &self.transport.token {
            Some(path) if url.scheme() == "https" => Some(token::read(path, &catalog.name).await?),
            _ => None,
        };
        let response = match send(catalog, &self.http_client.client, &url, token.as_ref()).await {
            Err(ClientError::Tls { cause, .. }) => {
                tracing::debug!(
                    catalog = catalog.name.as_str(),
                    cause,
                    "rereading the certificate authorities"
                );
                self.http_client = self.transport.http_client(catalog, true).await?;
                send(catalog, &self.http_client.client, &url, token.as_ref()).await?
            }
            response => response?,
        };
        let name = || catalog.name.clone();
        match response.status() {
            StatusCode::OK => self.check_image(response),
            StatusCode::NOT_FOUND => Err(ClientError::NoContent { catalog: name() }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(ClientError::Denied {
                catalog: name(),
                status,
                token_sent: token.is_some(),
            }),
            status => Err(ClientError::Status {
                catalog: name(),
                status,
            }),
        }
    }

    /// Returns `response` unless its image is not the one in the catalog's status.
    fn check_image(&self, response: Response) -> Result<Response, ClientError> {
        let resolved = &self.catalog.digest;
        let expected = resolved
            .rsplit_once('@')
            .map_or(resolved.as_str(), |(_, digest)| digest);
        match response.headers().get(IMAGE_DIGEST) {
            Some(served) if !expected.is_empty() && served != expected => {
                tracing::debug!(
                    catalog = self.catalog.name.as_str(),
                    wanted = expected,
                    ?served,
                    "a replica serves another image"
                );
                Err(ClientError::Outdated {
                    catalog: self.catalog.name.clone(),
                    digest: expected.to_owned(),
                })
            }
            _ => Ok(response),
        }
    }

    /// Ends the read with its result. Returns `None` if another replica may have the content: the caller then repeats
    /// the read over a new connection.
    pub(crate) async fn settle<T>(
        &mut self,
        result: Result<T, ClientError>,
    ) -> Option<Result<T, ClientError>> {
        match &result {
            Err(error) if error.may_differ_by_replica() && self.reconnects_left > 0 => {
                self.reconnects_left -= 1;
                // An open connection leads to the same replica again.
                match HttpClient::new(self.catalog, self.http_client.tls.clone()) {
                    Ok(http_client) => {
                        self.http_client = http_client;
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            Ok(_) if self.reconnects_left < MAX_RECONNECTS => {
                // Later reads use the replica that has the content.
                *self.transport.http.lock().await = Some(self.http_client.clone());
                Some(result)
            }
            _ => Some(result),
        }
    }
}

async fn send(
    catalog: &CatalogRef,
    client: &Client,
    url: &Url,
    token: Option<&HeaderValue>,
) -> Result<Response, ClientError> {
    let mut request = client.get(url.clone());
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token.clone());
    }
    request
        .send()
        .await
        .map_err(|error| ClientError::request(&catalog.name, error))
}
