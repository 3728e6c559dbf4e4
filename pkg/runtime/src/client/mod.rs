//! The Kubernetes client, with time limits.

mod answer_limit;
mod config;
mod connection;
mod proxy;

use std::{path::PathBuf, time::Duration};

use kube::{Client, Config};

pub use self::{
    answer_limit::{AnswerLimit, LimitedService, NoAnswer},
    config::{ConfigError, load},
    connection::connect,
    proxy::ProxyError,
};
use crate::{
    args::CommonArgs,
    metrics::{Registry, RequestMetrics},
};

/// Timeout for a connection to the API server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Read timeout of a connection to the API server; longer than the longest watch (295 s).
const READ_TIMEOUT: Duration = Duration::from_secs(330);
/// Timeout for a write to the API server.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Error while building a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file of `--kubeconfig` is unusable.
    #[error("kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: ConfigError,
    },
    /// Neither a kubeconfig nor a service account exists.
    #[error("no way to the cluster: give --kubeconfig or KUBECONFIG, or run in a pod")]
    Infer(#[source] ConfigError),
    /// The proxy for the API server is unusable.
    #[error(transparent)]
    Proxy(ProxyError),
    /// The configuration is unusable.
    #[error("Kubernetes client cannot be built")]
    Build(#[source] kube::Error),
}

/// Builds a client like [`client`] whose requests are counted in `registry`.
///
/// # Errors
/// As [`client`].
pub async fn measured_client(args: &CommonArgs, registry: &Registry) -> Result<Client, ClientError> {
    let config = config(args)?;
    let host = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let builder = connection::builder(config).map_err(ClientError::Build)?;
    Ok(builder
        .with_layer(&AnswerLimit)
        .with_layer(&RequestMetrics::register(registry, host))
        .build())
}

/// Builds a client for the cluster of `--kubeconfig`, `KUBECONFIG`, `~/.kube/config` or the pod.
///
/// # Errors
/// [`ClientError`]. The function sends nothing to the API server.
pub async fn client(args: &CommonArgs) -> Result<Client, ClientError> {
    let builder = connection::builder(config(args)?).map_err(ClientError::Build)?;
    Ok(builder.with_layer(&AnswerLimit).build())
}

/// Returns the name of a [`served_kinds`] call, for errors.
#[must_use]
pub fn discovery_call(group: &str, version: &str) -> String {
    if group.is_empty() {
        "asking for the core API".to_owned()
    } else {
        format!("asking for the API {group}/{version}")
    }
}

/// Returns the kinds that the cluster serves in a version of a group (`""` is the core group); none if the version
/// is not served.
///
/// Group and version may be foreign: the function sends no request for an invalid name.
///
/// # Errors
/// The API server refuses the request or does not answer.
pub async fn served_kinds(client: &Client, group: &str, version: &str) -> kube::Result<Vec<String>> {
    // Group and version become part of a path.
    let is_valid = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
    };
    if !is_valid(group) || !is_valid(version) || version.contains('.') {
        return Ok(Vec::new());
    }
    let answer = if group.is_empty() {
        client.list_core_api_resources(version).await
    } else {
        client
            .list_api_group_resources(&format!("{group}/{version}"))
            .await
    };
    match answer {
        Ok(list) => Ok(list.resources.into_iter().map(|resource| resource.kind).collect()),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns true if the API server reports that the object or its kind does not exist.
///
/// The status code decides: a path that is not served is answered in plain text, without the reason that kube's own
/// `is_not_found` checks.
#[must_use]
pub fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn config(args: &CommonArgs) -> Result<Config, ClientError> {
    let mut config =
        load(args.kubeconfig.as_deref(), None).map_err(|error| match (error, &args.kubeconfig) {
            (ConfigError::Proxy(error), _) => ClientError::Proxy(error),
            (source, Some(path)) => ClientError::Kubeconfig {
                path: path.clone(),
                source,
            },
            (source, None) => ClientError::Infer(source),
        })?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    config.write_timeout = Some(WRITE_TIMEOUT);
    Ok(config)
}
