//! What a registry, or the way to it, answered.

use std::{error::Error as StdError, io, time::Duration};

use olm_runtime::connect::{ConnectFailure, TlsFailure};
use reqwest::StatusCode;

use super::LeastRate;
use crate::hosts::HostRefused;

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
        /// Why.
        cause: TlsFailure,
    },
    /// A host that content may not come from.
    #[error(
        "registry {registry} leads to a refused host: {refused}; allow it with --allow-registry-host if it is meant"
    )]
    Host {
        /// The registry.
        registry: String,
        /// The host, which may be the registry itself.
        refused: HostRefused,
    },
    /// A redirect that is not followed.
    #[error("registry {host} redirects {cause}, which is not followed")]
    Redirect {
        /// The registry.
        host: String,
        /// Where to.
        cause: &'static str,
    },
    /// No HTTP client can be made for a host.
    #[error("no connection can be made to {host}: {cause}")]
    Client {
        /// The host.
        host: String,
        /// Why.
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
    /// A transfer below the least rate.
    #[error(
        "registry {host} sends {what} too slowly: fewer than {} bytes in {:?}; it is tried again later", .least.bytes, .least.window
    )]
    TooSlow {
        /// The registry.
        host: String,
        /// Requested object.
        what: String,
        /// The least rate.
        least: LeastRate,
    },
    /// No turn to pull in time.
    #[error(
        "{limit} pulls from registry {host} are under way, and this one waited {waited:?} for its turn; it is tried again later"
    )]
    Busy {
        /// The registry.
        host: String,
        /// Pulls from one registry at the same time.
        limit: usize,
        /// Time for which the pull waited.
        waited: Duration,
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
    /// The connection ended before all was sent.
    #[error("the connection to registry {host} ended before all of {what} had come")]
    Truncated {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
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
    /// 401 without our credentials, because they would have gone elsewhere.
    #[error(
        "registry {host} asks for credentials ({what}) on behalf of {realm}, which is not of its domain: \
         they are not sent there; allow it with --registry-token-host if it is meant"
    )]
    ForeignRealm {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// The token service's host.
        realm: String,
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
        /// How long it wants to be left alone.
        after: Option<Duration>,
    },
    /// 5xx.
    #[error("registry {host} is not able to answer now, status {status} ({what})")]
    Unavailable {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
        /// Its answer.
        status: StatusCode,
        /// How long it wants to be left alone.
        after: Option<Duration>,
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
    /// No room on the disk.
    #[error("the disk of the image cache is full: no room for {what} from registry {host}")]
    DiskFull {
        /// The registry.
        host: String,
        /// What was asked for.
        what: String,
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

    /// How long the registry wants to be left alone when asking the same again may help then.
    pub(super) fn passing(&self) -> Option<Duration> {
        match self {
            Self::Transfer { .. } | Self::Truncated { .. } => Some(Duration::ZERO),
            Self::TooManyRequests { after, .. } | Self::Unavailable { after, .. } => {
                Some(after.unwrap_or_default())
            }
            _ => None,
        }
    }

    /// The variant for a failed request.
    pub(crate) fn request(host: &str, what: &str, error: reqwest::Error) -> Self {
        let (host, what) = (host.to_owned(), what.to_owned());
        // The address is known, and after a redirect it may hold a signature that always differs.
        let error = error.without_url();
        if let Some(refused) = host_refused(&error) {
            return Self::Host {
                registry: host,
                refused,
            };
        }
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

    /// The variant for a status that is no success; `after` is the answer's Retry-After.
    pub(crate) fn status(
        host: &str,
        what: &str,
        status: StatusCode,
        offered: bool,
        after: Option<Duration>,
    ) -> Self {
        let (host, what) = (host.to_owned(), what.to_owned());
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized { host, what, offered },
            StatusCode::FORBIDDEN => Self::Forbidden { host, what },
            StatusCode::NOT_FOUND => Self::NotFound { host, what },
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests { host, what, after },
            status if status.is_server_error() => Self::Unavailable {
                host,
                what,
                status,
                after,
            },
            status => Self::Status { host, what, status },
        }
    }

    /// The variant for a failure to write.
    pub(crate) fn disk(host: &str, what: &str, source: io::Error) -> Self {
        let host = host.to_owned();
        if matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ) {
            let what = what.to_owned();
            return Self::DiskFull { host, what };
        }
        Self::Disk { host, source }
    }
}

/// The refusal of our own resolver, wherever the HTTP client wrapped it.
fn host_refused(error: &(dyn StdError + 'static)) -> Option<HostRefused> {
    olm_text::causes(error)
        .find_map(|cause| cause.downcast_ref::<HostRefused>())
        .cloned()
}
