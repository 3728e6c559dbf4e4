//! Connections to catalogd, which may be several replicas behind one address.
//!
//! Invariant: an answer that names the digest of another image than the catalog's status is never handed on. An answer
//! without a digest, as upstream's catalogd gives it, is taken for what the status says.

use std::time::Duration;

use reqwest::{
    Client, Response, StatusCode,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
    redirect,
};
use url::Url;

use crate::{
    client::{CatalogClient, CatalogRef},
    error::ClientError,
    token,
};

/// Header with the digest of the image that an answer is of.
const IMAGE_DIGEST: HeaderName = HeaderName::from_static("olm-image-digest");
/// New connections that one read may open to reach a replica that has the content.
const OTHERS: u8 = 3;
/// Limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Limit for silence in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(30);
/// Limit for one whole request.
const REQUEST: Duration = Duration::from_mins(5);

/// HTTP client and the TLS settings that it was made with.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    client: Client,
    tls: rustls::ClientConfig,
}

impl Connected {
    /// Returns a client without any open connection.
    fn new(catalog: &CatalogRef, mut tls: rustls::ClientConfig) -> Result<Self, ClientError> {
        // The requests of a read share one connection, and so one replica. Over HTTP/1.1 a request opens another one if the
        // connection of the request before is not yet back in the pool.
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = Client::builder()
            .user_agent(concat!("olm/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls.clone())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .timeout(REQUEST)
            .redirect(redirect::Policy::limited(3))
            .build()
            .map_err(|error| ClientError::request(&catalog.name, error))?;
        Ok(Self { client, tls })
    }
}

/// Connections of one read, which may take several requests.
#[derive(Debug)]
pub(crate) struct Connections<'a> {
    owner: &'a CatalogClient,
    catalog: &'a CatalogRef,
    connected: Connected,
    /// New connections that may still be opened.
    left: u8,
}

impl CatalogClient {
    /// Begins a read of `catalog` over the connections that are open.
    pub(crate) async fn connections<'a>(
        &'a self,
        catalog: &'a CatalogRef,
    ) -> Result<Connections<'a>, ClientError> {
        Ok(Connections {
            connected: self.connected(catalog, false).await?,
            owner: self,
            catalog,
            left: OTHERS,
        })
    }

    /// Returns the answer of a replica that has the present content.
    pub(crate) async fn answer(&self, catalog: &CatalogRef, url: &Url) -> Result<Response, ClientError> {
        let mut connections = self.connections(catalog).await?;
        loop {
            let answer = connections.get(url.clone()).await;
            if let Some(done) = connections.settle(answer).await {
                return done;
            }
        }
    }

    /// Returns the shared client; with `anew` one that trusts the authorities as they are now.
    async fn connected(&self, catalog: &CatalogRef, anew: bool) -> Result<Connected, ClientError> {
        let mut kept = self.http.lock().await;
        if let Some(connected) = kept.as_ref().filter(|_| !anew) {
            return Ok(connected.clone());
        }
        let tls = self
            .trust
            .config(&self.profile)
            .await
            .map_err(|cause| ClientError::Trust {
                catalog: catalog.name.clone(),
                cause,
            })?;
        let connected = Connected::new(catalog, tls)?;
        *kept = Some(connected.clone());
        Ok(connected)
    }
}

impl Connections<'_> {
    /// Returns a successful answer of the catalog's present content. If TLS fails, asks once more with the authorities as
    /// they are then.
    pub(crate) async fn get(&mut self, url: Url) -> Result<Response, ClientError> {
        let catalog = self.catalog;
        let token = match &self.owner.token {
            Some(path) if url.scheme() == "https" => Some(token::read(path, &catalog.name).await?),
            _ => None,
        };
        let response = match send(catalog, &self.connected.client, &url, token.as_ref()).await {
            Err(ClientError::Tls { cause, .. }) => {
                tracing::debug!(catalog = catalog.name, cause, "authorities are read again");
                self.connected = self.owner.connected(catalog, true).await?;
                send(catalog, &self.connected.client, &url, token.as_ref()).await?
            }
            response => response?,
        };
        let name = || catalog.name.clone();
        match response.status() {
            StatusCode::OK => self.current(response),
            StatusCode::NOT_FOUND => Err(ClientError::NoContent { catalog: name() }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(ClientError::Denied {
                catalog: name(),
                status,
                brought: token.is_some(),
            }),
            status => Err(ClientError::Status {
                catalog: name(),
                status,
            }),
        }
    }

    /// Returns `response` unless it is of another image than the catalog's status says.
    fn current(&self, response: Response) -> Result<Response, ClientError> {
        let resolved = &self.catalog.digest;
        let wanted = resolved
            .rsplit_once('@')
            .map_or(resolved.as_str(), |(_, digest)| digest);
        match response.headers().get(IMAGE_DIGEST) {
            Some(served) if !wanted.is_empty() && served != wanted => {
                tracing::debug!(
                    catalog = self.catalog.name,
                    wanted,
                    ?served,
                    "a replica serves other content"
                );
                Err(ClientError::Outdated {
                    catalog: self.catalog.name.clone(),
                    digest: wanted.to_owned(),
                })
            }
            _ => Ok(response),
        }
    }

    /// Ends the read with its result. Returns `None` if another replica may do better: the read is then to be made again,
    /// over a new connection.
    pub(crate) async fn settle<T>(
        &mut self,
        result: Result<T, ClientError>,
    ) -> Option<Result<T, ClientError>> {
        match &result {
            Err(error) if error.of_replica() && self.left > 0 => {
                self.left -= 1;
                // An open connection leads to the same replica again.
                match Connected::new(self.catalog, self.connected.tls.clone()) {
                    Ok(connected) => {
                        self.connected = connected;
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            Ok(_) if self.left < OTHERS => {
                // The replica that has the content is asked from now on.
                *self.owner.http.lock().await = Some(self.connected.clone());
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
