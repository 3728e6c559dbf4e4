//! Requests to one repository at one registry, in one scheme, with one authorization.

use std::{sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use reqwest::{Response, StatusCode, header::HeaderValue};
use url::Url;

use super::{
    RegistryError,
    http::{Ask, Http, Scheme},
    retry::{Attempts, retry_after},
    token::{self, Challenge, Token},
};
use crate::{
    auth::Credentials,
    config::Limits,
    hosts::{HostPolicy, without_port},
    reference::Repository,
    trust::Trust,
};

/// Longest answer of a token service in bytes.
const TOKEN_BYTES: u64 = 256 * 1024;
/// Takes the answer as it is.
const ANY: &str = "*/*";

/// What a session needs besides the repository.
pub(crate) struct SessionOptions<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) hosts: Arc<HostPolicy>,
    /// Hosts that may be token services of any registry.
    pub(crate) token_hosts: &'a [String],
    pub(crate) limits: &'a Limits,
}

/// One repository at one registry.
pub(crate) struct Session {
    http: Http,
    scheme: Scheme,
    host: String,
    path: String,
    credentials: Option<Credentials>,
    token_hosts: Vec<String>,
    limits: Limits,
    authorization: Mutex<Option<HeaderValue>>,
    /// The token service that our credentials were not sent to.
    foreign_realm: Mutex<Option<String>>,
}

impl Session {
    /// `None` when the registry's name makes no URL.
    pub(crate) fn new(repository: &Repository, options: SessionOptions<'_>) -> Option<Self> {
        let SessionOptions {
            scheme,
            credentials,
            trust,
            hosts,
            token_hosts,
            limits,
        } = options;
        // Docker Hub's API has another name than its images.
        let host = match repository.domain() {
            "docker.io" => "registry-1.docker.io",
            domain => domain,
        };
        let base = base(scheme, host)?;
        Some(Self {
            http: Http::new(host, &base, scheme, trust, hosts, limits),
            scheme,
            host: host.to_owned(),
            path: repository.path().to_owned(),
            credentials,
            token_hosts: token_hosts.to_owned(),
            limits: limits.clone(),
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

    /// Reads a small thing into memory; what fails in passing is asked for again.
    pub(super) async fn small(
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
            match self.in_time(what, read).await {
                Err(error) => attempts.after(error).await?,
                done => return done,
            }
        }
    }

    /// A blob's bytes from an offset on; a registry may send all of them all the same.
    pub(super) async fn blob(&self, digest: &str, what: &str, from: u64) -> Result<Response, RegistryError> {
        let rest = format!("blobs/{digest}");
        self.in_time(what, self.get(&rest, what, ANY, from)).await
    }

    async fn in_time<T>(
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

    /// A successful answer, after authorization when the registry asks for it.
    async fn get(
        &self,
        rest: &str,
        what: &str,
        accept: &'static str,
        from: u64,
    ) -> Result<Response, RegistryError> {
        let url = base(self.scheme, &self.host)
            .and_then(|base| base.join(&format!("/v2/{}/{rest}", self.path)).ok())
            .ok_or_else(|| self.no_token("its name makes no URL"))?;
        let mut ask = Ask {
            url,
            what,
            accept,
            authorization: self.authorization.lock().clone(),
            from,
            form: None,
        };
        let mut response = self.http.send(ask.clone()).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = Challenge::of(response.headers()).map_err(|cause| self.no_token(cause))?;
            if let Some(value) = self.authorize(challenge, what).await? {
                *self.authorization.lock() = Some(value.clone());
                ask.authorization = Some(value);
                response = self.http.send(ask).await?;
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
            Some(Challenge::Basic) => return Ok(self.credentials.as_ref().and_then(token::basic)),
            Some(Challenge::Bearer { realm, service }) => (realm, service),
        };
        // Credentials and tokens must not be sent in the open because an HTTPS registry says so.
        if realm.scheme() != "https" && !(realm.scheme() == "http" && self.scheme == Scheme::Http) {
            return Err(self.no_token("its realm is not HTTPS"));
        }
        let name = realm.host_str().unwrap_or_default();
        let of_domain = token::same_owner(without_port(&self.host), name)
            || self.token_hosts.iter().any(|host| host == name);
        let credentials = self.credentials.as_ref().filter(|_| of_domain);
        if self.credentials.is_some() && !of_domain {
            // A token for everyone may do.
            *self.foreign_realm.lock() = Some(name.to_owned());
        }
        let mut ask = Ask {
            url: realm,
            what,
            accept: ANY,
            authorization: None,
            from: 0,
            form: None,
        };
        let scope = format!("repository:{}:pull", self.path);
        let _ = ask.url.set_username("").and_then(|()| ask.url.set_password(None));
        if let Some(Credentials::Identity(refresh)) = credentials {
            ask.form = Some(token::refresh(refresh, service.as_deref(), &scope));
        } else {
            ask.authorization = credentials.and_then(token::basic);
            let mut query = ask.url.query_pairs_mut();
            if let Some(service) = &service {
                query.append_pair("service", service);
            }
            query.append_pair("scope", &scope);
        }
        let response = self.http.send(ask).await?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(what, &response));
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

    fn no_token(&self, cause: &'static str) -> RegistryError {
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
