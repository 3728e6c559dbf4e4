//! The flags of catalogd, with upstream's names and defaults.

use std::{path::PathBuf, time::Duration};

use olm_catalog_files::WalkLimits;
use olm_image::ImageArgs;
use olm_runtime::{CommonArgs, address::BindAddress, args::Command, build_info};

use crate::{server, storage::Limits};

/// Flags of catalogd.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "catalogd",
    version = build_info::line(),
    about = "Serves the content of ClusterCatalogs.",
    args_override_self = true
)]
pub struct Args {
    /// Flags of both controllers.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Image flags of both controllers.
    #[command(flatten)]
    pub images: ImageArgs,
    /// Address of the content server (HTTPS).
    #[arg(
        long,
        default_value = ":8443",
        value_name = "ADDRESS",
        help_heading = "Servers"
    )]
    pub catalogs_server_addr: BindAddress,
    /// Require a token whose user may read the requested path, such as /catalogs/NAME/api/v1/all. For catalogs pulled
    /// with private credentials. See docs/content-api.md.
    #[arg(long)]
    pub catalogs_server_require_token: bool,
    /// Maximum number of connections to the content server. Beyond it, a new connection closes the one that is idle
    /// longest, then the one whose client reads most slowly.
    #[arg(long, default_value_t = server::CONNECTIONS, value_parser = at_least_one, value_name = "COUNT", help_heading = "Servers")]
    pub catalogs_server_max_connections: usize,
    /// Maximum number of connections of one client address (IPv6: one /64 network). Clients behind a proxy or NAT count
    /// as one.
    #[arg(long, default_value_t = server::CONNECTIONS_PER_CLIENT, value_parser = at_least_one, value_name = "COUNT", help_heading = "Servers")]
    pub catalogs_server_max_connections_per_client: usize,
    /// Host or HOST:PORT under which clients reach the content; written to status.urls.base.
    #[arg(
        long,
        default_value = "catalogd-service.olmv1-system.svc",
        value_name = "HOST[:PORT]",
        help_heading = "Servers"
    )]
    pub external_address: String,
    /// Directory of catalog content; a restart serves it again.
    #[arg(
        long,
        default_value = "/var/cache/catalogd",
        value_name = "DIRECTORY",
        help_heading = "Content"
    )]
    pub cache_dir: PathBuf,
    /// Interval between two searches for content of deleted catalogs.
    #[arg(long, default_value = "12h", value_parser = duration, value_name = "DURATION", help_heading = "Content")]
    pub gc_interval: Duration,
    /// Interval between two comparisons of all stored content with its digests; "0" disables them. Damaged content is
    /// discarded and pulled again.
    #[arg(long, default_value = "10m", value_parser = pause, value_name = "DURATION", help_heading = "Content")]
    pub content_check_interval: Duration,
    /// Limits on catalogs.
    #[command(flatten)]
    pub caps: CatalogCaps,
    /// Time for which content is still served after the stop signal, while the process is already unready.
    #[arg(long, default_value = "3s", value_parser = pause, value_name = "DURATION", help_heading = "Servers")]
    pub shutdown_delay: Duration,
    /// Maximum number of concurrent reconciles. Reconciles that wait for a registry do not count.
    #[arg(long, value_name = "COUNT", default_value_t = crate::controller::CONCURRENCY, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,
    /// Ignored, accepted for compatibility: the controller sets the label that upstream's webhook sets.
    #[arg(long, default_value_t = 9443, value_name = "PORT", hide = true)]
    pub webhook_server_port: u16,
    /// Command to run instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const MIB: u64 = 1024 * 1024;

/// Limits on the size of a catalog; larger catalogs are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Content")]
pub struct CatalogCaps {
    /// Maximum size of a catalog's served objects, in MiB.
    #[arg(long = "catalog-max-mib", value_name = "MIB", default_value_t = 8192)]
    pub content_mib: u64,
    /// Maximum number of objects in a catalog.
    #[arg(
        long = "catalog-max-objects",
        value_name = "COUNT",
        default_value_t = 4_000_000
    )]
    pub objects: u32,
    /// Maximum size of an object, in MiB, as written and as served. The values of a YAML document may take three times as
    /// much memory, aliases included.
    #[arg(long = "catalog-max-object-mib", value_name = "MIB", default_value_t = 16)]
    pub object_mib: u64,
    /// Maximum nesting of an object, at most 120.
    #[arg(long = "catalog-max-depth", value_name = "COUNT", default_value_t = 100)]
    pub depth: usize,
    /// Maximum number of files and folders in a catalog.
    #[arg(long = "catalog-max-files", value_name = "COUNT", default_value_t = 200_000)]
    pub files: u64,
}

impl CatalogCaps {
    /// Returns the limits for the storage.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            content: self.content_mib.saturating_mul(MIB),
            objects: self.objects,
            object: usize::try_from(self.object_mib.saturating_mul(MIB)).unwrap_or(usize::MAX),
            depth: self.depth,
            tree: WalkLimits {
                max_entries: self.files,
                max_bytes: WalkLimits::default()
                    .max_bytes
                    .max(self.content_mib.saturating_mul(MIB)),
                ..WalkLimits::default()
            },
        }
    }
}

