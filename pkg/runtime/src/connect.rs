//! Causes of failed connections, from an HTTP client's error.

use std::{error::Error, fmt, io};

use hyper_util::client::proxy::matcher::Matcher;
use olm_text::{causes, chain};
use rustls::{CertificateError, InvalidMessage};

/// Cause of a failed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The name has no address.
    Dns,
    /// The server refused the connection.
    Refused,
    /// The TLS handshake failed.
    Tls(TlsFailure),
}

/// Cause of a failed TLS handshake. Its text has no times, so that it does not change between attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// The certificate is signed by an unknown authority.
    UnknownAuthority,
    /// The certificate is for other names.
    WrongName,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The server answers without TLS, as an HTTP server does.
    NoTls,
    /// Other cause, in the words of rustls.
    Other(String),
}

impl TlsFailure {
    /// Classifies an error of rustls.
    #[must_use]
    pub fn of(error: &rustls::Error) -> Self {
        let certificate = match error {
            rustls::Error::InvalidCertificate(certificate) => certificate,
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => return Self::NoTls,
            _ => return Self::Other(error.to_string()),
        };
        match certificate {
            CertificateError::UnknownIssuer => Self::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::WrongName
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownAuthority => {
                "its certificate is signed by an unknown authority; add that to the trusted ones"
            }
            Self::WrongName => "its certificate is not valid for this name",
            Self::Expired => "its certificate has expired",
            Self::NotYetValid => "its certificate is not valid yet; check the clocks",
            Self::NoTls => "it answers without TLS",
            Self::Other(cause) => cause,
        })
    }
}

impl ConnectFailure {
    /// Returns the first known cause among an error and its sources.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        for current in causes(error) {
            if let Some(io) = current.downcast_ref::<io::Error>() {
                if io.kind() == io::ErrorKind::ConnectionRefused {
                    return Some(Self::Refused);
                }
                // `source()` of an io error skips the wrapped error itself.
                if let Some(found) = io.get_ref().and_then(|inner| Self::of(inner)) {
                    return Some(found);
                }
            }
            if let Some(tls) = current.downcast_ref::<rustls::Error>() {
                return Some(Self::Tls(TlsFailure::of(tls)));
            }
            // The connector's error type is private.
            if current.to_string().starts_with("dns error") {
                return Some(Self::Dns);
            }
        }
        None
    }
}

/// Failed connection to the proxy that `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` names, or through it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("proxyconnect: proxy {proxy} {cause}")]
pub struct ProxyFailure {
    /// HOST:PORT of the proxy.
    proxy: String,
    cause: String,
}

impl ProxyFailure {
    /// Returns the failure if the environment has a proxy for `url`, and `error` is not about TLS with the server
    /// itself. `error` is of an attempt to connect.
    pub fn of(url: &str, error: &(dyn Error + 'static)) -> Option<Self> {
        Self::with(&Matcher::from_system(), url, error)
    }

    fn with(proxies: &Matcher, url: &str, error: &(dyn Error + 'static)) -> Option<Self> {
        let proxy = proxies.intercept(&url.parse().ok()?)?;
        let cause = match ConnectFailure::of(error) {
            Some(ConnectFailure::Tls(_)) => return None,
            Some(ConnectFailure::Refused) => "refuses connections".to_owned(),
            Some(ConnectFailure::Dns) => "cannot be resolved".to_owned(),
            None => format!("opened no connection: {}", chain(error)),
        };
        // Without the user and the password.
        let (host, port) = (proxy.uri().host()?, proxy.uri().port_u16());
        let proxy = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some(Self { proxy, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_proxy_without_its_credentials() {
        let proxies = Matcher::builder()
            .https("http://user:secret@proxy.example:3128")
            .no("inside.example")
            .build();
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let text = |url, error: &(dyn Error + 'static)| {
            ProxyFailure::with(&proxies, url, error).map(|failure| failure.to_string())
        };
        assert_eq!(
            text("https://catalogd.example/", &refused).as_deref(),
            Some("proxyconnect: proxy proxy.example:3128 refuses connections")
        );
        assert_eq!(
            text("https://catalogd.example/", &io::Error::other("bad gateway")).as_deref(),
            Some("proxyconnect: proxy proxy.example:3128 opened no connection: bad gateway")
        );
        assert_eq!(text("https://inside.example/", &refused), None);
        assert_eq!(text("http://catalogd.example/", &refused), None);
        let tls = io::Error::other(rustls::Error::DecryptError);
        assert_eq!(text("https://catalogd.example/", &tls), None);
    }

    #[test]
    fn sees_through_wrapped_io_errors() {
        let tls = io::Error::other(io::Error::other(rustls::Error::DecryptError));
        assert_eq!(
            ConnectFailure::of(&tls),
            Some(ConnectFailure::Tls(TlsFailure::Other(
                rustls::Error::DecryptError.to_string()
            )))
        );
        let issuer = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert_eq!(
            ConnectFailure::of(&io::Error::other(issuer)),
            Some(ConnectFailure::Tls(TlsFailure::UnknownAuthority))
        );
        let plain = rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(
            ConnectFailure::of(&io::Error::other(plain)),
            Some(ConnectFailure::Tls(TlsFailure::NoTls))
        );
        let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(ConnectFailure::of(&refused), Some(ConnectFailure::Refused));
        assert_eq!(
            ConnectFailure::of(&io::Error::other("dns error")),
            Some(ConnectFailure::Dns)
        );
        assert_eq!(ConnectFailure::of(&io::Error::other("else")), None);
    }
}
