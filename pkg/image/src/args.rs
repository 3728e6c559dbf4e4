//! The flags about images, the same for both controllers.

use std::path::PathBuf;

use olm_runtime::CommonArgs;

use crate::{
    auth::PullSecrets,
    config::{ImageConfig, Limits},
    hosts::{AllowedHost, HostPolicy},
    registry::LeastRate,
    turns::PullLimits,
};

const MIB: u64 = 1024 * 1024;

/// Flags of both controllers about images; flatten it into the binary's own arguments.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Images")]
pub struct ImageArgs {
    /// registries.conf; else that of `CONTAINERS_REGISTRIES_CONF`, ~/.config/containers or /etc/containers.
    #[arg(long, value_name = "FILE")]
    pub registries_conf: Option<PathBuf>,
    /// Signature policy, a policy.json; else that of ~/.config/containers or /etc/containers; else all images are accepted.
    #[arg(long, value_name = "FILE")]
    pub image_policy: Option<PathBuf>,
    /// Host that content may come from although it is a loopback, link-local or cluster-internal one: NAME, *.DOMAIN,
    /// ADDRESS[/BITS], loopback, link-local, cluster or * for all; may be repeated.
    #[arg(long = "allow-registry-host", value_name = "HOST")]
    pub allow_registry_host: Vec<AllowedHost>,
    /// Host of a token service that registries' credentials may be sent to, besides those of a registry's own domain;
    /// may be repeated.
    #[arg(long = "registry-token-host", value_name = "HOST")]
    pub registry_token_host: Vec<String>,
    /// Most MiB that an image may unpack to.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub image_max_mib: u64,
    /// Most MiB of one layer as transferred.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub image_max_layer_mib: u64,
    /// Most MiB of one file.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub image_max_file_mib: u64,
    /// Most KiB of a manifest, and of an image's config.
    #[arg(long, value_name = "KIB", default_value_t = 4096)]
    pub image_max_manifest_kib: u64,
    /// Most layers of an image.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    pub image_max_layers: usize,
    /// Most entries of all layers together.
    #[arg(long, value_name = "COUNT", default_value_t = 500_000)]
    pub image_max_files: u64,
    /// Most directories above a file.
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    pub image_max_depth: usize,
    /// How many times larger than its transferred form a layer may be when it unpacks to more than 64 MiB.
    #[arg(long, value_name = "FACTOR", default_value_t = 200)]
    pub image_max_ratio: u64,
    /// Least KiB of a layer that a registry must send in every 30 seconds; a slower pull is given up and tried again
    /// later. 0 for none.
    #[arg(long, value_name = "KIB", default_value_t = 128)]
    pub image_min_rate_kib: u64,
    /// Most pulls from one registry at the same time; others wait for their turn.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    pub image_max_pulls_per_registry: u16,
    /// Most pulls from all registries at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = 32)]
    pub image_max_pulls: u16,
}

impl ImageArgs {
    /// What a puller is told by these flags, the common ones and the cluster's pull secrets.
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
                total: self.image_max_mib.saturating_mul(MIB),
                file: self.image_max_file_mib.saturating_mul(MIB),
                depth: self.image_max_depth,
                ratio: self.image_max_ratio,
                least_rate: LeastRate {
                    bytes: self.image_min_rate_kib.saturating_mul(1024),
                    ..LeastRate::default()
                },
                ..Limits::default()
            },
            pulls: PullLimits {
                per_registry: self.image_max_pulls_per_registry.into(),
                in_all: self.image_max_pulls.into(),
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
