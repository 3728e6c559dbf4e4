//! Requests to one repository at one registry, in one scheme, with one authorization.

use std::{io, path::Path};

use parking_lot::Mutex;
use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, HeaderValue},
    redirect,
};
use sha2::{Digest as _, Sha256, Sha512};
use tokio::io::AsyncWriteExt;

use super::{
    Layer, RegistryError,
    token::{Challenge, Token},
};
use crate::{
    auth::Credentials,
    config::Limits,
    reference::{Algorithm, Digest, Repository},
};

/// Longest answer of a token service in bytes.
const TOKEN_BYTES: u64 = 256 * 1024;
/// Longest chain of redirects.
const REDIRECTS: usize = 5;

/// How a registry is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// HTTPS with a trusted certificate.
    Https,
    /// HTTPS with any certificate.
    Unverified,
    /// Plain HTTP.
    Http,
}

/// The HTTP clients of a pull.
#[derive(Debug)]
pub(crate) struct Clients {
    verified: Client,
    unverified: Client,
}

impl Clients {
    pub(crate) fn new(tls: rustls::ClientConfig, limits: &Limits) -> Result<Self, reqwest::Error> {
        let builder = || {
            // A redirect must not lead from an encrypted connection to an open one.
            let policy = redirect::Policy::custom(|attempt| {
                let secure = attempt
                    .previous()
                    .first()
                    .is_some_and(|url| url.scheme() == "https");
                if attempt.previous().len() > REDIRECTS {
                    attempt.error("too many redirects")
                } else if secure && attempt.url().scheme() != "https" {
                    attempt.error("redirected from HTTPS to HTTP")
                } else {
                    attempt.follow()
                }
            });
            Client::builder()
                .user_agent(concat!("olm/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(limits.connect)
                .read_timeout(limits.read)
                .no_gzip()
                .redirect(policy)
        };
        Ok(Self {
            verified: builder().tls_backend_preconfigured(tls).build()?,
            unverified: builder().tls_danger_accept_invalid_certs(true).build()?,
        })
    }
}

/// One repository at one registry.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    scheme: Scheme,
    host: String,
    path: String,
    credentials: Option<Credentials>,
    request_limit: std::time::Duration,
    authorization: Mutex<Option<HeaderValue>>,
}

impl Session {
    pub(crate) fn new(
        clients: &Clients,
        scheme: Scheme,
        repository: &Repository,
        credentials: Option<Credentials>,
        limits: &Limits,
    ) -> Self {
        let client = match scheme {
            Scheme::Https | Scheme::Http => clients.verified.clone(),
            Scheme::Unverified => clients.unverified.clone(),
        };
        // Docker Hub's API has another name than its images.
        let host = match repository.domain() {
            "docker.io" => "registry-1.docker.io",
            domain => domain,
        };
        Self {
            client,
            scheme,
            host: host.to_owned(),
            path: repository.path().to_owned(),
            credentials,
            request_limit: limits.request,
            authorization: Mutex::new(None),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Reads a small thing into memory.
    pub(super) async fn small(
        &self,
        rest: &str,
        what: &str,
        accept: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let read = async {
            let response = self.get(rest, what, accept).await?;
            self.body(response, what, limit).await
        };
        self.in_time(what, read).await
    }

    /// Streams a layer into a file, checking size and digest on the way.
    pub(crate) async fn download(&self, layer: &Layer, file: &Path, limit: u64) -> Result<(), RegistryError> {
        let what = format!("layer {}", layer.digest);
        let host = || self.host.clone();
        if layer.size > limit {
            return Err(RegistryError::TooLarge {
                host: host(),
                what,
                limit,
            });
        }
        let disk = |source: io::Error| RegistryError::Disk { host: host(), source };
        let request = self.get_blob(&layer.digest, &what);
        let mut response = self.in_time(&what, request).await?;
        let mut file = tokio::fs::File::create_new(file).await.map_err(disk)?;
        let mut hash = Hash::new(layer.digest.algorithm());
        let mut size = 0_u64;
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| RegistryError::request(&self.host, &what, error))?
        {
            size += bytes.len() as u64;
            if size > layer.size {
                return Err(RegistryError::TooLarge {
                    host: host(),
                    what,
                    limit: layer.size,
                });
            }
            hash.update(&bytes);
            file.write_all(&bytes).await.map_err(disk)?;
        }
        file.flush().await.map_err(disk)?;
        let actual = hash.finish();
        if actual != layer.digest {
            return Err(RegistryError::Digest {
                host: host(),
                what,
                actual: actual.to_string(),
            });
        }
        Ok(())
    }

    async fn get_blob(&self, digest: &Digest, what: &str) -> Result<Response, RegistryError> {
        self.get(&format!("blobs/{digest}"), what, "*/*").await
    }

    async fn in_time<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        match tokio::time::timeout(self.request_limit, work).await {
            Ok(done) => done,
            Err(_) => Err(RegistryError::Timeout {
                host: self.host.clone(),
                what: what.to_owned(),
            }),
        }
    }

