//! The flags of catalogd, with upstream's names and defaults.

use std::{path::PathBuf, time::Duration};

use olm_catalog_files::WalkLimits;
use olm_image::ImageArgs;
use olm_runtime::{CommonArgs, address::BindAddress, args::Command, build_info};

use crate::{server, storage::Limits};

/// What catalogd is told.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "catalogd",
    version = build_info::line(),
    about = "Serves the content of ClusterCatalogs.",
    args_override_self = true
)]
pub struct Args {
    /// What both controllers are told.
    #[command(flatten)]
    pub common: CommonArgs,
    /// What both controllers are told about images.
    #[command(flatten)]
    pub images: ImageArgs,
    /// Address of the content, HTTPS.
    #[arg(
        long,
        default_value = ":8443",
        value_name = "ADDRESS",
        help_heading = "Servers"
    )]
    pub catalogs_server_addr: BindAddress,
    /// Answer only clients that bring a token whose user may read the path, such as /catalogs/NAME/api/v1/all. For
    /// catalogs pulled with private credentials. See docs/content-api.md.
    #[arg(long)]
    pub catalogs_server_require_token: bool,
    /// Most connections to the content server. Beyond it, the connection that is idle longest is closed for a new one,
    /// then the one whose client reads most slowly.
    #[arg(long, default_value_t = server::CONNECTIONS, value_parser = at_least_one, value_name = "COUNT", help_heading = "Servers")]
    pub catalogs_server_max_connections: usize,
    /// Most connections at once of one client address (IPv6: of 64 bits of it). All clients behind a proxy or a NAT are one.
    #[arg(long, default_value_t = server::CONNECTIONS_PER_CLIENT, value_parser = at_least_one, value_name = "COUNT", help_heading = "Servers")]
    pub catalogs_server_max_connections_per_client: usize,
    /// Host, or HOST:PORT, under which clients reach the content; put into status.urls.base.
    #[arg(
        long,
        default_value = "catalogd-service.olmv1-system.svc",
        value_name = "HOST[:PORT]",
        help_heading = "Servers"
    )]
    pub external_address: String,
    /// Where content is kept; it is served again after a restart.
    #[arg(
        long,
        default_value = "/var/cache/catalogd",
        value_name = "DIRECTORY",
        help_heading = "Content"
    )]
    pub cache_dir: PathBuf,
    /// How often content of catalogs that are gone is looked for.
    #[arg(long, default_value = "12h", value_parser = duration, value_name = "DURATION", help_heading = "Content")]
    pub gc_interval: Duration,
    /// Interval between two comparisons of all stored content with its digests; "0" for never. Damaged content is no longer
    /// served, and is pulled again.
    #[arg(long, default_value = "10m", value_parser = pause, value_name = "DURATION", help_heading = "Content")]
    pub content_check_interval: Duration,
    /// Caps on catalogs.
    #[command(flatten)]
    pub caps: CatalogCaps,
    /// How long content is still served after the signal to stop, while readiness says that the process goes.
    #[arg(long, default_value = "3s", value_parser = pause, value_name = "DURATION", help_heading = "Servers")]
    pub shutdown_delay: Duration,
    /// Most ClusterCatalogs that are worked on at the same time. One that waits for a registry does not count.
    #[arg(long, value_name = "COUNT", default_value_t = crate::controller::CONCURRENCY, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,
    /// Taken for compatibility: the label the webhook set is set by the controller.
    #[arg(long, default_value_t = 9443, value_name = "PORT", hide = true)]
    pub webhook_server_port: u16,
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const MIB: u64 = 1024 * 1024;

/// How much of a catalog is taken; what is more is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Content")]
pub struct CatalogCaps {
    /// Most MiB of all objects of a catalog as they are served.
    #[arg(long = "catalog-max-mib", value_name = "MIB", default_value_t = 8192)]
    pub content_mib: u64,
    /// Most objects of a catalog.
    #[arg(
        long = "catalog-max-objects",
        value_name = "COUNT",
        default_value_t = 4_000_000
    )]
    pub objects: u32,
    /// Most MiB of one object. The values of a YAML document may take twice as much memory, aliases included.
    #[arg(long = "catalog-max-object-mib", value_name = "MIB", default_value_t = 32)]
    pub object_mib: u64,
    /// Deepest nesting of an object, at most 120.
    #[arg(long = "catalog-max-depth", value_name = "COUNT", default_value_t = 100)]
    pub depth: usize,
    /// Most files and folders of a catalog.
    #[arg(long = "catalog-max-files", value_name = "COUNT", default_value_t = 200_000)]
    pub files: u64,
}

impl CatalogCaps {
    /// What the storage is told.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            content: self.content_mib.saturating_mul(MIB),
            objects: self.objects,
            object: usize::try_from(self.object_mib.saturating_mul(MIB)).unwrap_or(usize::MAX),
            depth: self.depth,
            tree: WalkLimits {
                max_entries: self.files,
                ..WalkLimits::default()
            },
        }
    }
}

/// Reads a duration as Go writes it, such as `12h`, `1h30m` or `500ms`.
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

/// Reads a number of connections.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("invalid number {text:?}: it must be 1 or more")),
    }
}

/// As [`duration`]; none at all is fine.
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

    /// What upstream's manifests and their derivatives pass.
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
