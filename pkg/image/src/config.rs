//! What a [`crate::Puller`] is told.

use std::{path::PathBuf, time::Duration};

use crate::{auth::PullSecrets, hosts::HostPolicy, registry::LeastRate, trust, turns::PullLimits};

/// Where to keep content, whom to trust, how much to take.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    /// The cache; unpacked content goes to `unpack/<owner>/<digest>` below it.
    pub cache_dir: PathBuf,
    /// Whether unpacked content is kept, over a crash of the machine, too. When it is not, because who fetches it makes
    /// something of its own of it, it is not synced to the disk, and what an earlier process left is not believed.
    pub durable: bool,
    /// Registries, `host[:port]`, reached by plain HTTP. All others by HTTPS.
    pub plain_http: Vec<String>,
    /// Directory whose `*.crt` files are trusted besides the system's authorities, and whose
    /// `NAME.cert` with `NAME.key` is presented to registries that ask for a certificate.
    pub ca_dir: Option<PathBuf>,
    /// Directories with the same for single registries, in `HOST[:PORT]/`; the first that has one counts.
    pub certs_d: Vec<PathBuf>,
    /// registries.conf; else `CONTAINERS_REGISTRIES_CONF`, else `/etc/containers/registries.conf`.
    pub registries_conf: Option<PathBuf>,
    /// Docker config JSON with credentials by registry; used when it exists at the time of a pull.
    /// Without it and without pull secrets, the files of podman, skopeo and docker are looked at.
    pub auth_file: Option<PathBuf>,
    /// The cluster's pull secrets, which go before the file.
    pub pull_secrets: PullSecrets,
    /// Hosts that credentials may be sent to as a registry's token service, besides those of its own domain.
    pub token_hosts: Vec<String>,
    /// Signature policy; else `~/.config/containers/policy.json`, else `/etc/containers/policy.json`,
    /// else every image is accepted.
    pub policy_file: Option<PathBuf>,
    /// Which hosts may be asked.
    pub hosts: HostPolicy,
    /// How much is taken from a registry and an image.
    pub limits: Limits,
    /// Limits on pulls that run at the same time.
    pub pulls: PullLimits,
}

impl ImageConfig {
    /// A configuration with nothing but a cache directory.
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

/// Caps on what foreign registries and images may use up. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A manifest or index.
    pub manifest: u64,
    /// An image's config.
    pub config: u64,
    /// One layer as transferred.
    pub layer: u64,
    /// Layers of an image.
    pub layers: usize,
    /// Entries of all layers together, skipped ones included.
    pub entries: u64,
    /// Content written by all layers together.
    pub total: u64,
    /// One file.
    pub file: u64,
    /// Directories above an entry.
    pub depth: usize,
    /// How many times larger than its transferred form a layer may unpack, beyond
    /// [`Limits::ratio_floor`] bytes.
    pub ratio: u64,
    /// Layers that unpack to no more than this are not held to the ratio.
    pub ratio_floor: u64,
    /// To open a connection.
    pub connect: Duration,
    /// Silence in the middle of a transfer.
    pub read: Duration,
    /// The least rate of a layer's transfer.
    pub least_rate: LeastRate,
    /// A whole request for a token or manifest.
    pub request: Duration,
    /// How often a request is made again after a failure that passes by itself.
    pub retries: u32,
    /// Pause before the first of these; each further one is twice as long.
    pub retry_wait: Duration,
    /// No pause is longer; a registry that asks for a longer one is not asked again in this pull.
    pub retry_wait_longest: Duration,
    /// A whole pull from one source, without the wait for its turn.
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
            least_rate: LeastRate::default(),
            request: Duration::from_mins(1),
            retries: 4,
            retry_wait: Duration::from_millis(500),
            retry_wait_longest: Duration::from_secs(30),
            pull: Duration::from_mins(15),
        }
    }
}
