//! The flags both controllers share, with upstream's names and defaults.
//!
//! Booleans may be written `--flag`, `--flag=true` or `--flag=false`, as in Go programs; of a flag that is given twice the
//! later one counts, unless it is a list. docs/operations.md has the table.

mod klog;
mod tls;

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode, str::FromStr};

pub use klog::KlogArgs;
pub use tls::TlsArgs;

use crate::{
    address::{BindAddress, MetricsAddress},
    build_info,
    features::{Binary, FeatureError, FeatureGates},
    telemetry::{LogFormat, LogLevel},
    tls::{Profile, ProfileError},
};

/// Where a pod finds its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The namespace when neither flag nor pod says one.
pub const DEFAULT_SYSTEM_NAMESPACE: &str = "olmv1-system";

/// Flags of both controllers; flatten it into the binary's own arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// Address of the health probes, plain HTTP; "0" for none.
    #[arg(
        long,
        default_value = ":8081",
        value_name = "ADDRESS",
        help_heading = "Servers"
    )]
    pub health_probe_bind_address: BindAddress,
    /// Address of the metrics, HTTPS; "0" for none. Empty: the usual port with --tls-cert, none without.
    #[arg(long, default_value = "", value_name = "ADDRESS", help_heading = "Servers")]
    pub metrics_bind_address: MetricsAddress,
    /// Address that says what there is in place of Go's profiles, plain HTTP; empty or "0" for none.
    #[arg(long, default_value = "0", value_name = "ADDRESS", help_heading = "Servers")]
    pub pprof_bind_address: BindAddress,
    /// Act only while holding the lease, so that several replicas can run.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = clap::ArgAction::Set, help_heading = "Cluster")]
    pub leader_elect: bool,
    /// Namespace of the controllers' own objects; the pod's namespace when not given.
    #[arg(long, value_name = "NAMESPACE", help_heading = "Cluster")]
    pub system_namespace: Option<String>,
    /// Kubeconfig file; else KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// Comma-separated NAME=true|false; may be repeated.
    #[arg(long = "feature-gates", value_name = "GATES", help_heading = "Cluster")]
    pub feature_gates: Vec<FeatureGates>,
    /// Certificates and protocol.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Directory whose *.crt files are trusted for image registries.
    #[arg(long, value_name = "DIRECTORY", help_heading = "Images")]
    pub pull_cas_dir: Option<PathBuf>,
    /// Secret with registry credentials, NAMESPACE/NAME.
    #[arg(long, value_name = "NAMESPACE/NAME", help_heading = "Images")]
    pub global_pull_secret: Option<NamespacedName>,
    /// Registry, HOST[:PORT], reached by plain HTTP; may be repeated.
    #[arg(long = "plain-http-registry", value_name = "HOST", help_heading = "Images")]
    pub plain_http_registry: Vec<String>,
    /// How log lines look.
    #[arg(long, default_value = "text", value_name = "FORMAT", help_heading = "Logging")]
    pub log_format: LogFormat,
    /// What is logged; wins over --v, and `RUST_LOG` wins over both.
    #[arg(long, value_name = "LEVEL", help_heading = "Logging")]
    pub log_level: Option<LogLevel>,
    /// Flags of Go's logging.
    #[command(flatten)]
    pub klog: KlogArgs,
}

/// Other things to do than to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Command {
    /// Print version, commit, state of the tree and date of the build.
    Version,
}

impl Command {
    /// Does it, on standard output.
    #[must_use]
    pub fn run(self, binary: Binary) -> ExitCode {
        let Self::Version = self;
        match writeln!(std::io::stdout(), "{} {}", binary.name(), build_info::line()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }
}

/// `NAMESPACE/NAME` on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespacedName {
    /// Before the slash.
    pub namespace: String,
    /// After the slash.
    pub name: String,
}

/// Why a combination of flags was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgsError {
    /// Not `NAMESPACE/NAME`.
    #[error(
        "incorrect number of components: Value of global-pull-secret should be of the format <namespace>/<name>"
    )]
    NamespacedName,
    /// One of the two TLS files is missing.
    #[error("unable to configure TLS certificates: tls-cert and tls-key flags must be used together")]
    HalfATlsPair,
    /// The custom TLS profile leaves nothing.
    #[error("unable to configure TLS")]
    Profile(#[source] ProfileError),
    /// A gate of the other binary.
    #[error("--feature-gates cannot be used")]
    Feature(#[source] FeatureError),
}

impl FromStr for NamespacedName {
    type Err = ArgsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(ArgsError::NamespacedName),
        }
    }
}

