//! Bind addresses in the syntax of Go programs: `:8081`, `0`, `127.0.0.1:0`.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    str::FromStr,
};

/// Listen address of a server, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindAddress {
    /// `""` or `"0"`: the server is off.
    Off,
    /// `":PORT"`: all addresses, of both families if the host has them.
    Any(u16),
    /// `"HOST:PORT"` with a literal address.
    At(SocketAddr),
}

/// Error for an invalid bind address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("bind address {0:?} is not of the form [ADDRESS]:PORT, and not \"0\" for none")]
pub struct AddressError(String);

impl FromStr for BindAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text == "0" {
            return Ok(Self::Off);
        }
        let invalid = || AddressError(text.to_owned());
        if let Some(port) = text.strip_prefix(':') {
            return port.parse().map(Self::Any).map_err(|_| invalid());
        }
        let text = text.replacen("localhost:", "127.0.0.1:", 1);
        text.parse().map(Self::At).map_err(|_| invalid())
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Any(port) => write!(f, ":{port}"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl BindAddress {
    /// Opens a non-blocking listening socket; returns `None` if the server is off.
    ///
    /// # Errors
    /// The operating system refuses the address.
    pub fn listen(self) -> io::Result<Option<TcpListener>> {
        let listener = match self {
            Self::Off => return Ok(None),
            Self::At(address) => TcpListener::bind(address)?,
            Self::Any(port) => {
                let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
                match TcpListener::bind(any) {
                    Ok(listener) => listener,
                    // A host without IPv6 refuses the address family, not the port.
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
                    Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?,
                }
            }
        };
        listener.set_nonblocking(true)?;
        Ok(Some(listener))
    }
}

/// Address of the metrics server: the flag's value, or a default by the rule of [`resolve`](Self::resolve).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsAddress(Option<BindAddress>);

impl FromStr for MetricsAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        text.parse().map(|address| Self(Some(address)))
    }
}

impl MetricsAddress {
    /// Returns the flag's value, else upstream's default: `port` if a certificate is given, off otherwise.
    #[must_use]
    pub fn resolve(self, port: u16, certificate_given: bool) -> BindAddress {
        match self.0 {
            Some(address) => address,
            None if certificate_given => BindAddress::Any(port),
            None => BindAddress::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_syntax_of_go_programs() {
        assert_eq!("".parse(), Ok(BindAddress::Off));
        assert_eq!("0".parse(), Ok(BindAddress::Off));
        assert_eq!(":8081".parse(), Ok(BindAddress::Any(8081)));
        let loopback = SocketAddr::from(([127, 0, 0, 1], 1));
        assert_eq!("127.0.0.1:1".parse(), Ok(BindAddress::At(loopback)));
        assert_eq!("localhost:1".parse(), Ok(BindAddress::At(loopback)));
        for bad in [":x", ":70000", "8081", "host:1", "[::1]"] {
            assert!(bad.parse::<BindAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn metrics_have_a_default_only_with_a_certificate() {
        let resolve = |text: &str, given| text.parse::<MetricsAddress>().unwrap().resolve(7443, given);
        assert_eq!(resolve("", true), BindAddress::Any(7443));
        assert_eq!(resolve("", false), BindAddress::Off);
        assert_eq!(resolve("0", true), BindAddress::Off);
        assert_eq!(resolve(":1", false), BindAddress::Any(1));
        assert!("x".parse::<MetricsAddress>().is_err());
    }

    #[test]
    fn listens_on_the_address() {
        let address: BindAddress = "127.0.0.1:0".parse().unwrap();
        let listener = address.listen().unwrap().unwrap();
        assert!(listener.local_addr().unwrap().port() > 0);
        assert!(BindAddress::Off.listen().unwrap().is_none());
    }
}
