//! Host policy: hosts that content may come from.
//!
//! Catalogs name registries, and registries name further hosts (redirects, token services). None of them may lead the
//! controllers to the local machine, its link, a cloud's metadata service or services in the cluster, unless the
//! administrator allows it: a catalog's author must not choose whom the controllers contact from inside the network.
//! Names are checked before the lookup, addresses when a connection is opened, so that a second DNS answer cannot
//! smuggle in another address. Connections through a proxy are checked by name only.

mod allow;
mod resolver;

use std::{
    collections::BTreeMap,
    fmt, fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use url::{Host, Url};

pub use allow::{AllowedHost, AllowedHostError};
pub(crate) use resolver::Resolver;

/// Configuration of the DNS resolver.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Environment variable with the API server's address inside a pod.
const API_SERVER: &str = "KUBERNETES_SERVICE_HOST";
/// Metadata services of clouds, besides the link-local ones.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Class of a restricted host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClass {
    /// The local machine.
    Loopback,
    /// The local link, with its metadata services.
    LinkLocal,
    /// Metadata service of a cloud.
    Metadata,
    /// Inside the cluster.
    Cluster,
    /// Unusable address: unspecified, multicast or reserved.
    Reserved,
}

impl fmt::Display for HostClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback host",
            Self::LinkLocal => "a link-local host",
            Self::Metadata => "a metadata service",
            Self::Cluster => "a host inside the cluster",
            Self::Reserved => "no address of a host",
        })
    }
}

/// Host that content must not come from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} is {class}")]
pub struct HostRejected {
    /// The host as named.
    pub host: String,
    /// Class of the host.
    pub class: HostClass,
}

/// Rules on hosts.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    allowed: Vec<AllowedHost>,
    api_server: Option<IpAddr>,
    /// Search domains of the cluster, such as `ns.svc.cluster.local`.
    search: Vec<String>,
    answers: BTreeMap<String, Vec<SocketAddr>>,
}

impl HostPolicy {
    /// Creates the default rules with exceptions.
    #[must_use]
    pub fn new(allowed: Vec<AllowedHost>) -> Self {
        let api_server = std::env::var(API_SERVER).ok().and_then(|text| text.parse().ok());
        let text = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
        Self {
            allowed,
            api_server,
            search: cluster_domains(&text),
            answers: BTreeMap::new(),
        }
    }

    /// Allows every host, for programs that pull on behalf of the user who runs them.
    #[must_use]
    pub fn anywhere() -> Self {
        Self {
            allowed: vec![AllowedHost::Any],
            api_server: None,
            search: Vec::new(),
            answers: BTreeMap::new(),
        }
    }

    /// Resolves a name to this address instead of asking the DNS; the address is checked like any other.
    #[must_use]
    pub fn with_answer(mut self, name: &str, address: SocketAddr) -> Self {
        self.answers.entry(name.to_owned()).or_default().push(address);
        self
    }

    /// Allows a host of registries.conf or of a flag: on its port only, or on all ports if it has none.
    #[must_use]
    pub(crate) fn allowing(mut self, host: &str) -> Self {
        if let Ok(host) = host.parse() {
            self.allowed.push(host);
        }
        self
    }

    /// Checks the host of a URL before it is contacted.
    pub(crate) fn check(&self, url: &Url) -> Result<(), HostRejected> {
        let refused = |class| HostRejected {
            host: url.host_str().unwrap_or_default().to_owned(),
            class,
        };
        let port = url.port_or_known_default();
        let class = match url.host() {
            Some(Host::Ipv4(address)) => self.address(address.into(), port),
            Some(Host::Ipv6(address)) => self.address(address.into(), port),
            Some(Host::Domain(name)) => self.name(name, port),
            None => Some(HostClass::Reserved),
        };
        class.map_or(Ok(()), |class| Err(refused(class)))
    }

    fn name_allowed(&self, name: &str, port: Option<u16>) -> bool {
        self.allowed.iter().any(|allowed| allowed.name(name, port))
    }

    /// Returns the class for which a name is rejected at a port.
    fn name(&self, name: &str, port: Option<u16>) -> Option<HostClass> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if self.name_allowed(&name, port) {
            return None;
        }
        let class = if name == "localhost" || name.ends_with(".localhost") {
            HostClass::Loopback
        } else if !name.contains('.') || self.in_cluster(&name) {
            // With the search list, a single label names a Service of this namespace.
            HostClass::Cluster
        } else {
            return None;
        };
        (!self.allowed.iter().any(|allowed| allowed.class(class))).then_some(class)
    }

    fn in_cluster(&self, name: &str) -> bool {
        let below = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        below("svc")
            || below("cluster.local")
            || self.search.iter().any(|domain| {
                // `ns.svc.cluster.example` also implies `svc.cluster.example` and the pods' domain.
                let service = domain.split_once("svc.").map(|(_, cluster)| cluster);
                below(domain)
                    || service.is_some_and(|cluster| {
                        below(&format!("svc.{cluster}")) || below(&format!("pod.{cluster}"))
                    })
            })
    }

    /// Returns the class for which an address is rejected at a port.
    fn address(&self, address: IpAddr, port: Option<u16>) -> Option<HostClass> {
        let address = without_embedding(address);
        let class = if METADATA.contains(&address) {
            HostClass::Metadata
        } else if self.api_server.map(without_embedding) == Some(address) {
            HostClass::Cluster
        } else {
            class_of(address)?
        };
        let allowed = |rule: &AllowedHost| rule.class(class) || rule.address(address, port);
        (!self.allowed.iter().any(allowed)).then_some(class)
    }
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// Returns the IPv4 address that an IPv6 address embeds, if any.
fn without_embedding(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else {
        return address;
    };
    let [first, second, .., high, low] = six.segments();
    // 64:ff9b::/96 (NAT64) is how IPv6-only machines reach IPv4.
    if (first, second) == (0x64, 0xff9b) {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return Ipv4Addr::new(a, b, c, d).into();
    }
    six.to_canonical()
}

fn class_of(address: IpAddr) -> Option<HostClass> {
    let (loopback, link_local, reserved) = match address {
        IpAddr::V4(four) => (
            four.is_loopback(),
            four.is_link_local(),
            matches!(four.octets(), [0 | 224..=255, ..]),
        ),
        IpAddr::V6(six) => (
            six.is_loopback(),
            six.is_unicast_link_local(),
            six.is_unspecified() || six.is_multicast(),
        ),
    };
    if loopback {
        Some(HostClass::Loopback)
    } else if link_local {
        Some(HostClass::LinkLocal)
    } else if reserved {
        Some(HostClass::Reserved)
    } else {
        None
    }
}

/// Returns the search domains that belong to a cluster.
fn cluster_domains(resolv_conf: &str) -> Vec<String> {
    resolv_conf
        .lines()
        .filter_map(|line| line.trim().strip_prefix("search"))
        .flat_map(str::split_whitespace)
        .map(|domain| domain.trim_end_matches('.').to_ascii_lowercase())
        .filter(|domain| domain.starts_with("svc.") || domain.contains(".svc."))
        .collect()
}

/// Returns the host of `host[:port]`, without the brackets of an IPv6 address.
pub(crate) fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.split(':').next().unwrap_or(host)
}

#[cfg(test)]
mod tests;
