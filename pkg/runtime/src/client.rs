//! The Kubernetes client, with time limits.

use std::{path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{
    args::CommonArgs,
    metrics::{Registry, Requests},
};

/// How long a connection to the API server may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the API server may stay silent on one connection; above the longest watch (295 s).
const READ_TIMEOUT: Duration = Duration::from_secs(330);
/// How long one write to the API server may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file of `--kubeconfig` cannot be used.
    #[error("kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: KubeconfigError,
    },
    /// No kubeconfig and no service account.
    #[error("no way to the cluster: give --kubeconfig or KUBECONFIG, or run in a pod")]
    Infer(#[source] InferConfigError),
    /// The configuration is complete but unusable.
    #[error("Kubernetes client cannot be built")]
    Build(#[source] kube::Error),
}

/// As [`client`], with its requests counted in `registry`.
///
/// # Errors
/// As [`client`].
pub async fn measured_client(args: &CommonArgs, registry: &Registry) -> Result<Client, ClientError> {
    let config = config(args).await?;
    let host = config
        .cluster_url
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    let builder = ClientBuilder::try_from(config).map_err(ClientError::Build)?;
    Ok(builder.with_layer(&Requests::register(registry, host)).build())
}

/// Connects to the cluster named by `--kubeconfig`, `KUBECONFIG`, `~/.kube/config` or the pod.
///
/// # Errors
/// [`ClientError`]; nothing is sent to the API server yet.
pub async fn client(args: &CommonArgs) -> Result<Client, ClientError> {
    Client::try_from(config(args).await?).map_err(ClientError::Build)
}

/// What [`served_kinds`] does, as errors name it.
#[must_use]
pub fn asking_for(group: &str, version: &str) -> String {
    if group.is_empty() {
        "asking for the core API".to_owned()
    } else {
        format!("asking for the API {group}/{version}")
    }
}

/// The kinds that the cluster serves in one version of a group (`""` is the core group); none where it serves no such version.
///
/// Group and version may be foreign: what cannot be the name of either is not asked for.
///
/// # Errors
/// The API server cannot be asked, or refuses.
pub async fn served_kinds(client: &Client, group: &str, version: &str) -> kube::Result<Vec<String>> {
    // These become part of a path.
    let plain = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
    };
    if !plain(group) || !plain(version) || version.contains('.') {
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

/// Whether the API server says that there is no such thing, be it the object or its whole kind. By the code: a path that nothing serves
/// is answered in plain text, without the reason that kube's own `is_not_found` asks for.
#[must_use]
pub fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

async fn config(args: &CommonArgs) -> Result<Config, ClientError> {
    let mut config = match &args.kubeconfig {
        Some(path) => {
            let wrap = |source| ClientError::Kubeconfig {
                path: path.clone(),
                source,
            };
            let file = Kubeconfig::read_from(path).map_err(wrap)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(wrap)?
        }
        None => Config::infer().await.map_err(ClientError::Infer)?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    config.write_timeout = Some(WRITE_TIMEOUT);
    Ok(config)
}
