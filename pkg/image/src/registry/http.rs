//! HTTP requests to registries: one client per host and port, redirects followed by our own rules.
//!
//! A redirect never leads from an encrypted connection to a plain one, never to a host that the host policy rejects,
//! and never forwards the authorization, which is sent only to the origin of the first request.

use std::{collections::HashMap, sync::Arc};

use reqwest::{
    Client, Method, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, RANGE},
    redirect,
};
use url::Url;

use super::RegistryError;
use crate::{
    error::Error,
    hosts::{HostPolicy, Resolver},
    limits::Limits,
    trust::Trust,
};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Scheme to contact a registry with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// HTTPS with a trusted certificate.
    Https,
    /// HTTPS with any certificate.
    Unverified,
    /// Plain HTTP.
    Http,
}

/// HTTP clients for one registry and the hosts it redirects to.
pub(super) struct Http {
    /// Registry as in references; names the directory of its certificates.
    domain: String,
    /// Host and port of the registry's API, for messages. Docker Hub's differs from `domain`.
    host: String,
    /// Registry as in URLs: without a default port.
    authority: String,
    scheme: Scheme,
    trust: Arc<Trust>,
    policy: Arc<HostPolicy>,
    limits: Limits,
    /// Clients by host and port. The port counts even if the URL leaves it out: the host policy may allow a name at port 80 and
    /// not at port 443.
    clients: tokio::sync::Mutex<HashMap<(String, Option<u16>), Client>>,
}

/// HTTP request.
#[derive(Clone, Debug)]
pub(super) struct HttpRequest<'a> {
    pub(super) url: Url,
    /// Requested object, for messages.
    pub(super) what: &'a str,
    pub(super) accept: &'static str,
    pub(super) authorization: Option<HeaderValue>,
    /// Offset of the first requested byte.
    pub(super) from: u64,
    /// Body of a form; it makes the request a POST, which is not redirected.
    pub(super) form: Option<String>,
}

impl Http {
    pub(super) fn new(
        domain: &str,
        host: &str,
        base: &Url,
        scheme: Scheme,
        trust: Arc<Trust>,
        policy: Arc<HostPolicy>,
        limits: &Limits,
    ) -> Self {
        Self {
            domain: domain.to_owned(),
            host: host.to_owned(),
            authority: authority(base),
            scheme,
            trust,
            policy,
            limits: limits.clone(),
            clients: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request and follows redirects.
    pub(super) async fn send(&self, request: HttpRequest<'_>) -> Result<Response, RegistryError> {
        let mut url = request.url.clone();
        let mut authorization = request.authorization.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.policy.check(&url).map_err(|refused| self.refused(refused))?;
            let client = self.client(&url).await?;
            let method = if request.form.is_some() {
                Method::POST
            } else {
                Method::GET
            };
            let mut builder = client.request(method, url.clone()).header(ACCEPT, request.accept);
            if let Some(value) = &authorization {
                builder = builder.header(AUTHORIZATION, value.clone());
            }
            if request.from > 0 {
                builder = builder.header(RANGE, format!("bytes={}-", request.from));
            }
            if let Some(form) = &request.form {
                builder = builder
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(form.clone());
            }
            let response = builder
                .send()
                .await
                .map_err(|error| RegistryError::request(&self.host, request.what, error))?;
            let redirected = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let target = response.headers().get(LOCATION).filter(|_| redirected);
            let Some(target) = target.filter(|_| request.form.is_none()) else {
                return Ok(response);
            };
            let next = target.to_str().ok().and_then(|target| url.join(target).ok());
            let mut next = next.ok_or_else(|| self.redirect("to what is no URL"))?;
            if let Some(cause) = redirect_refusal(&url, &next) {
                return Err(self.redirect(cause));
            }
            // Credentials in the registry's URL are not forwarded either.
            let _ = next.set_username("").and_then(|()| next.set_password(None));
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        Err(self.redirect("too often"))
    }

    fn redirect(&self, cause: &'static str) -> RegistryError {
        RegistryError::Redirect {
            host: self.host.clone(),
            cause,
        }
    }

    fn refused(&self, refused: crate::hosts::HostRejected) -> RegistryError {
        RegistryError::Host {
            registry: self.host.clone(),
            refused,
        }
    }

    /// Returns the client for a URL's host and port.
    async fn client(&self, url: &Url) -> Result<Client, RegistryError> {
        let host = authority(url);
        let is_registry = host == self.authority;
        let port = url.port_or_known_default();
        let key = (url.host_str().unwrap_or_default().to_owned(), port);
        let mut clients = self.clients.lock().await;
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let trust = self.trust.clone();
        let names = if is_registry {
            vec![self.domain.clone(), self.host.clone()]
        } else {
            vec![host.clone()]
        };
        let failed = |cause: String| RegistryError::Client {
            host: host.clone(),
            cause,
        };
        let (tls, identity) = tokio::task::spawn_blocking(move || trust.for_host(&names, is_registry))
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(Error::Authorities(error).message()))?;
        let builder = Client::builder()
            .user_agent(concat!("olm/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.limits.connect)
            .read_timeout(self.limits.read)
            .no_gzip()
            .redirect(redirect::Policy::none())
            .dns_resolver(Arc::new(Resolver::new(self.policy.clone(), port)));
        // Only the registry itself is configured as insecure, not the hosts it names.
        let builder = if is_registry && self.scheme == Scheme::Unverified {
            let builder = builder.tls_danger_accept_invalid_certs(true);
            match identity {
                Some(identity) => builder.identity(
                    reqwest::Identity::from_pem(&identity.pem())
                        .map_err(|error| failed(error.to_string()))?,
                ),
                None => builder,
            }
        } else {
            builder.tls_backend_preconfigured(tls)
        };
        let client = builder.build().map_err(|error| failed(error.to_string()))?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Returns why a redirect from `here` to `next` is not followed; `None` if the schemes allow it.
fn redirect_refusal(here: &Url, next: &Url) -> Option<&'static str> {
    match (here.scheme(), next.scheme()) {
        (_, "https") | ("http", "http") => None,
        (_, "http") => Some("from HTTPS to plain HTTP"),
        _ => Some("to a URL that is neither HTTPS nor HTTP"),
    }
}

/// Returns `host[:port]` as in a reference.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_refused_redirect_names_its_schemes() {
        let why = |here: &str, next: &str| redirect_refusal(&here.parse().unwrap(), &next.parse().unwrap());
        for (here, next) in [
            ("http://a/", "http://b/"),
            ("http://a/", "https://b/"),
            ("https://a/", "https://b/"),
        ] {
            assert_eq!(why(here, next), None, "{here} {next}");
        }
        assert_eq!(why("https://a/", "http://b/"), Some("from HTTPS to plain HTTP"));
        let other = Some("to a URL that is neither HTTPS nor HTTP");
        for next in ["file:///etc/passwd", "ftp://b/", "data:,x"] {
            assert_eq!(why("http://a/", next), other, "{next}");
            assert_eq!(why("https://a/", next), other, "{next}");
        }
    }
}
