//! Image flags, the same for both controllers.

use std::path::PathBuf;

use olm_runtime::CommonArgs;

use crate::{
    auth::PullSecrets,
    config::ImageConfig,
    hosts::{AllowedHost, HostPolicy},
    limits::{Limits, MinRate, PullLimits},
};

const MIB: u64 = 1024 * 1024;

/// Image flags of both controllers; flatten them into the binary's own arguments.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Images")]
pub struct ImageArgs {
    /// Path of registries.conf; default: `CONTAINERS_REGISTRIES_CONF`, ~/.config/containers, then /etc/containers.
    #[arg(long, value_name = "FILE")]
    pub registries_conf: Option<PathBuf>,
    /// Path of the signature policy (policy.json); default: ~/.config/containers, then /etc/containers. Without a
    /// policy all images are accepted.
    #[arg(long, value_name = "FILE")]
    pub image_policy: Option<PathBuf>,
    /// Host that content may come from although it is loopback, link-local or cluster-internal: NAME, *.DOMAIN,
    /// ADDRESS[/BITS], loopback, link-local, cluster or * for all; repeatable.
    #[arg(long = "allow-registry-host", value_name = "HOST")]
    pub allow_registry_host: Vec<AllowedHost>,
    /// Host of a token service that may receive registry credentials, besides hosts of the registry's own domain;
    /// repeatable.
    #[arg(long = "registry-token-host", value_name = "HOST")]
    pub registry_token_host: Vec<String>,
    /// Maximum unpacked size of an image, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub image_max_mib: u64,
    /// Maximum size of a compressed layer, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub image_max_layer_mib: u64,
    /// Maximum size of a file, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub image_max_file_mib: u64,
    /// Maximum size of a manifest, and of an image config, in KiB.
    #[arg(long, value_name = "KIB", default_value_t = 4096)]
    pub image_max_manifest_kib: u64,
    /// Maximum number of layers of an image.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    pub image_max_layers: usize,
    /// Maximum number of entries of all layers together.
    #[arg(long, value_name = "COUNT", default_value_t = 500_000)]
    pub image_max_files: u64,
    /// Maximum number of files and directories that an image unpacks to.
    #[arg(long, value_name = "COUNT", default_value_t = 50_000)]
    pub image_max_unpacked_files: u64,
    /// Maximum number of directories above a file.
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    pub image_max_depth: usize,
    /// Maximum ratio of a layer's unpacked to its compressed size, for layers that unpack to more than 64 MiB.
    #[arg(long, value_name = "FACTOR", default_value_t = 200)]
    pub image_max_ratio: u64,
    /// Minimum size of a layer's data that a registry must send in every 30 seconds, in KiB. A slower pull is aborted
    /// and retried later. 0 disables the check.
    #[arg(long, value_name = "KIB", default_value_t = 128)]
    pub image_min_rate_kib: u64,
    /// Maximum number of concurrent pulls from one registry; further pulls wait.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    pub image_max_pulls_per_registry: u16,
    /// Maximum number of concurrent pulls from all registries.
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    pub image_max_pulls: u16,
}

impl ImageArgs {
    /// Returns the puller's configuration from these flags, the common ones and the cluster's pull secrets.
    #[must_use]
    pub fn config(
        &self,
        cache_dir: impl Into<PathBuf>,
        common: &CommonArgs,
        pull_secrets: PullSecrets,
    ) -> ImageConfig {
        let manifest = self.image_max_manifest_kib.saturating_mul(1024);
        ImageConfig {
            plain_http: common.plain_http_registry.clone(),
            ca_dir: common.pull_cas_dir.clone(),
            registries_conf: self.registries_conf.clone(),
            pull_secrets,
            token_hosts: self.registry_token_host.clone(),
            policy_file: self.image_policy.clone(),
            hosts: HostPolicy::new(self.allow_registry_host.clone()),
            limits: Limits {
                manifest,
                config: manifest,
                layer: self.image_max_layer_mib.saturating_mul(MIB),
                layers: self.image_max_layers,
                entries: self.image_max_files,
                unpacked: self.image_max_unpacked_files,
                total: self.image_max_mib.saturating_mul(MIB),
                file: self.image_max_file_mib.saturating_mul(MIB),
                depth: self.image_max_depth,
                ratio: self.image_max_ratio,
                min_rate: MinRate {
                    bytes: self.image_min_rate_kib.saturating_mul(1024),
                    ..MinRate::default()
                },
                ..Limits::default()
            },
            pulls: PullLimits {
                per_registry: self.image_max_pulls_per_registry.into(),
                total: self.image_max_pulls.into(),
                ..PullLimits::default()
            },
            ..ImageConfig::new(cache_dir)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Binary {
        #[command(flatten)]
        common: CommonArgs,
        #[command(flatten)]
        images: ImageArgs,
    }

    fn config(args: &[&str]) -> Result<ImageConfig, clap::Error> {
        let binary = Binary::try_parse_from([&["binary"], args].concat())?;
        Ok(binary.images.config("/c", &binary.common, PullSecrets::default()))
    }

    #[test]
    fn defaults_of_flags_and_of_limits_are_the_same() {
        let ours = config(&[]).unwrap();
        assert_eq!(format!("{:?}", ours.limits), format!("{:?}", Limits::default()));
        assert_eq!(ours.pulls, PullLimits::default());
    }

    #[test]
    fn flags_reach_the_configuration() {
        let config = config(&[
            "--image-max-mib=1",
            "--image-max-manifest-kib=2",
            "--image-policy=/p.json",
            "--allow-registry-host=cluster",
            "--registry-token-host=sso.example",
            "--plain-http-registry=127.0.0.1:5000",
        ])
        .unwrap();
        assert_eq!((config.limits.total, config.limits.manifest), (MIB, 2048));
        assert_eq!(config.policy_file, Some("/p.json".into()));
        assert_eq!(config.token_hosts, ["sso.example"]);
        assert_eq!(config.plain_http, ["127.0.0.1:5000"]);
        assert!(self::config(&["--allow-registry-host=a/b"]).is_err());
    }
}