/// What only the flags together tell, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The gates.
    pub features: FeatureGates,
    /// The serving certificate's files.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// How TLS is spoken.
    pub tls_profile: Profile,
}

impl CommonArgs {
    /// Checks what can only be checked together, and logs what was asked for without effect.
    ///
    /// # Errors
    /// [`ArgsError`]: one sentence for the user.
    pub fn check(&self, binary: Binary) -> Result<Checked, ArgsError> {
        let features = self.features();
        features.check(binary).map_err(ArgsError::Feature)?;
        let checked = Checked {
            features,
            tls_files: self.tls.files()?,
            tls_profile: self.tls.profile()?,
        };
        checked.features.log(binary);
        let left_out = self.tls.left_out();
        if !left_out.is_empty() {
            tracing::warn!(
                left_out = left_out.join(","),
                "not built in, TLS is stricter than asked for"
            );
        }
        for flag in self.klog.without_effect() {
            tracing::info!(flag, "this flag changes nothing here: lines go to standard error");
        }
        Ok(checked)
    }

    /// The system namespace: the flag, else the pod's own, else [`DEFAULT_SYSTEM_NAMESPACE`].
    #[must_use]
    pub fn system_namespace(&self) -> String {
        self.system_namespace
            .clone()
            .or_else(|| {
                let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
                Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
            })
            .unwrap_or_else(|| DEFAULT_SYSTEM_NAMESPACE.to_owned())
    }

    /// The gates of all `--feature-gates`, whose binary is not checked yet.
    #[must_use]
    pub fn features(&self) -> FeatureGates {
        FeatureGates::merged(&self.feature_gates)
    }
}

/// Flags for which an empty value is the same as none, as it is in Go programs.
const EMPTY_IS_UNSET: [&str; 10] = [
    "--system-namespace=",
    "--kubeconfig=",
    "--feature-gates=",
    "--tls-cert=",
    "--tls-key=",
    "--tls-custom-ciphers=",
    "--tls-custom-curves=",
    "--pull-cas-dir=",
    "--global-pull-secret=",
    "--catalogd-cas-dir=",
];

/// The command line without flags that are given an empty value which means nothing.
pub fn command_line(args: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    args.into_iter()
        .filter(|arg| !EMPTY_IS_UNSET.iter().any(|unset| arg == unset))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::features::Feature;

    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Program {
        #[command(flatten)]
        common: CommonArgs,
    }

    fn parse(args: &[&str]) -> Result<CommonArgs, clap::Error> {
        let line = [&["binary"], args].concat();
        Program::try_parse_from(command_line(line.into_iter().map(OsString::from)))
            .map(|binary| binary.common)
    }

    #[test]
    fn booleans_as_in_go() {
        assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
        assert!(parse(&["--leader-elect=true"]).unwrap().leader_elect);
        assert!(!parse(&["--leader-elect=false"]).unwrap().leader_elect);
    }

    #[test]
    fn the_later_one_counts() {
        let args = parse(&[
            "--leader-elect",
            "--leader-elect=false",
            "--tls-profile=modern",
            "--tls-profile=custom",
            "--feature-gates=DeploymentConfig=true,BundleReleaseSupport=true",
            "--feature-gates",
            "DeploymentConfig=false",
        ])
        .unwrap();
        assert!(!args.leader_elect);
        assert_eq!(args.tls.tls_profile, crate::tls::ProfileName::Custom);
        assert!(!args.features().enabled(Feature::DeploymentConfig));
        assert!(args.features().enabled(Feature::BundleReleaseSupport));
    }

    #[test]
    fn an_empty_value_is_none() {
        let empty: Vec<&str> = EMPTY_IS_UNSET
            .iter()
            .copied()
            .filter(|flag| *flag != "--catalogd-cas-dir=")
            .collect();
        let args = parse(&empty).unwrap();
        assert_eq!(args.pull_cas_dir, None);
        assert_eq!(args.tls.files(), Ok(None));
    }

    #[test]
    fn half_a_pair_is_refused() {
        let args = parse(&["--tls-cert=a"]).unwrap();
        assert_eq!(args.check(Binary::Catalogd).unwrap_err(), ArgsError::HalfATlsPair);
    }

    #[test]
    fn lists_of_names() {
        let args = parse(&[
            "--tls-profile=custom",
            "--tls-custom-ciphers=TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384",
            "--tls-custom-curves=X25519,prime256v1",
        ])
        .unwrap();
        assert_eq!(args.tls.tls_custom_ciphers.len(), 2);
        assert_eq!(args.tls.tls_custom_curves.len(), 2);
        assert!(args.tls.left_out().is_empty());
    }
}
