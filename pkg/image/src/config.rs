//! Configuration of a [`crate::Puller`].

use std::{path::PathBuf, time::Duration};

use crate::{auth::PullSecrets, hosts::HostPolicy, registry::MinRate, slots::PullLimits, trust};

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

/// Limits on untrusted registries and images. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Size of a manifest or index.
    pub manifest: u64,
    /// Size of an image config.
    pub config: u64,
    /// Size of a compressed layer.
    pub layer: u64,
    /// Number of layers of an image.
    pub layers: usize,
    /// Number of entries of all layers together, skipped ones included.
    pub entries: u64,
    /// Unpacked size of all layers together.
    pub total: u64,
    /// Size of one file.
    pub file: u64,
    /// Number of directories above an entry.
    pub depth: usize,
    /// Ratio of a layer's unpacked to its compressed size, above [`Limits::ratio_floor`] bytes.
    pub ratio: u64,
    /// Unpacked size up to which the ratio is ignored.
    pub ratio_floor: u64,
    /// Timeout of opening a connection.
    pub connect: Duration,
    /// Timeout of silence during a transfer.
    pub read: Duration,
    /// Minimum transfer rate of a layer.
    pub min_rate: MinRate,
    /// Timeout of a request for a token or manifest.
    pub request: Duration,
    /// Maximum number of retries after a transient failure.
    pub retries: u32,
    /// Delay before the first retry; each further delay is twice as long.
    pub retry_wait: Duration,
    /// Maximum delay; a registry that asks for a longer one is not retried within this pull.
    pub retry_wait_max: Duration,
    /// Timeout of a whole pull from one source, without the wait for a slot.
    pub pull: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            manifest: 4 * MIB,
            config: 4 * MIB,
            layer: 2048 * MIB,
            layers: 256,
            entries: 500_000,
            total: 4096 * MIB,
            file: 1024 * MIB,
            depth: 64,
            ratio: 200,
            ratio_floor: 64 * MIB,
            connect: Duration::from_secs(15),
            read: Duration::from_secs(30),
            min_rate: MinRate::default(),
            request: Duration::from_mins(1),
            retries: 4,
            retry_wait: Duration::from_millis(500),
            retry_wait_max: Duration::from_secs(30),
            pull: Duration::from_mins(15),
        }
    }
}
