//! Errors of reading a package.

use olm_fbc::{ContentError, DecodeError};
use olm_runtime::connect::{ConnectFailure, ProxyFailure};
use olm_text::name::{CatalogName, PackageName};
use reqwest::StatusCode;

/// Failed read of a catalog's package; each cause has its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// `status.urls.base` is not a URL.
    #[error("cache for catalog {catalog:?} not found: its base URL {url:?} is not an HTTP URL")]
    Url {
        /// The catalog.
        catalog: CatalogName,
        /// The URL.
        url: String,
    },
    /// catalogd, or this replica of it, does not have the content yet.
    #[error("cache for catalog {catalog:?} not found: catalogd does not have its content yet")]
    NoContent {
        /// The catalog.
        catalog: CatalogName,
    },
    /// A replica of catalogd serves another image than the one in the catalog's status.
    #[error(
        "catalogd does not yet serve catalog {catalog:?} from image digest {digest}, which its status names"
    )]
    Outdated {
        /// The catalog.
        catalog: CatalogName,
        /// Digest in the status.
        digest: String,
    },
    /// Another status than success.
    #[error("error populating cache for catalog {catalog:?}: error: received unexpected response status code {}", .status.as_u16())]
    Status {
        /// The catalog.
        catalog: CatalogName,
        /// Status of the response.
        status: StatusCode,
    },
    /// catalogd requires a token, or the token's user may not read the catalog.
    #[error(
        "error populating cache for catalog {catalog:?}: error: received unexpected response status code {}: {}",
        .status.as_u16(),
        next_step(*.status, *.token_sent)
    )]
    Denied {
        /// The catalog.
        catalog: CatalogName,
        /// 401 or 403.
        status: StatusCode,
        /// A token was sent.
        token_sent: bool,
    },
    /// The token cannot be read.
    #[error(
        "catalog {catalog:?} cannot be read from catalogd: the token file {path} cannot be used: {cause}"
    )]
    Token {
        /// The catalog.
        catalog: CatalogName,
        /// The file.
        path: String,
        /// The cause.
        cause: String,
    },
    /// The authorities cannot be read.
    #[error(
        "catalog {catalog:?} cannot be read from catalogd: the certificate authorities to trust cannot be read: {cause}"
    )]
    Trust {
        /// The catalog.
        catalog: CatalogName,
        /// The cause.
        cause: String,
    },
    /// The TLS handshake failed, also with reread authorities.
    #[error("catalogd cannot be trusted over TLS for catalog {catalog:?}: {cause}")]
    Tls {
        /// The catalog.
        catalog: CatalogName,
        /// Error of rustls.
        cause: String,
    },
    /// The service's name does not resolve.
    #[error("catalog {catalog:?} cannot be read from catalogd: the name {host} cannot be resolved")]
    Dns {
        /// The catalog.
        catalog: CatalogName,
        /// The host.
        host: String,
    },
    /// The connection was refused.
    #[error("catalog {catalog:?} cannot be read from catalogd: {host} refuses connections")]
    Refused {
        /// The catalog.
        catalog: CatalogName,
        /// The host.
        host: String,
    },
    /// The proxy of the environment cannot be reached, or does not reach catalogd.
    #[error("catalog {catalog:?} cannot be read from catalogd: {cause}")]
    Proxy {
        /// The catalog.
        catalog: CatalogName,
        /// The cause.
        cause: ProxyFailure,
    },
    /// catalogd did not answer in time.
    #[error("catalogd did not answer in time for catalog {catalog:?}")]
    Timeout {
        /// The catalog.
        catalog: CatalogName,
    },
    /// Another failure of the connection.
    #[error("catalog {catalog:?} cannot be read from catalogd: the connection failed")]
    Transfer {
        /// The catalog.
        catalog: CatalogName,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The response broke off or cannot be decoded.
    #[error("the content of catalog {catalog:?} cannot be read")]
    Decode {
        /// The catalog.
        catalog: CatalogName,
        /// The cause.
        #[source]
        source: DecodeError,
    },
    /// The package exceeds a limit on its size or memory.
    #[error("error loading package {package:?} of catalog {catalog:?}: more than {limit} bytes")]
    TooLarge {
        /// The catalog.
        catalog: CatalogName,
        /// The package.
        package: PackageName,
        /// The limit.
        limit: u64,
    },
    /// The package's objects do not match their schema.
    #[error("the content of catalog {catalog:?} cannot be used")]
    Content {
        /// The catalog.
        catalog: CatalogName,
        /// The cause.
        #[source]
        source: ContentError,
    },
    /// The content changed between two requests.
    #[error("the content of catalog {catalog:?} changed while it was read")]
    Changed {
        /// The catalog.
        catalog: CatalogName,
    },
    /// The decoding task panicked or was cancelled.
    #[error("reading catalog {catalog:?} was interrupted")]
    Interrupted {
        /// The catalog.
        catalog: CatalogName,
    },
}

fn next_step(status: StatusCode, token_sent: bool) -> &'static str {
    match (status, token_sent) {
        (StatusCode::FORBIDDEN, _) => {
            "the account of the token in --catalogd-token-file may not read this catalog; \
             bind ClusterRole catalogd-content-reader to it"
        }
        (_, true) => {
            "catalogd does not accept the token in --catalogd-token-file; \
             make it for audience catalogd.olm.operatorframework.io"
        }
        (_, false) => {
            "catalogd asks for a token (--catalogs-server-require-token), and none was sent; \
             name its file by --catalogd-token-file"
        }
    }
}

impl ClientError {
    /// Returns true if another replica of catalogd may succeed.
    pub(crate) fn may_differ_by_replica(&self) -> bool {
        matches!(
            self,
            Self::Outdated { .. } | Self::NoContent { .. } | Self::Changed { .. }
        )
    }

    /// Returns the chain of causes in one line.
    pub fn message(&self) -> String {
        olm_text::chain(self)
    }

    /// Returns the variant for a failed request.
    pub(crate) fn request(catalog: &CatalogName, error: reqwest::Error) -> Self {
        let catalog = catalog.clone();
        let host = error
            .url()
            .and_then(|url| url.host_str())
            .unwrap_or("catalogd")
            .to_owned();
        let url = error.url().map(ToString::to_string);
        let error = error.without_url();
        if error.is_timeout() {
            return Self::Timeout { catalog };
        }
        let proxied = url.filter(|_| error.is_connect());
        if let Some(cause) = proxied.and_then(|url| ProxyFailure::of(&url, &error)) {
            return Self::Proxy { catalog, cause };
        }
        match ConnectFailure::of(&error) {
            Some(ConnectFailure::Dns) => Self::Dns { catalog, host },
            Some(ConnectFailure::Refused) => Self::Refused { catalog, host },
            Some(ConnectFailure::Tls(cause)) => Self::Tls {
                catalog,
                cause: cause.to_string(),
            },
            None => Self::Transfer {
                catalog,
                source: error,
            },
        }
    }
}
