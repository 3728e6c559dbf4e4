//! What a registry, or the way to it, answered.

use std::{error::Error as StdError, io};

use olm_runtime::connect::ConnectFailure;
use reqwest::StatusCode;

/// A failed request to a registry; each cause has its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No address for the name.
    #[error("the name of registry {host} cannot be resolved; check the reference and DNS")]
    Dns {
        /// The registry.
        host: String,
    },
    /// Nothing listens there.
    #[error("registry {host} refuses connections; check that it runs and its port")]
    Refused {
        /// The registry.
        host: String,
    },
    /// The TLS handshake failed.
    #[error("registry {host} cannot be trusted over TLS: {cause}")]
    Tls {
        /// The registry.
        host: String,
        /// What rustls says.
        cause: String,
    },
    /// No answer in time.
    #[error("registry {host} did not answer in time ({what})")]
    Timeout {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// Any other failure of the connection.
    #[error("the connection to registry {host} failed ({what})")]
    Transfer {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// 401.
    #[error(
        "registry {host} asks for credentials ({what}): {}",
        if *.offered { "those of the pull secret are refused" } else { "the pull secrets have none for it" }
    )]
    Unauthorized {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Whether credentials were sent.
        offered: bool,
    },
    /// 403.
    #[error("registry {host} denies access ({what})")]
    Forbidden {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// 404.
    #[error("manifest unknown or blob missing: registry {host} has no {what}")]
    NotFound {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// 429.
    #[error("registry {host} limits requests and was asked too often ({what})")]
    TooManyRequests {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
    },
    /// Another status.
    #[error("registry {host} answered {status} ({what})")]
    Status {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Its answer.
        status: StatusCode,
    },
    /// The registry's token service cannot be used.
    #[error("registry {host} names no usable token service: {cause}")]
    Token {
        /// The registry.
        host: String,
        /// Why.
        cause: &'static str,
    },
    /// Other content than was asked for.
    #[error("registry {host} sent other content than asked for: {what} has digest {actual}")]
    Digest {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// What came.
        actual: String,
    },
    /// More than is taken.
    #[error("{what} from registry {host} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// More layers than are taken.
    #[error("{what} from registry {host} has {count} layers, more than the limit of {limit}")]
    TooManyLayers {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Its layers.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Not what the protocol says.
    #[error("{what} from registry {host} is malformed")]
    Malformed {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Something that is no container image.
    #[error("{what} from registry {host} is no container image: {kind:?} is not supported")]
    Unsupported {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Its kind.
        kind: String,
    },
    /// An index without a fitting image.
    #[error(
        "no image found in manifest list for architecture {architecture:?}, OS \"linux\": {what} of registry {host}"
    )]
    NoPlatform {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// The architecture this runs on.
        architecture: &'static str,
    },
    /// The disk.
    #[error("content from registry {host} cannot be kept on disk")]
    Disk {
        /// The registry.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl RegistryError {
    /// Whether the registry could not even be talked to in the scheme that was tried.
    pub(crate) fn unreachable(&self) -> bool {
        matches!(
            self,
            Self::Tls { .. } | Self::Refused { .. } | Self::Transfer { .. } | Self::Timeout { .. }
        )
    }

    /// The variant for a failed request.
    pub(crate) fn request(host: &str, what: &str, error: reqwest::Error) -> Self {
        let (host, what) = (host.to_owned(), what.to_owned());
        // The address is known, and after a redirect it may hold a signature that always differs.
        let error = error.without_url();
        if error.is_timeout() {
            return Self::Timeout { host, what };
        }
        match ConnectFailure::of(&error) {
            Some(ConnectFailure::Dns) => Self::Dns { host },
            Some(ConnectFailure::Refused) => Self::Refused { host },
            Some(ConnectFailure::Tls(cause)) => Self::Tls { host, cause },
            None => Self::Transfer {
                host,
                what,
                source: error,
            },
        }
    }

    /// The variant for a status that is no success.
    pub(crate) fn status(host: &str, what: &str, status: StatusCode, offered: bool) -> Self {
        let (host, what) = (host.to_owned(), what.to_owned());
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized { host, what, offered },
            StatusCode::FORBIDDEN => Self::Forbidden { host, what },
            StatusCode::NOT_FOUND => Self::NotFound { host, what },
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests { host, what },
            status => Self::Status { host, what, status },
        }
    }
}