/// Parses a Go duration such as `12h`, `1h30m` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("invalid duration {text:?}: write it like 12h, 1h30m or 90s");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .find(|char: char| !char.is_ascii_digit() && char != '.')
            .ok_or_else(invalid)?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail
            .find(|char: char| char.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return Err(invalid()),
        };
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| invalid())?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = tail;
    }
    if total.is_zero() {
        Err(invalid())
    } else {
        Ok(total)
    }
}

/// Parses a number of connections.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("invalid number {text:?}: it must be 1 or more")),
    }
}

/// Parses a duration that may be zero.
fn pause(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" => Ok(Duration::ZERO),
        _ => duration(text),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{CommandFactory, Parser};
    use olm_runtime::args::command_line;

    use super::*;

    fn parse(flags: &[&str]) -> Result<Args, String> {
        let line = std::iter::once("catalogd").chain(flags.iter().copied());
        Args::try_parse_from(command_line(line.map(OsString::from))).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_upstreams() {
        Args::command().debug_assert();
        let args = parse(&[]).unwrap();
        assert_eq!(args.gc_interval, Duration::from_hours(12));
        assert_eq!(args.content_check_interval, Duration::from_mins(10));
        assert_eq!(args.external_address, "catalogd-service.olmv1-system.svc");
        assert_eq!(args.cache_dir, PathBuf::from("/var/cache/catalogd"));
        assert_eq!(args.catalogs_server_addr, BindAddress::Any(8443));
        assert_eq!(parse(&["version"]).unwrap().command, Some(Command::Version));
    }

    /// Flags that upstream's manifests and their derivatives pass.
    #[test]
    fn upstreams_flags_are_taken() {
        for flags in [
            "--leader-elect --metrics-bind-address=:7443 --external-address=catalogd-service.olmv1-system.svc \
             --feature-gates=APIV1MetasHandler=false --tls-cert=/var/certs/tls.crt --tls-key=/var/certs/tls.key \
             --pull-cas-dir=/var/ca-certs",
            "--feature-gates=APIV1MetasHandler=true --feature-gates=GraphQLCatalogQueries=true",
            "--tls-profile=custom --tls-custom-version=TLSv1.3 --tls-custom-curves=X25519,prime256v1 \
             --tls-custom-ciphers=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384 --pprof-bind-address=:6060",
            "--tls-profile=Old --global-pull-secret=openshift-config/pull-secret --v=4",
            "--cache-dir=/c --gc-interval=1h30m --webhook-server-port=9443 --catalogs-server-addr=:8443",
            "--health-probe-bind-address=:8081 --system-namespace=a --kubeconfig=/k",
            "--logtostderr=true --vmodule=a=1 --log_dir=/l --log_file=/f --alsologtostderr --stderrthreshold=2",
            "--log_file_max_size=1 --log_backtrace_at=a:1 --add_dir_header --skip_headers --skip_log_headers --one_output",
            "--global-pull-secret= --pull-cas-dir= --metrics-bind-address= --pprof-bind-address=",
        ] {
            let flags: Vec<&str> = flags.split_whitespace().collect();
            let args = parse(&flags).unwrap();
            assert_eq!(
                args.common.features().check(olm_runtime::Binary::Catalogd),
                Ok(()),
                "{flags:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_in_a_sentence() {
        for (flag, sentence) in [
            ("--feature-gates=X=true", "unrecognized feature gate: X"),
            ("--global-pull-secret=a", "incorrect number of components"),
            ("--tls-profile=x", "unknown TLS profile: \"x\""),
            ("--tls-custom-version=TLSv9", "unknown TLS version: \"TLSv9\""),
            ("--tls-custom-ciphers=TLS_X", "unknown cipher suite: \"TLS_X\""),
            ("--tls-custom-curves=x", "unknown curve: \"x\""),
            (
                "--metrics-bind-address=x",
                "bind address \"x\" is not of the form",
            ),
            ("--gc-interval=1d", "invalid duration \"1d\""),
            ("--catalogs-server-max-connections=0", "invalid number \"0\""),
            ("--catalogd-cas-dir=/x", "unexpected argument"),
        ] {
            let error = parse(&[flag]).unwrap_err();
            assert!(error.contains(sentence), "{flag}: {error}");
        }
    }

    #[test]
    fn caps_of_flags_and_of_the_storage_are_the_same() {
        assert_eq!(parse(&[]).unwrap().caps.limits(), Limits::default());
        let caps = parse(&["--catalog-max-object-mib=1", "--catalog-max-files=7"])
            .unwrap()
            .caps;
        assert_eq!(caps.limits().object, 1024 * 1024);
        assert_eq!(caps.limits().tree.max_entries, 7);
    }

    #[test]
    fn durations_as_in_go() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "12", "h", "-1h", "1d", "1h 5m", "0s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(pause("0s"), Ok(Duration::ZERO));
        assert_eq!(pause("5s"), Ok(Duration::from_secs(5)));
    }
}
