//! Choice of the proxy for the connection to the API server, by the rules of kubectl.
//!
//! kube's own choice compares `NO_PROXY` with the proxy instead of the API server, and refuses lists that kubectl reads.

use std::net::IpAddr;

use http::{Uri, uri::Authority};
use ipnet::IpNet;

/// Default port of a SOCKS5 proxy; the connector knows those of HTTP and HTTPS.
const SOCKS5_PORT: u16 = 1080;

/// Error about a proxy. The text has neither its user nor its password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy of {origin} cannot be used: {defect}")]
pub struct ProxyError {
    origin: &'static str,
    defect: Defect,
}

/// Defect of a proxy's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Defect {
    #[error("its address is malformed; write http://HOST:PORT")]
    Malformed,
    #[error("the scheme {0:?} is not supported; use http, https or socks5")]
    Scheme(String),
    #[error("a user is not supported with socks5; use a proxy without a user, or an HTTP proxy")]
    Socks5User,
}

/// Proxy settings of the environment.
#[derive(Clone, Default)]
pub(super) struct Environment {
    http: Option<String>,
    https: Option<String>,
    /// Value of `NO_PROXY`: servers that are reached without a proxy.
    direct: Option<String>,
}

impl Environment {
    /// Reads the variables that kubectl reads. An empty variable counts as unset.
    pub(super) fn read() -> Self {
        let first = |names: [&str; 2]| {
            names
                .into_iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        };
        Self {
            http: first(["HTTP_PROXY", "http_proxy"]),
            https: first(["HTTPS_PROXY", "https_proxy"]),
            direct: first(["NO_PROXY", "no_proxy"]),
        }
    }

    /// Returns the proxy for the API server at `cluster`, if any.
    ///
    /// `kubeconfig` is the cluster's `proxy-url`: it wins over the environment, and `NO_PROXY` does not apply to it.
    ///
    /// # Errors
    /// The address of the proxy is unusable.
    pub(super) fn proxy(&self, kubeconfig: Option<&str>, cluster: &Uri) -> Result<Option<Uri>, ProxyError> {
        let failed = |origin| move |defect| ProxyError { origin, defect };
        if let Some(value) = kubeconfig.filter(|value| !value.is_empty()) {
            return parse(value)
                .map(Some)
                .map_err(failed("proxy-url in the kubeconfig"));
        }
        let (origin, value) = if cluster.scheme_str() == Some("http") {
            ("HTTP_PROXY", &self.http)
        } else {
            ("HTTPS_PROXY", &self.https)
        };
        match value {
            Some(value) if !self.is_direct(cluster) => parse(value).map(Some).map_err(failed(origin)),
            _ => Ok(None),
        }
    }

    /// Returns true if the environment's proxies are not for this server: it is local, or `NO_PROXY` lists it.
    fn is_direct(&self, server: &Uri) -> bool {
        let Some(target) = Target::of(server) else {
            return true;
        };
        let listed = self.direct.as_deref().unwrap_or_default();
        target.is_local() || listed.split(',').any(|entry| target.is_listed(entry))
    }
}

/// Server that a connection is for.
struct Target {
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl Target {
    fn of(server: &Uri) -> Option<Self> {
        let host = without_brackets(server.host()?).to_ascii_lowercase();
        let default = if server.scheme_str() == Some("http") {
            80
        } else {
            443
        };
        Some(Self {
            address: address(&host),
            host,
            port: server.port_u16().unwrap_or(default),
        })
    }

    fn is_local(&self) -> bool {
        self.host == "localhost" || self.address.is_some_and(|address| address.is_loopback())
    }

    /// Returns true if an entry of `NO_PROXY` is for this server: `*`, a network, or an address or domain with or without a port.
    /// A domain includes its subdomains; with a leading dot or `*.` it is only for these.
    fn is_listed(&self, entry: &str) -> bool {
        let entry = entry.trim().to_ascii_lowercase();
        if entry == "*" {
            return true;
        }
        if let Ok(network) = entry.parse::<IpNet>() {
            return self.address.is_some_and(|address| network.contains(&address));
        }
        let (name, port) = split_port(&entry);
        if port.is_some_and(|port| port.parse() != Ok(self.port)) {
            return false;
        }
        if let Some(listed) = address(name) {
            return self.address == Some(listed);
        }
        let name = name
            .strip_prefix('*')
            .filter(|rest| rest.starts_with('.'))
            .unwrap_or(name);
        let rest = self.host.strip_suffix(name).filter(|_| !name.is_empty());
        rest.is_some_and(|rest| name.starts_with('.') || rest.is_empty() || rest.ends_with('.'))
    }
}

/// Splits HOST:PORT. An IPv6 address has a port only after brackets.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (without_brackets(host), Some(port))
        }
        _ => (without_brackets(entry), None),
    }
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

/// Parses an address; one of IPv4 that is written as IPv6 is one of IPv4.
fn address(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Parses the address of a proxy. Without a scheme it is an HTTP proxy.
fn parse(value: &str) -> Result<Uri, Defect> {
    let value = value.trim();
    let value = if value.contains("://") {
        value.to_owned()
    } else {
        format!("http://{value}")
    };
    let uri: Uri = value.parse().map_err(|_| Defect::Malformed)?;
    let authority = uri
        .authority()
        .filter(|authority| !authority.host().is_empty())
        .ok_or(Defect::Malformed)?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        // Names are resolved by the proxy in both cases.
        Some("socks5" | "socks5h") => socks5(authority),
        scheme => Err(Defect::Scheme(scheme.unwrap_or_default().to_owned())),
    }
}

