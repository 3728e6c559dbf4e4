//! DNS resolver that rejects forbidden addresses.

use std::{error::Error, io, net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{HostClass, HostPolicy, HostRejected};

/// Environment variables of proxies.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Resolver of one HTTP client, for connections to one port.
pub(crate) struct Resolver {
    policy: Arc<HostPolicy>,
    /// Port that the client connects to: an allowance may be for one port only.
    port: Option<u16>,
    /// The administrator's proxies may have any address.
    proxies: Vec<String>,
}

impl Resolver {
    pub(crate) fn new(policy: Arc<HostPolicy>, port: Option<u16>) -> Self {
        let proxies = PROXY_VARIABLES
            .iter()
            .filter_map(|variable| std::env::var(variable).ok())
            .filter_map(|value| proxy_host(&value))
            .collect();
        Self {
            policy,
            port,
            proxies,
        }
    }
}

fn proxy_host(value: &str) -> Option<String> {
    let text = if value.contains("://") {
        value.to_owned()
    } else {
        format!("http://{value}")
    };
    let url = url::Url::parse(&text).ok()?;
    Some(url.host_str()?.to_ascii_lowercase())
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let (policy, port) = (self.policy.clone(), self.port);
        let is_proxy = self.proxies.contains(&name.to_ascii_lowercase());
        Box::pin(async move {
            let found = lookup(&policy, &name, port, is_proxy).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

async fn lookup(
    policy: &HostPolicy,
    name: &str,
    port: Option<u16>,
    is_proxy: bool,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let found: Vec<SocketAddr> = match policy.answers.get(name) {
        Some(answers) => answers.clone(),
        None => tokio::net::lookup_host((name, 0)).await?.collect(),
    };
    if is_proxy || policy.name_allowed(&name.to_ascii_lowercase(), port) {
        return Ok(found);
    }
    let refused = |class| HostRejected {
        host: name.to_owned(),
        class,
    };
    // All addresses are checked, since it is unknown which one will be connected to.
    if let Some(class) = found
        .iter()
        .find_map(|address| policy.address(address.ip(), port))
    {
        return Err(refused(class).into());
    }
    // `registry.default` is a Service only if the search list completes it.
    for domain in &policy.search {
        let full = format!("{name}.{domain}.");
        if policy.name(full.trim_end_matches('.'), port).is_some()
            && tokio::net::lookup_host((full, 0)).await.is_ok()
        {
            return Err(refused(HostClass::Cluster).into());
        }
    }
    if found.is_empty() {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_proxies() {
        assert_eq!(
            proxy_host("http://user:pw@Proxy.local:3128/"),
            Some("proxy.local".to_owned())
        );
        assert_eq!(proxy_host("proxy:3128"), Some("proxy".to_owned()));
        assert_eq!(proxy_host(""), None);
    }

    #[tokio::test]
    async fn answers_are_judged() {
        let policy = HostPolicy::new(Vec::new())
            .with_answer("public.example", ([192, 0, 2, 1], 0).into())
            .with_answer("rebound.example", ([192, 0, 2, 1], 0).into())
            .with_answer("rebound.example", ([169, 254, 169, 254], 0).into());
        let port = Some(5000);
        let public = lookup(&policy, "public.example", port, false).await;
        assert_eq!(public.unwrap().len(), 1);
        let error = lookup(&policy, "rebound.example", port, false).await.unwrap_err();
        assert_eq!(error.to_string(), "rebound.example is a link-local host");
        assert!(lookup(&policy, "rebound.example", port, true).await.is_ok());
        for rule in ["rebound.example:5000", "169.254.169.254:5000"] {
            let policy = policy.clone().allowing(rule);
            assert!(
                lookup(&policy, "rebound.example", port, false).await.is_ok(),
                "{rule}"
            );
            // Another port of an allowed host is another service.
            for other in [Some(6443), None] {
                let found = lookup(&policy, "rebound.example", other, false).await;
                assert!(found.is_err(), "{rule} {other:?}");
            }
        }
    }
}
