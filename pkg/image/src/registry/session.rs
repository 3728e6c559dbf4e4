//! Requests to one repository of one registry, with one scheme and one authorization.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use parking_lot::Mutex;
use reqwest::{Response, StatusCode, header::HeaderValue};
use url::Url;

use super::{
    RegistryError,
    http::{Http, HttpRequest, Scheme},
    retry::{Attempts, retry_after},
    token::{self, Challenge, Token},
};
use crate::{
    auth::Credentials,
    hosts::{HostPolicy, without_port},
    limits::Limits,
    reference::Repository,
    trust::Trust,
};

/// Maximum size of a token service's response, in bytes.
const MAX_TOKEN_BYTES: u64 = 256 * 1024;
/// Accepts any media type.
const ANY: &str = "*/*";

/// Options of a session.
pub(crate) struct SessionOptions<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) hosts: Arc<HostPolicy>,
    /// Hosts accepted as token services of any registry.
    pub(crate) token_hosts: &'a [String],
    pub(crate) limits: &'a Limits,
}

/// Returns the host that serves the API of a repository's registry.
pub(crate) fn api_host(repository: &Repository) -> &str {
    // Docker Hub's API has another host name than its references.
    match repository.domain() {
        "docker.io" => "registry-1.docker.io",
        domain => domain,
    }
}

/// Connection to one repository of one registry.
pub(crate) struct Session {
    http: Http,
    scheme: Scheme,
    host: String,
    path: String,
    credentials: Option<Credentials>,
    token_hosts: Vec<String>,
    limits: Limits,
    received: AtomicU64,
    authorization: Mutex<Option<HeaderValue>>,
    /// Token service from which our credentials were withheld.
    foreign_realm: Mutex<Option<String>>,
}

impl Session {
    /// Creates a session; `None` if the registry's name makes no URL.
    pub(crate) fn new(repository: &Repository, options: SessionOptions<'_>) -> Option<Self> {
        let SessionOptions {
            scheme,
            credentials,
            trust,
            hosts,
            token_hosts,
            limits,
        } = options;
        let host = api_host(repository);
        let base = base(scheme, host)?;
        Some(Self {
            http: Http::new(repository.domain(), host, &base, scheme, trust, hosts, limits),
            scheme,
            host: host.to_owned(),
            path: repository.path().to_owned(),
            credentials,
            token_hosts: token_hosts.to_owned(),
            limits: limits.clone(),
            received: AtomicU64::new(0),
            authorization: Mutex::default(),
            foreign_realm: Mutex::default(),
        })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of received bytes of layers, without those that the registry sent again.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn count_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Reads a small object into memory and retries transient failures, except timeouts: little is lost, and the next source of the
    /// image may answer sooner.
    pub(super) async fn read_small(
        &self,
        rest: &str,
        what: &str,
        accept: &'static str,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let mut attempts = Attempts::new(&self.limits);
        loop {
            let read = async {
                let response = self.get(rest, what, accept, 0).await?;
                self.body(response, what, limit).await
            };
            match self.with_timeout(what, read).await {
                Err(error) if !matches!(error, RegistryError::Timeout { .. }) => {
                    attempts.wait_after(error).await?;
                }
                done => return done,
            }
        }
    }

    /// Requests a blob from an offset on; a registry may send the whole blob.
    pub(super) async fn blob(&self, digest: &str, what: &str, from: u64) -> Result<Response, RegistryError> {
        let rest = format!("blobs/{digest}");
        self.with_timeout(what, self.get(&rest, what, ANY, from)).await
    }

    async fn with_timeout<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        match tokio::time::timeout(self.limits.request, work).await {
            Ok(done) => done,
            Err(_) => Err(RegistryError::Timeout {
                host: self.host.clone(),
                what: what.to_owned(),
            }),
        }
    }

