//! The flags of catalogd, with upstream's names and defaults.

use std::{path::PathBuf, time::Duration};

use olm_image::ImageArgs;
use olm_runtime::{CommonArgs, address::BindAddress};

/// What catalogd is told.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "catalogd", version, about = "Serves the content of ClusterCatalogs.")]
pub struct Args {
    /// What both controllers are told.
    #[command(flatten)]
    pub common: CommonArgs,
    /// What both controllers are told about images.
    #[command(flatten)]
    pub images: ImageArgs,
    /// Address of the content, HTTPS.
    #[arg(long, default_value = ":8443", value_name = "ADDRESS")]
    pub catalogs_server_addr: BindAddress,
    /// Answer only clients that bring a token whose user may read the path, such as /catalogs/NAME/api/v1/all. For
    /// catalogs pulled with private credentials. See docs/content-api.md.
    #[arg(long)]
    pub catalogs_server_require_token: bool,
    /// Host, or HOST:PORT, under which clients reach the content; put into status.urls.base.
    #[arg(
        long,
        default_value = "catalogd-service.olmv1-system.svc",
        value_name = "HOST[:PORT]"
    )]
    pub external_address: String,
    /// Where content is kept; it is served again after a restart.
    #[arg(long, default_value = "/var/cache/catalogd", value_name = "DIRECTORY")]
    pub cache_dir: PathBuf,
    /// How often content of catalogs that are gone is looked for.
    #[arg(long, default_value = "12h", value_parser = duration, value_name = "DURATION")]
    pub gc_interval: Duration,
    /// Taken for compatibility: the label the webhook set is set by the controller.
    #[arg(long, default_value_t = 9443, value_name = "PORT", hide = true)]
    pub webhook_server_port: u16,
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Other things to do than to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Command {
    /// Print the version.
    Version,
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn defaults_are_upstreams() {
        let args = Args::try_parse_from(["catalogd"]).unwrap();
        assert_eq!(args.gc_interval, Duration::from_hours(12));
        assert_eq!(args.external_address, "catalogd-service.olmv1-system.svc");
        assert_eq!(args.cache_dir, PathBuf::from("/var/cache/catalogd"));
        assert_eq!(
            Args::try_parse_from(["catalogd", "version"]).unwrap().command,
            Some(Command::Version)
        );
    }

    #[test]
    fn durations_as_in_go() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "12", "h", "-1h", "1d", "1h 5m", "0s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
