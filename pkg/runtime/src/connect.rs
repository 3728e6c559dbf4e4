//! Why a connection could not be opened, read off an HTTP client's error.

use std::{error::Error, io};

/// A failed connection; what can be told apart is told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// The name has no address.
    Dns,
    /// Nothing listens there.
    Refused,
    /// The TLS handshake failed; what rustls says.
    Tls(String),
}

impl ConnectFailure {
    /// The first known cause among an error and its sources.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(current) = cause {
            if let Some(io) = current.downcast_ref::<io::Error>() {
                if io.kind() == io::ErrorKind::ConnectionRefused {
                    return Some(Self::Refused);
                }
                // What an io error wraps is not its source, but the source of that is.
                if let Some(found) = io.get_ref().and_then(|inner| Self::of(inner)) {
                    return Some(found);
                }
            }
            if let Some(tls) = current.downcast_ref::<rustls::Error>() {
                return Some(Self::Tls(tls.to_string()));
            }
            // The connector's own type is private.
            if current.to_string().starts_with("dns error") {
                return Some(Self::Dns);
            }
            cause = current.source();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_through_wrapped_io_errors() {
        let tls = io::Error::other(io::Error::other(rustls::Error::DecryptError));
        assert_eq!(
            ConnectFailure::of(&tls),
            Some(ConnectFailure::Tls(rustls::Error::DecryptError.to_string()))
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
