//! Arguments of the commands for the controllers themselves.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use olm_manifests::Overlay;

use super::AccessArgs;

/// Default of `--timeout`.
pub(super) const TIMEOUT: &str = "5m";

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub(crate) struct InstallArgs {
    /// Overlay of config/overlays or config/optional; may be repeated, overlays combine.
    #[arg(long = "overlay", value_name = "NAME", value_parser = overlays())]
    pub(crate) overlays: Vec<Overlay>,
    /// Registry of overlay internal-registry, HOST:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) internal_registry: Option<String>,
    /// Check the cluster and print what would be applied and deleted; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the manifests without asking a cluster; change nothing.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) export: bool,
    /// Take over fields that another tool applied, such as kubectl, and remove the tool's other fields from the Deployments.
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Return when the objects are applied, before the controllers run.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Time limit for the CRDs and the controllers, such as 90s or 5m.
    #[arg(long, value_name = "DURATION", default_value = TIMEOUT, value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Images. Without these flags: those of the manifests.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Images")]
pub(crate) struct ImageArgs {
    /// Registry and folder of the images, HOST[:PORT]/PREFIX.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) image_registry: Option<String>,
    /// Tag of the images.
    #[arg(long, value_name = "TAG")]
    pub(crate) image_tag: Option<String>,
    /// Image of catalogd.
    #[arg(long, value_name = "REF")]
    pub(crate) catalogd_image: Option<String>,
    /// Image of operator-controller.
    #[arg(long, value_name = "REF")]
    pub(crate) operator_controller_image: Option<String>,
    /// Image of the web pages, with --overlay ui.
    #[arg(long, value_name = "REF")]
    pub(crate) ui_image: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Also delete the CRDs; they stay otherwise.
    #[arg(long)]
    pub(crate) delete_crds: bool,
    /// Print what would be deleted; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Return when the objects are marked for deletion, before they are gone.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Time limit for the deletion, such as 90s or 5m.
    #[arg(long, value_name = "DURATION", default_value = TIMEOUT, value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SupportBundleArgs {
    /// File to write; else olm-support-TIME.tar.gz in the working directory. An existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

fn overlays() -> impl TypedValueParser<Value = Overlay> {
    PossibleValuesParser::new(Overlay::ALL.map(Overlay::name)).try_map(|name| {
        let found = Overlay::ALL.into_iter().find(|overlay| overlay.name() == name);
        found.ok_or_else(|| format!("there is no overlay {name:?}"))
    })
}

/// Reads a duration: a number of seconds, or a number with `s`, `m` or `h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    let seconds = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    let seconds = seconds.filter(|seconds| (1..=86_400).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "write a number and s, m or h, between 1s and 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("5m", Some(300)),
            ("1h", Some(3600)),
            ("7", Some(7)),
        ] {
            assert_eq!(duration(text).ok(), seconds.map(Duration::from_secs), "{text}");
        }
        for text in ["", "m", "0s", "5d", "5 m", "25h", "-1s", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
