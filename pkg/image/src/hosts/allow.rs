//! Hosts that the administrator allows, as written on the command line.

use std::{
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use super::{HostClass, without_embedding};

/// Exception from the host rules: `*`, `loopback`, `link-local`, `cluster`, a host name, `*.DOMAIN`, an address (IPv6 also in
/// brackets), or a network as `ADDRESS/BITS`; a name or an address also with one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHost {
    /// Every host.
    Any,
    /// Every host of a class.
    Class(HostClass),
    /// Host with this name, in lower case.
    Name(String),
    /// Hosts below a domain, in lower case, with a leading dot.
    Subdomains(String),
    /// Network: address and prefix length.
    Network(IpAddr, u8),
    /// A single port of a host name or address.
    Port(Box<AllowedHost>, u16),
}

/// The text is not an [`AllowedHost`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no host: write NAME or NAME:PORT, *.DOMAIN, ADDRESS, [ADDRESS]:PORT, ADDRESS/BITS, or one of the words \
     loopback, link-local, cluster and *"
)]
pub struct AllowedHostError(String);

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || AllowedHostError(text.to_owned());
        let lower = text.to_ascii_lowercase();
        let name = |name: &str| {
            let name = name.strip_suffix('.').unwrap_or(name);
            let fits = !name.is_empty()
                && name.split('.').all(|label| {
                    !label.is_empty()
                        && label
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
                });
            fits.then(|| name.to_owned()).ok_or_else(refused)
        };
        match lower.as_str() {
            "*" => return Ok(Self::Any),
            "loopback" => return Ok(Self::Class(HostClass::Loopback)),
            "link-local" => return Ok(Self::Class(HostClass::LinkLocal)),
            "cluster" => return Ok(Self::Class(HostClass::Cluster)),
            _ => {}
        }
        if let Some(domain) = lower.strip_prefix("*.") {
            return Ok(Self::Subdomains(format!(".{}", name(domain)?)));
        }
        if let Some((host, port)) = with_port(&lower) {
            let port = port.parse().map_err(|_| refused())?;
            return match host.parse().map_err(|_| refused())? {
                host @ Self::Name(_) => Ok(Self::Port(Box::new(host), port)),
                Self::Network(address, bits) if bits == address_bits(address) => {
                    Ok(Self::Port(Box::new(Self::Network(address, bits)), port))
                }
                _ => Err(refused()),
            };
        }
        if let Some(address) = bracketed(&lower) {
            let address = without_embedding(address.parse::<Ipv6Addr>().map_err(|_| refused())?.into());
            return Ok(Self::Network(address, address_bits(address)));
        }
        let (address, bits) = match lower.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (lower.as_str(), None),
        };
        match (address.parse::<IpAddr>(), bits) {
            (Ok(address), None) => Ok(Self::Network(
                without_embedding(address),
                address_bits(without_embedding(address)),
            )),
            (Ok(address), Some(bits)) => {
                let bits: u8 = bits.parse().map_err(|_| refused())?;
                if bits <= address_bits(address) {
                    Ok(Self::Network(address, bits))
                } else {
                    Err(refused())
                }
            }
            (Err(_), None) => name(address).map(Self::Name),
            (Err(_), Some(_)) => Err(refused()),
        }
    }
}

/// Returns the address in `[address]`.
fn bracketed(text: &str) -> Option<&str> {
    text.strip_prefix('[')?.strip_suffix(']')
}

/// Splits `host:port` and `[address]:port`; an IPv6 address without brackets has no port.
fn with_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(rest) => Some((rest.strip_suffix(']')?, port)),
        None => (!host.contains(':')).then_some((host, port)),
    }
}

impl AllowedHost {
    /// Returns true if the rule allows a name at a port. A rule with a port allows nothing if the port is unknown.
    pub(super) fn name(&self, name: &str, port: Option<u16>) -> bool {
        match self {
            Self::Any => true,
            Self::Port(host, allowed) => port == Some(*allowed) && host.name(name, port),
            Self::Name(allowed) => allowed == name,
            Self::Subdomains(domain) => name.ends_with(domain.as_str()),
            Self::Class(_) | Self::Network(..) => false,
        }
    }

    pub(super) fn class(&self, class: HostClass) -> bool {
        match self {
            Self::Any => true,
            Self::Class(allowed) => *allowed == class,
            Self::Name(_) | Self::Subdomains(_) | Self::Network(..) | Self::Port(..) => false,
        }
    }

    /// Returns true if the rule allows an address at a port. A rule with a port allows nothing if the port is unknown.
    pub(super) fn address(&self, address: IpAddr, port: Option<u16>) -> bool {
        let (network, bits) = match self {
            Self::Network(network, bits) => (network, bits),
            Self::Port(host, allowed) => return port == Some(*allowed) && host.address(address, port),
            _ => return matches!(self, Self::Any),
        };
        let prefix = |value: u128, of: u8| value.checked_shr(u32::from(of - *bits)).unwrap_or(0);
        match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                prefix(network.to_bits().into(), 32) == prefix(address.to_bits().into(), 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                prefix(network.to_bits(), 128) == prefix(address.to_bits(), 128)
            }
            _ => false,
        }
    }
}

fn address_bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}
