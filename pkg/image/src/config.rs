//! Configuration of a [`crate::Puller`].

use std::path::PathBuf;

use crate::{
    auth::PullSecrets,
    hosts::HostPolicy,
    limits::{Limits, PullLimits},
    trust,
};

/// Locations, trust and limits of a puller.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    /// Cache directory; unpacked content is in `unpack/<owner>/<digest>` below it.
    pub cache_dir: PathBuf,
    /// Keeps unpacked content across a crash of the machine. If false, because the caller copies the content, it is not
    /// synced, and content of an earlier process is discarded.
    pub durable: bool,
    /// Registries, `host[:port]`, reached by plain HTTP. All others use HTTPS.
    pub plain_http: Vec<String>,
    /// Directory whose `*.crt` files are trusted besides the system's authorities. `NAME.cert` with `NAME.key` is the
    /// client certificate for registries that ask for one.
    pub ca_dir: Option<PathBuf>,
    /// Directories with the same files per registry, in `HOST[:PORT]/`; the first that has the registry wins.
    pub certs_d: Vec<PathBuf>,
    /// Path of registries.conf; default: `CONTAINERS_REGISTRIES_CONF`, then `/etc/containers/registries.conf`.
    pub registries_conf: Option<PathBuf>,
    /// Docker config JSON with credentials by registry; read at each pull if it exists. Without it and without pull
    /// secrets, the files of podman, skopeo and docker apply.
    pub auth_file: Option<PathBuf>,
    /// Pull secrets of the cluster, which precede the file.
    pub pull_secrets: PullSecrets,
    /// Hosts of token services that may receive credentials, besides hosts of the registry's own domain.
    pub token_hosts: Vec<String>,
    /// Signature policy; default: `~/.config/containers/policy.json`, then `/etc/containers/policy.json`. Without a
    /// policy every image is accepted.
    pub policy_file: Option<PathBuf>,
    /// Hosts that may be contacted.
    pub hosts: HostPolicy,
    /// Limits on registries and images.
    pub limits: Limits,
    /// Limits on concurrent pulls.
    pub pulls: PullLimits,
}

impl ImageConfig {
    /// Creates a configuration with defaults.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            cache_dir: cache_dir.into(),
            durable: true,
            plain_http: Vec::new(),
            ca_dir: None,
            certs_d: trust::default_certs_d(),
            registries_conf: None,
            auth_file: None,
            pull_secrets: PullSecrets::default(),
            token_hosts: Vec::new(),
            policy_file: None,
            hosts: HostPolicy::default(),
            limits: Limits::default(),
            pulls: PullLimits::default(),
        }
    }
}
