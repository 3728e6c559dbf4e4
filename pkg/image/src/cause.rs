//! Causes of image failures as metric labels, a small closed set.

use crate::{error::Error, registry::RegistryError, unpack::UnpackError};

/// Cause of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The registry's name does not resolve.
    Dns,
    /// The registry is not trusted over TLS.
    Tls,
    /// The connection was refused or broke.
    Connection,
    /// The registry did not answer in time, or the transfer or unpacking took too long.
    Timeout,
    /// Credentials are missing or rejected.
    Unauthorized,
    /// The image does not exist.
    NotFound,
    /// The registry limits requests.
    RateLimited,
    /// The registry is unavailable.
    Unavailable,
    /// The content does not match its digest.
    Digest,
    /// The signature policy rejects the image or cannot be used.
    Policy,
    /// `registries.conf` or the host policy blocks the source.
    Blocked,
    /// The image exceeds a limit.
    TooLarge,
    /// The reference or the image is invalid.
    Invalid,
    /// The disk failed.
    Disk,
    /// Our own configuration cannot be used, or the work was interrupted.
    Other,
}

impl Cause {
    /// The causes.
    pub const ALL: [Self; 15] = [
        Self::Dns,
        Self::Tls,
        Self::Connection,
        Self::Timeout,
        Self::Unauthorized,
        Self::NotFound,
        Self::RateLimited,
        Self::Unavailable,
        Self::Digest,
        Self::Policy,
        Self::Blocked,
        Self::TooLarge,
        Self::Invalid,
        Self::Disk,
        Self::Other,
    ];

    /// Returns the label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::Digest => "digest",
            Self::Policy => "policy",
            Self::Blocked => "blocked",
            Self::TooLarge => "too_large",
            Self::Invalid => "invalid",
            Self::Disk => "disk",
            Self::Other => "other",
        }
    }
}

impl Error {
    /// Returns the cause of the failure.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Reference(_) | Self::Owner(_) | Self::MissingLabel { .. } | Self::LabelDirectory { .. } => {
                Cause::Invalid
            }
            Self::Blocked { .. } => Cause::Blocked,
            Self::Policy(_) | Self::Refused { .. } => Cause::Policy,
            Self::Resolve { source, .. } | Self::Pull { source, .. } => source.cause(),
            Self::Sources { failed, .. } | Self::PullSecrets { failed, .. } => failed.cause(),
            Self::TooSlow { .. } => Cause::Timeout,
            Self::Unpack { source, .. } => source.cause(),
            Self::Cache { .. } => Cause::Disk,
            Self::Registries(_) | Self::Auth(_) | Self::Authorities(_) | Self::Interrupted => Cause::Other,
        }
    }
}

impl RegistryError {
    fn cause(&self) -> Cause {
        match self {
            Self::Dns { .. } => Cause::Dns,
            Self::Tls { .. } => Cause::Tls,
            Self::Refused { .. } | Self::Proxy { .. } | Self::Transfer { .. } | Self::Truncated { .. } => {
                Cause::Connection
            }
            Self::Timeout { .. } | Self::TooSlow { .. } | Self::Busy { .. } => Cause::Timeout,
            Self::Unauthorized { .. }
            | Self::ForeignRealm { .. }
            | Self::Forbidden { .. }
            | Self::Token { .. } => Cause::Unauthorized,
            Self::NotFound { .. } => Cause::NotFound,
            Self::TooManyRequests { .. } => Cause::RateLimited,
            Self::Unavailable { .. } | Self::Status { .. } => Cause::Unavailable,
            Self::Digest { .. } => Cause::Digest,
            Self::Host { .. } | Self::Redirect { .. } => Cause::Blocked,
            Self::TooLarge { .. } | Self::TooManyLayers { .. } => Cause::TooLarge,
            Self::Malformed { .. } | Self::Unsupported { .. } | Self::NoPlatform { .. } => Cause::Invalid,
            Self::DiskFull { .. } | Self::Disk { .. } => Cause::Disk,
            Self::Client { .. } => Cause::Other,
        }
    }
}

impl UnpackError {
    fn cause(&self) -> Cause {
        match self {
            Self::TooManyEntries { .. }
            | Self::TooManyUnpacked { .. }
            | Self::PathsTooLong { .. }
            | Self::TooLarge { .. }
            | Self::FileTooLarge { .. }
            | Self::TooDeep { .. }
            | Self::Ratio { .. } => Cause::TooLarge,
            Self::DiskFull { .. } | Self::Write { .. } => Cause::Disk,
            Self::Stopped => Cause::Timeout,
            Self::Read(_)
            | Self::Compression { .. }
            | Self::Name { .. }
            | Self::Special { .. }
            | Self::Header { .. }
            | Self::HardLink { .. }
            | Self::Circle { .. }
            | Self::NotADirectory { .. } => Cause::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_few_and_distinct() {
        let words: std::collections::BTreeSet<_> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
        assert_eq!(words.len(), Cause::ALL.len());
    }

    #[test]
    fn the_innermost_cause_counts() {
        let denied = RegistryError::Unauthorized {
            host: "r".to_owned(),
            what: "manifest".to_owned(),
            offered: false,
        };
        let reference = "r.example/a:1".parse().unwrap();
        let failed = Error::Resolve {
            reference,
            source: Box::new(denied),
        };
        let error = Error::PullSecrets {
            problem: "t".to_owned(),
            failed: Box::new(failed),
        };
        assert_eq!(error.cause(), Cause::Unauthorized);
        let bomb = Error::Unpack {
            layer: 0,
            source: UnpackError::Ratio { limit: 1 },
        };
        assert_eq!(bomb.cause(), Cause::TooLarge);
    }
}
