//! Configuration of the Kubernetes client, from a kubeconfig or the pod.

use std::path::Path;

use kube::{
    Config,
    config::{Cluster, Context, ExecAuthCluster, InClusterError, Kubeconfig, KubeconfigError},
};

use super::proxy::{Environment, ProxyError};
use crate::tls::{self, TlsError};

/// Error while reading the configuration of the client.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The kubeconfig is unusable.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The certificate authorities in the kubeconfig are unusable.
    #[error("the cluster's certificate authorities cannot be used")]
    Authorities(#[source] TlsError),
    /// There is neither a usable kubeconfig nor a service account.
    #[error("there is no service account of a pod ({in_cluster}), and no usable kubeconfig")]
    Nowhere {
        /// Reason why the pod's service account cannot be used.
        in_cluster: Box<InClusterError>,
        /// Reason why no kubeconfig can be used.
        #[source]
        kubeconfig: Box<ConfigError>,
    },
    /// The proxy for the API server is unusable.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

/// Reads the configuration for a context of the kubeconfig `file`; without a file of `KUBECONFIG` or `~/.kube/config`. If there is no
/// kubeconfig and none is asked for, returns that of the pod. Sends nothing.
///
/// A connection by a kubeconfig uses the proxy that kubectl would use; one from a pod uses none.
///
/// # Errors
/// [`ConfigError`].
pub fn load(file: Option<&Path>, context: Option<&str>) -> Result<Config, ConfigError> {
    let asked = file.is_some() || context.is_some();
    let kubeconfig = match file {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let selected = kubeconfig
        .map_err(ConfigError::from)
        .and_then(|kubeconfig| select(kubeconfig, context));
    let (mut config, proxy_url) = match selected {
        Ok(selected) => selected,
        Err(error) if asked => return Err(error),
        Err(error) => return in_cluster(error),
    };
    if !asked {
        config.apply_debug_overrides();
    }
    config.proxy_url = Environment::read().proxy(proxy_url.as_deref(), &config.cluster_url)?;
    Ok(config)
}

fn in_cluster(kubeconfig: ConfigError) -> Result<Config, ConfigError> {
    let mut config = Config::incluster().map_err(|in_cluster| ConfigError::Nowhere {
        in_cluster: Box::new(in_cluster),
        kubeconfig: Box::new(kubeconfig),
    })?;
    config.apply_debug_overrides();
    Ok(config)
}

/// Returns the configuration for a context, without a proxy, and the cluster's `proxy-url`.
///
/// kube's function for this purpose also evaluates the proxies of the environment, and fails if it cannot read them.
fn select(kubeconfig: Kubeconfig, context: Option<&str>) -> Result<(Config, Option<String>), ConfigError> {
    let context = context_of(&kubeconfig, context)?;
    let cluster = cluster_of(&kubeconfig, &context)?;
    // Like kubectl, accepts a user that is not there.
    let mut user = kubeconfig
        .auth_infos
        .into_iter()
        .find(|named| Some(&named.name) == context.user.as_ref())
        .and_then(|named| named.auth_info)
        .unwrap_or_default();
    // Reads the file of authorities, if that is how they are given.
    let access = ExecAuthCluster::try_from(&cluster)?;
    let server = cluster.server.ok_or(KubeconfigError::MissingClusterUrl)?;
    let mut config = Config::new(server.parse().map_err(KubeconfigError::ParseClusterUrl)?);
    if let Some(pem) = &access.certificate_authority_data {
        let authorities = tls::authorities(pem).map_err(ConfigError::Authorities)?;
        config.root_cert = Some(authorities.iter().map(|authority| authority.to_vec()).collect());
    }
    if let Some(exec) = user.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        exec.cluster = Some(access);
    }
    if let Some(namespace) = context.namespace {
        config.default_namespace = namespace;
    }
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
    config.disable_compression = cluster.disable_compression.unwrap_or_default();
    config.tls_server_name = cluster.tls_server_name;
    config.auth_info = user;
    Ok((config, cluster.proxy_url))
}

fn context_of(kubeconfig: &Kubeconfig, name: Option<&str>) -> Result<Context, KubeconfigError> {
    let name = name
        .or(kubeconfig.current_context.as_deref())
        .ok_or(KubeconfigError::CurrentContextNotSet)?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == name);
    named
        .and_then(|named| named.context.clone())
        .ok_or_else(|| KubeconfigError::LoadContext(name.to_owned()))
}

fn cluster_of(kubeconfig: &Kubeconfig, context: &Context) -> Result<Cluster, KubeconfigError> {
    let name = &context.cluster;
    let named = kubeconfig.clusters.iter().find(|named| &named.name == name);
    named
        .and_then(|named| named.cluster.clone())
        .ok_or_else(|| KubeconfigError::LoadClusterOfContext(name.clone()))
}

#[cfg(test)]
mod tests {
    use kube::config::KubeConfigOptions;

    use super::*;

    fn kubeconfig() -> Kubeconfig {
        let key = rcgen::generate_simple_self_signed(["api.example".to_owned()]).unwrap();
        let value = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "one",
            "contexts": [
                {"name": "one", "context": {"cluster": "one", "user": "one", "namespace": "n"}},
                {"name": "two", "context": {"cluster": "two", "user": "absent"}},
                {"name": "three", "context": {"cluster": "absent"}},
            ],
            "clusters": [
                {"name": "one", "cluster": {
                    "server": "https://api.example:6443", "tls-server-name": "other.example", "disable-compression": true,
                    "proxy-url": "http://proxy.example:3128",
                    "certificate-authority-data": base64(key.cert.pem().as_bytes())}},
                {"name": "two", "cluster": {"server": "http://127.0.0.1:1", "insecure-skip-tls-verify": true}},
            ],
            "users": [{"name": "one", "user": {"as": "somebody", "exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "provideClusterInfo": true}}}],
        });
        serde_json::from_value(value).unwrap()
    }

    /// Encodes as base64, as JSON has the bytes of Secrets.
    fn base64(bytes: &[u8]) -> serde_json::Value {
        serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap()
    }

    /// A new field of kube's configuration must not be forgotten here.
    #[tokio::test]
    async fn selects_like_kube() {
        let kubeconfig = kubeconfig();
        for (context, proxy) in [(None, Some("http://proxy.example:3128")), (Some("two"), None)] {
            let options = KubeConfigOptions {
                context: context.map(str::to_owned),
                ..KubeConfigOptions::default()
            };
            let theirs = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
            let mut theirs = theirs.unwrap();
            theirs.proxy_url = None;
            let (ours, proxy_url) = select(kubeconfig.clone(), context).unwrap();
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            assert_eq!(proxy_url.as_deref(), proxy);
        }
    }

    #[test]
    fn says_what_is_missing() {
        let error = |context| select(kubeconfig(), context).unwrap_err().to_string();
        assert_eq!(error(Some("four")), "failed to load current context: four");
        assert_eq!(
            error(Some("three")),
            "failed to load the cluster of context: absent"
        );
        let empty = select(Kubeconfig::default(), None).unwrap_err();
        assert_eq!(empty.to_string(), "failed to determine current context");
    }
}