    /// Returns a successful response, after authorization if the registry requires it.
    async fn get(
        &self,
        rest: &str,
        what: &str,
        accept: &'static str,
        from: u64,
    ) -> Result<Response, RegistryError> {
        let url = base(self.scheme, &self.host)
            .and_then(|base| base.join(&format!("/v2/{}/{rest}", self.path)).ok())
            .ok_or_else(|| self.token_error("its name is not valid in a URL"))?;
        let mut request = HttpRequest {
            url,
            what,
            accept,
            authorization: self.authorization.lock().clone(),
            from,
            form: None,
        };
        let mut response = self.http.send(request.clone()).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = Challenge::of(response.headers()).map_err(|cause| self.token_error(cause))?;
            if let Some(value) = self.authorize(challenge, what).await? {
                *self.authorization.lock() = Some(value.clone());
                request.authorization = Some(value);
                response = self.http.send(request).await?;
            }
        }
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(response),
            _ => Err(self.refused(what, &response)),
        }
    }

    async fn authorize(
        &self,
        challenge: Option<Challenge>,
        what: &str,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let (realm, service) = match challenge {
            None => return Ok(None),
            Some(Challenge::Basic) => return Ok(self.credentials.as_ref().and_then(token::basic_header)),
            Some(Challenge::Bearer { realm, service }) => (realm, service),
        };
        // An HTTPS registry must not make us send credentials and tokens unencrypted.
        if realm.scheme() != "https" && !(realm.scheme() == "http" && self.scheme == Scheme::Http) {
            return Err(self.token_error("its realm is not HTTPS"));
        }
        let name = realm.host_str().unwrap_or_default();
        let of_domain = token::same_owner(without_port(&self.host), name)
            || self.token_hosts.iter().any(|host| host == name);
        let credentials = self.credentials.as_ref().filter(|_| of_domain);
        if self.credentials.is_some() && !of_domain {
            // An anonymous token may suffice.
            *self.foreign_realm.lock() = Some(name.to_owned());
        }
        let mut request = HttpRequest {
            url: realm,
            what,
            accept: ANY,
            authorization: None,
            from: 0,
            form: None,
        };
        let scope = format!("repository:{}:pull", self.path);
        let _ = request
            .url
            .set_username("")
            .and_then(|()| request.url.set_password(None));
        if let Some(Credentials::Identity(refresh)) = credentials {
            request.form = Some(token::refresh_form(refresh, service.as_deref(), &scope));
        } else {
            request.authorization = credentials.and_then(token::basic_header);
            let mut query = request.url.query_pairs_mut();
            if let Some(service) = &service {
                query.append_pair("service", service);
            }
            query.append_pair("scope", &scope);
        }
        let response = self.http.send(request).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(what, &response));
        }
        let body = self.body(response, "token", MAX_TOKEN_BYTES).await?;
        let token = serde_json::from_slice::<Token>(&body)
            .ok()
            .and_then(Token::text)
            .ok_or_else(|| self.token_error("its response has no token"))?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| self.token_error("its token cannot be sent"))?;
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

    fn refused(&self, what: &str, response: &Response) -> RegistryError {
        let status = response.status();
        let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let Some(realm) = self.foreign_realm.lock().clone().filter(|_| denied) {
            let (host, what) = (self.host.clone(), what.to_owned());
            return RegistryError::ForeignRealm { host, what, realm };
        }
        let after = retry_after(response.headers(), SystemTime::now());
        RegistryError::status(&self.host, what, status, self.credentials.is_some(), after)
    }

    fn token_error(&self, cause: &'static str) -> RegistryError {
        RegistryError::Token {
            host: self.host.clone(),
            cause,
        }
    }
}

fn base(scheme: Scheme, host: &str) -> Option<Url> {
    let scheme = match scheme {
        Scheme::Https | Scheme::Unverified => "https",
        Scheme::Http => "http",
    };
    Url::parse(&format!("{scheme}://{host}/")).ok()
}
