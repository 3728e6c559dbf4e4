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

/// Resolver of one HTTP client.
pub(crate) struct Resolver {
    policy: Arc<HostPolicy>,
    /// The administrator's proxies may have any address.
    proxies: Vec<String>,
}

impl Resolver {
    pub(crate) fn new(policy: Arc<HostPolicy>) -> Self {
        let proxies = PROXY_VARIABLES
            .iter()
            .filter_map(|variable| std::env::var(variable).ok())
            .filter_map(|value| proxy_host(&value))
            .collect();
        Self { policy, proxies }
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
        let policy = self.policy.clone();
        let is_proxy = self.proxies.contains(&name.to_ascii_lowercase());
        Box::pin(async move {
            let found = lookup(&policy, &name, is_proxy).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

async fn lookup(
    policy: &HostPolicy,
    name: &str,
    is_proxy: bool,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let found: Vec<SocketAddr> = match policy.answers.get(name) {
        Some(answers) => answers.clone(),
        None => tokio::net::lookup_host((name, 0)).await?.collect(),
    };
    if is_proxy || policy.name_allowed(&name.to_ascii_lowercase(), None) {
        return Ok(found);
    }
    let refused = |class| HostRejected {
        host: name.to_owned(),
        class,
    };
    // All addresses are checked, since it is unknown which one will be connected to.
    if let Some(class) = found
        .iter()
        .find_map(|address| policy.address(address.ip(), None))
    {
        return Err(refused(class).into());
    }
    // `registry.default` is a Service only if the search list completes it.
    for domain in &policy.search {
        let full = format!("{name}.{domain}.");
        if policy.name(full.trim_end_matches('.'), None).is_some()
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
        assert_eq!(lookup(&policy, "public.example", false).await.unwrap().len(), 1);
        let error = lookup(&policy, "rebound.example", false).await.unwrap_err();
        assert_eq!(error.to_string(), "rebound.example is a link-local host");
        assert!(lookup(&policy, "rebound.example", true).await.is_ok());
        assert!(
            lookup(&policy.allowing("rebound.example:5000"), "rebound.example", false)
                .await
                .is_ok()
        );
    }
}