    /// A successful answer, after authorization when the registry asks for it.
    async fn get(&self, rest: &str, what: &str, accept: &'static str) -> Result<Response, RegistryError> {
        let scheme = match self.scheme {
            Scheme::Https | Scheme::Unverified => "https",
            Scheme::Http => "http",
        };
        let url = format!("{scheme}://{}/v2/{}/{rest}", self.host, self.path);
        let send = async |authorization: Option<HeaderValue>| {
            let mut request = self.client.get(&url).header(ACCEPT, accept);
            if let Some(value) = authorization {
                request = request.header(AUTHORIZATION, value);
            }
            request
                .send()
                .await
                .map_err(|error| RegistryError::request(&self.host, what, error))
        };
        let known = self.authorization.lock().clone();
        let mut response = send(known).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = Challenge::of(response.headers()).map_err(|cause| self.no_token(cause))?;
            if let Some(value) = self.authorize(challenge, what).await? {
                *self.authorization.lock() = Some(value.clone());
                response = send(Some(value)).await?;
            }
        }
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        Err(self.refused(what, response.status()))
    }

    async fn authorize(
        &self,
        challenge: Option<Challenge>,
        what: &str,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let (realm, service) = match challenge {
            None => return Ok(None),
            Some(Challenge::Basic) => return Ok(self.credentials.as_ref().and_then(basic)),
            Some(Challenge::Bearer { realm, service }) => (realm, service),
        };
        // Credentials and tokens must not be sent in the open because an HTTPS registry says so.
        if realm.scheme() != "https" && !(realm.scheme() == "http" && self.scheme == Scheme::Http) {
            return Err(self.no_token("its realm is not HTTPS"));
        }
        let mut realm = realm;
        {
            let mut query = realm.query_pairs_mut();
            if let Some(service) = &service {
                query.append_pair("service", service);
            }
            query.append_pair("scope", &format!("repository:{}:pull", self.path));
        }
        let mut request = self.client.get(realm);
        if let Some(value) = self.credentials.as_ref().and_then(basic) {
            request = request.header(AUTHORIZATION, value);
        }
        let response = request
            .send()
            .await
            .map_err(|error| RegistryError::request(&self.host, what, error))?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(what, response.status()));
        }
        let body = self.body(response, "token", TOKEN_BYTES).await?;
        let token = serde_json::from_slice::<Token>(&body)
            .ok()
            .and_then(Token::text)
            .ok_or_else(|| self.no_token("its answer holds no token"))?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| self.no_token("its token cannot be sent"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    async fn body(&self, mut response: Response, what: &str, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let mut body = Vec::new();
        while let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| RegistryError::request(&self.host, what, error))?
        {
            if (body.len() + bytes.len()) as u64 > limit {
                let (host, what) = (self.host.clone(), what.to_owned());
                return Err(RegistryError::TooLarge { host, what, limit });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    fn refused(&self, what: &str, status: StatusCode) -> RegistryError {
        RegistryError::status(&self.host, what, status, self.credentials.is_some())
    }

    fn no_token(&self, cause: &'static str) -> RegistryError {
        RegistryError::Token {
            host: self.host.clone(),
            cause,
        }
    }
}

fn basic(credentials: &Credentials) -> Option<HeaderValue> {
    use base64::Engine as _;
    let pair = format!("{}:{}", credentials.user, credentials.password);
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    let mut value = HeaderValue::try_from(format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A digest in the making.
enum Hash {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hash {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Sha512(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> Digest {
        match self {
            Self::Sha256(hash) => Digest::from_hash(Algorithm::Sha256, &hash.finalize()),
            Self::Sha512(hash) => Digest::from_hash(Algorithm::Sha512, &hash.finalize()),
        }
    }
}
