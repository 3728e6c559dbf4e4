//! Errors of registries and of connections to them.

use std::{error::Error as StdError, io, time::Duration};

use olm_runtime::connect::{ConnectFailure, ProxyFailure, TlsFailure};
use reqwest::StatusCode;

use crate::hosts::HostRejected;
use crate::limits::MinRate;

/// Place of a flag that concerns a registry: both controllers pull images, and one of them alone is not enough.
const DEPLOYMENTS: &str = "in a cluster on both Deployments, catalogd-controller-manager and operator-controller-controller-manager";

/// Failed request to a registry; each cause has its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name does not resolve.
    #[error("the name of registry {host} cannot be resolved; check the reference and DNS")]
    Dns {
        /// The registry.
        host: String,
    },
    /// The connection was refused.
    #[error("registry {host} refuses connections; check that it runs and its port")]
    Refused {
        /// The registry.
        host: String,
    },
    /// The proxy of the environment cannot be reached, or does not reach the registry.
    #[error("registry {host} cannot be reached: {cause}")]
    Proxy {
        /// The registry.
        host: String,
        /// The cause.
        cause: ProxyFailure,
    },
    /// The TLS handshake failed.
    #[error("registry {host} cannot be trusted over TLS: {cause}{}", advice(.host, .cause))]
    Tls {
        /// The registry.
        host: String,
        /// The cause.
        cause: TlsFailure,
    },
    /// The host policy rejects a host.
    #[error(
        "registry {registry} leads to a refused host: {refused}; allow it with --allow-registry-host if it is meant, \
         {DEPLOYMENTS}"
    )]
    Host {
        /// The registry.
        registry: String,
        /// The rejected host, which may be the registry itself.
        refused: HostRejected,
    },
    /// A redirect is not followed.
    #[error("registry {host} redirects {cause}, which is not followed")]
    Redirect {
        /// The registry.
        host: String,
        /// Kind of redirect.
        cause: &'static str,
    },
    /// The HTTP client of a host cannot be built.
    #[error("connection to {host} cannot be configured: {cause}")]
    Client {
        /// The host.
        host: String,
        /// The cause.
        cause: String,
    },
    /// The registry did not answer in time.
    #[error("registry {host} did not answer in time ({what})")]
    Timeout {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
    },
    /// The transfer is below the minimum rate.
    #[error(
        "registry {host} sends {what} too slowly: fewer than {} bytes in {:?}; it is retried later", .least.bytes, .least.window
    )]
    TooSlow {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// The minimum rate.
        least: MinRate,
    },
    /// The wait for a slot timed out.
    #[error(
        "{limit} {work} from registry {host} are in progress, and this one waited {waited:?} for a slot; it is retried later"
    )]
    Busy {
        /// The registry.
        host: String,
        /// Kind of work, in the plural.
        work: &'static str,
        /// Limit on concurrent work of this kind with one registry.
        limit: usize,
        /// Time for which the work waited.
        waited: Duration,
    },
    /// Another failure of the connection.
    #[error("the connection to registry {host} failed ({what})")]
    Transfer {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The connection ended early.
    #[error("the connection to registry {host} ended before {what} was complete")]
    Truncated {
        /// The registry.
        host: String,
        /// The requested object.
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
        /// The requested object.
        what: String,
        /// Credentials were sent.
        offered: bool,
    },
    /// 401; our credentials were withheld because they would have gone to another host.
    #[error(
        "registry {host} asks for credentials ({what}) on behalf of {realm}, which is not of its domain: \
         they are not sent there; allow it with --registry-token-host if it is meant"
    )]
    ForeignRealm {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Host of the token service.
        realm: String,
    },
    /// 403.
    #[error("registry {host} denies access ({what})")]
    Forbidden {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
    },
    /// 404.
    #[error("manifest unknown or blob missing: registry {host} has no {what}")]
    NotFound {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
    },
    /// 429.
    #[error("registry {host} limits the rate of requests ({what})")]
    TooManyRequests {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Delay from `Retry-After`.
        after: Option<Duration>,
    },
    /// 5xx.
    #[error("registry {host} is unavailable, status {status} ({what})")]
    Unavailable {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Status of the response.
        status: StatusCode,
        /// Delay from `Retry-After`.
        after: Option<Duration>,
    },
    /// Another status.
    #[error("registry {host} answered {status} ({what})")]
    Status {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Status of the response.
        status: StatusCode,
    },
    /// The registry's token service cannot be used.
    #[error("registry {host} has no usable token service: {cause}")]
    Token {
        /// The registry.
        host: String,
        /// The cause.
        cause: &'static str,
    },
    /// The content does not match its digest.
    #[error("registry {host} sent wrong content: {what} has digest {actual}")]
    Digest {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Digest of the received content.
        actual: String,
    },
    /// The object is too large.
    #[error("{what} from registry {host} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// The image has too many layers.
    #[error("{what} from registry {host} has {count} layers, more than the limit of {limit}")]
    TooManyLayers {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Number of layers.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The object violates the protocol.
    #[error("{what} from registry {host} is malformed")]
    Malformed {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The object is not a container image.
    #[error("{what} from registry {host} is not a container image: {kind:?} is not supported")]
    Unsupported {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Its media type or kind.
        kind: String,
    },
    /// The index has no image for this platform.
    #[error(
        "no image found in manifest list for architecture {architecture:?}, OS \"linux\": {what} of registry {host}"
    )]
    NoPlatform {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
        /// Architecture of this machine.
        architecture: &'static str,
    },
    /// The disk is full.
    #[error("the disk of the image cache is full: no room for {what} from registry {host}")]
    DiskFull {
        /// The registry.
        host: String,
        /// The requested object.
        what: String,
    },
    /// The disk failed.
    #[error("content from registry {host} cannot be stored on disk")]
    Disk {
        /// The registry.
        host: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl RegistryError {
    /// Returns true if the registry is unreachable with the scheme that was tried.
    pub(crate) fn unreachable(&self) -> bool {
        matches!(
            self,
            Self::Tls { .. }
                | Self::Refused { .. }
                | Self::Proxy { .. }
                | Self::Transfer { .. }
                | Self::Timeout { .. }
        )
    }

    /// Returns true if the registry denies access with the credentials that were sent, or without any.
    pub(crate) fn denied(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Forbidden { .. })
    }

    /// Returns true if the local disk failed, whatever the registry.
    pub(crate) fn of_disk(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Disk { .. })
    }

    /// Returns the delay that the registry asks for if a retry may help; `None` for permanent failures.
    pub(super) fn retry_delay(&self) -> Option<Duration> {
        match self {
            Self::Transfer { .. } | Self::Truncated { .. } | Self::Timeout { .. } => Some(Duration::ZERO),
            Self::TooManyRequests { after, .. } | Self::Unavailable { after, .. } => {
                Some(after.unwrap_or_default())
            }
            _ => None,
        }
    }

    /// Returns the variant for a failed request.
    pub(crate) fn request(host: &str, what: &str, error: reqwest::Error) -> Self {
        let (host, what) = (host.to_owned(), what.to_owned());
        let url = error.url().map(ToString::to_string);
        // The URL is known, and after a redirect it may contain a signature that always differs.
        let error = error.without_url();
        if let Some(refused) = host_rejection(&error) {
            return Self::Host {
                registry: host,
                refused,
            };
        }
        if error.is_timeout() {
            return Self::Timeout { host, what };
        }
        let proxied = url.filter(|_| error.is_connect());
        if let Some(cause) = proxied.and_then(|url| ProxyFailure::of(&url, &error)) {
            return Self::Proxy { host, cause };
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

    /// Returns the variant for an unsuccessful status; `after` is the delay from `Retry-After`.
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

    /// Returns the variant for a failed write.
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

/// Returns the flag that lets the controllers use the registry, after a comma or semicolon; empty if no flag does.
fn advice(host: &str, cause: &TlsFailure) -> String {
    match cause {
        TlsFailure::UnknownAuthority => format!(" with --pull-cas-dir, {DEPLOYMENTS}"),
        TlsFailure::NoTls => format!("; allow plain HTTP with --plain-http-registry={host}, {DEPLOYMENTS}"),
        _ => String::new(),
    }
}

/// Returns the rejection by our own resolver, however deep the HTTP client wrapped it.
fn host_rejection(error: &(dyn StdError + 'static)) -> Option<HostRejected> {
    olm_text::causes(error)
        .find_map(|cause| cause.downcast_ref::<HostRejected>())
        .cloned()
}
