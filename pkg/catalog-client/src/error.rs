//! Why a package could not be had.

use olm_fbc::{ContentError, DecodeError};
use olm_runtime::connect::ConnectFailure;
use reqwest::StatusCode;

/// What to do about a [`ClientError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Try again after a while: the way to catalogd, or catalogd itself, may heal.
    Retry,
    /// Only another content of the catalog can help; its status will then change.
    AwaitContent,
}

/// A failed read of a catalog's package; each cause has its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// `status.urls.base` is no URL.
    #[error("cache for catalog {catalog:?} not found: its base URL {url:?} is no HTTP URL")]
    Url {
        /// The catalog.
        catalog: String,
        /// The URL.
        url: String,
    },
    /// catalogd, or this replica of it, does not have the content (yet).
    #[error("cache for catalog {catalog:?} not found: catalogd does not have its content yet")]
    NoContent {
        /// The catalog.
        catalog: String,
    },
    /// A replica of catalogd serves the content of another image than the catalog's status says.
    #[error(
        "catalogd does not yet serve catalog {catalog:?} from image digest {digest}, which its status names"
    )]
    Outdated {
        /// The catalog.
        catalog: String,
        /// Digest that the status names.
        digest: String,
    },
    /// Any other status than success.
    #[error("error populating cache for catalog {catalog:?}: error: received unexpected response status code {}", .status.as_u16())]
    Status {
        /// The catalog.
        catalog: String,
        /// The status.
        status: StatusCode,
    },
    /// catalogd asks who reads, and this is not somebody who may.
    #[error(
        "error populating cache for catalog {catalog:?}: error: received unexpected response status code {}: {}",
        .status.as_u16(),
        next_step(*.status, *.brought)
    )]
    Denied {
        /// The catalog.
        catalog: String,
        /// 401 or 403.
        status: StatusCode,
        /// Whether a token was brought.
        brought: bool,
    },
    /// The token to bring cannot be had.
    #[error(
        "catalogd cannot be asked for catalog {catalog:?}: the token file {path} cannot be used: {cause}"
    )]
    Token {
        /// The catalog.
        catalog: String,
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// The authorities to trust cannot be had.
    #[error(
        "catalogd cannot be asked for catalog {catalog:?}: the certificate authorities to trust cannot be read: {cause}"
    )]
    Trust {
        /// The catalog.
        catalog: String,
        /// Why.
        cause: String,
    },
    /// The TLS handshake failed, also with authorities read anew.
    #[error("catalogd cannot be trusted over TLS for catalog {catalog:?}: {cause}")]
    Tls {
        /// The catalog.
        catalog: String,
        /// What rustls says.
        cause: String,
    },
    /// The service's name has no address.
    #[error("catalogd cannot be asked for catalog {catalog:?}: the name {host} cannot be resolved")]
    Dns {
        /// The catalog.
        catalog: String,
        /// The host.
        host: String,
    },
    /// Nothing listens there.
    #[error("catalogd cannot be asked for catalog {catalog:?}: {host} refuses connections")]
    Refused {
        /// The catalog.
        catalog: String,
        /// The host.
        host: String,
    },
    /// No answer in time.
    #[error("catalogd did not answer in time for catalog {catalog:?}")]
    Timeout {
        /// The catalog.
        catalog: String,
    },
    /// Any other failure of the connection.
    #[error("catalogd cannot be asked for catalog {catalog:?}: the connection failed")]
    Transfer {
        /// The catalog.
        catalog: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The answer broke off or is larger than taken.
    #[error("the content of catalog {catalog:?} cannot be read")]
    Decode {
        /// The catalog.
        catalog: String,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// The answer is larger than permitted, or its values would take more memory.
    #[error("error loading package {package:?} of catalog {catalog:?}: more than {limit} bytes")]
    TooLarge {
        /// The catalog.
        catalog: String,
        /// The package.
        package: String,
        /// The limit.
        limit: u64,
    },
    /// The package's objects have another shape than their schema.
    #[error("the content of catalog {catalog:?} cannot be used")]
    Content {
        /// The catalog.
        catalog: String,
        /// Why.
        #[source]
        source: ContentError,
    },
    /// Another content was published between two requests.
    #[error("the content of catalog {catalog:?} changed while it was read")]
    Changed {
        /// The catalog.
        catalog: String,
    },
    /// The task that decodes ended abnormally.
    #[error("reading catalog {catalog:?} was interrupted")]
    Interrupted {
        /// The catalog.
        catalog: String,
    },
}

fn next_step(status: StatusCode, brought: bool) -> &'static str {
    match (status, brought) {
        (StatusCode::FORBIDDEN, _) => {
            "the account of the token in --catalogd-token-file may not read this catalog; \
             bind ClusterRole catalogd-content-reader to it"
        }
        (_, true) => {
            "catalogd does not accept the token in --catalogd-token-file; \
             make it for audience catalogd.olm.operatorframework.io"
        }
        (_, false) => {
            "catalogd asks for a token (--catalogs-server-require-token), and none was brought; \
             name its file by --catalogd-token-file"
        }
    }
}

impl ClientError {
    /// What to do about it.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Content { .. } | Self::TooLarge { .. } | Self::Url { .. } => Disposition::AwaitContent,
            Self::Decode { source, .. } if source.terminal() => Disposition::AwaitContent,
            _ => Disposition::Retry,
        }
    }

    /// Returns whether another replica of catalogd may have what this one has not.
    pub(crate) fn of_replica(&self) -> bool {
        matches!(
            self,
            Self::Outdated { .. } | Self::NoContent { .. } | Self::Changed { .. }
        )
    }

    /// Whether trying again cannot help. Never so for the extension that asks: catalogd, its
    /// content and the way to it can all change without an edit of the extension.
    pub fn terminal(&self) -> bool {
        false
    }

    /// The whole chain of causes in one line.
    pub fn message(&self) -> String {
        olm_text::chain(self)
    }

    /// The variant for a failed request.
    pub(crate) fn request(catalog: &str, error: reqwest::Error) -> Self {
        let catalog = catalog.to_owned();
        let host = error
            .url()
            .and_then(|url| url.host_str())
            .unwrap_or("catalogd")
            .to_owned();
        let error = error.without_url();
        if error.is_timeout() {
            return Self::Timeout { catalog };
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