fn socks5(authority: &Authority) -> Result<Uri, Defect> {
    if authority.as_str().contains('@') {
        // kube would connect without the user.
        return Err(Defect::Socks5User);
    }
    let port = authority.port_u16().unwrap_or(SOCKS5_PORT);
    format!("socks5://{}:{port}", authority.host())
        .parse()
        .map_err(|_| Defect::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(https: &str, direct: &str) -> Environment {
        Environment {
            https: Some(https.to_owned()),
            direct: Some(direct.to_owned()),
            ..Environment::default()
        }
    }

    fn uses_proxy(server: &str, direct: &str) -> bool {
        let environment = environment("http://proxy.example:3128", direct);
        let proxy = environment.proxy(None, &server.parse().unwrap()).unwrap();
        proxy.is_some()
    }

    #[test]
    fn no_proxy_has_the_rules_of_kubectl() {
        for (server, direct, expected) in [
            ("https://api.example:6443", "", true),
            ("https://api.example:6443", "*", false),
            ("https://192.0.2.7:6443", "other.example, *", false),
            ("https://api.example:6443", "api.example", false),
            ("https://API.Example:6443", "api.EXAMPLE", false),
            ("https://api.example:6443", "example", false),
            ("https://api.example:6443", ".example", false),
            ("https://api.example:6443", "*.example", false),
            ("https://notexample:6443", "example", true),
            ("https://example:6443", ".example", true),
            ("https://example:6443", "*.example", true),
            ("https://api.example:6443", "pi.example", true),
            ("https://api.example:6443", "api.example:6443", false),
            ("https://api.example:6443", "api.example:443", true),
            ("https://api.example", ".example:443", false),
            ("https://api.example:6443", "api.example:https", true),
            ("https://192.0.2.7:6443", "192.0.2.7", false),
            ("https://192.0.2.7:6443", "192.0.2.7:6443", false),
            ("https://192.0.2.7:6443", "192.0.2.7:443", true),
            ("https://192.0.2.7:6443", "192.0.2.8", true),
            ("https://192.0.2.7:6443", "192.0.2.0/24", false),
            ("https://192.0.2.7:6443", "198.51.100.0/24", true),
            ("https://[2001:db8::1]:6443", "2001:db8::1", false),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443", false),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:443", true),
            ("https://[2001:db8::1]:6443", "2001:db8::/32", false),
            // Empty entries and unknown ones do not matter.
            ("https://api.example:6443", ",a b,, /x,:6443", true),
            (
                "https://api.example:6443",
                "localhost,127.0.0.1,api.example,",
                false,
            ),
            // Local servers need no entry.
            ("https://localhost:6443", "", false),
            ("https://127.0.0.1:6443", "", false),
            ("https://127.8.8.8:6443", "", false),
            ("https://[::1]:6443", "", false),
        ] {
            assert_eq!(uses_proxy(server, direct), expected, "{server} with {direct:?}");
        }
    }

    #[test]
    fn the_kubeconfig_wins_over_the_environment() {
        let environment = Environment {
            http: Some("plain.example:80".to_owned()),
            ..environment("proxy.example:3128", "api.example")
        };
        let proxy = |kubeconfig, server: &str| {
            let proxy = environment.proxy(kubeconfig, &server.parse().unwrap());
            proxy.unwrap().map(|uri| uri.to_string())
        };
        let own = Some("https://own.example:8080");
        assert_eq!(
            proxy(own, "https://api.example:6443").as_deref(),
            Some("https://own.example:8080/")
        );
        assert_eq!(
            proxy(own, "https://127.0.0.1:6443").as_deref(),
            Some("https://own.example:8080/")
        );
        assert_eq!(proxy(Some(""), "https://api.example:6443"), None);
        assert_eq!(
            proxy(None, "https://other.example:6443").as_deref(),
            Some("http://proxy.example:3128/")
        );
        assert_eq!(
            proxy(None, "http://other.example").as_deref(),
            Some("http://plain.example:80/")
        );
        let none = Environment::default().proxy(None, &Uri::from_static("https://api.example"));
        assert_eq!(none, Ok(None));
    }

    #[test]
    fn addresses_of_proxies() {
        let parsed = |value| parse(value).map(|uri| uri.to_string());
        for (value, expected) in [
            ("proxy.example:3128", "http://proxy.example:3128/"),
            (" proxy.example ", "http://proxy.example/"),
            (
                "user:pass@proxy.example:3128",
                "http://user:pass@proxy.example:3128/",
            ),
            ("HTTP://proxy.example:3128", "http://proxy.example:3128/"),
            ("socks5://proxy.example", "socks5://proxy.example:1080/"),
            ("socks5h://[2001:db8::1]:1081", "socks5://[2001:db8::1]:1081/"),
        ] {
            assert_eq!(parsed(value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn errors_have_no_credentials() {
        let error = |value: &str| {
            let found = environment(value, "").proxy(None, &Uri::from_static("https://api.example"));
            found.map_err(|error| error.to_string())
        };
        for (value, defect) in [
            (
                "http://user:se cret@proxy.example",
                "its address is malformed; write http://HOST:PORT",
            ),
            (
                "http://user:secret@",
                "its address is malformed; write http://HOST:PORT",
            ),
            ("http://:3128", "its address is malformed; write http://HOST:PORT"),
            (
                "ftp://user:secret@proxy.example",
                "the scheme \"ftp\" is not supported; use http, https or socks5",
            ),
            (
                "socks5://user:secret@proxy.example",
                "a user is not supported with socks5; use a proxy without a user, or an HTTP proxy",
            ),
        ] {
            let expected = format!("the proxy of HTTPS_PROXY cannot be used: {defect}");
            assert_eq!(error(value), Err(expected), "{value}");
        }
    }
}
