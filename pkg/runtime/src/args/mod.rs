//! Flags of both controllers, with upstream's names and defaults.
//!
//! Booleans may be written `--flag`, `--flag=true` or `--flag=false`, as in Go programs. The last occurrence of a
//! flag wins, except for repeatable flags. docs/reference/flags.md has the table.

mod klog;
mod log;
mod tls;

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode, str::FromStr};

use kube::Client;
use tokio_util::sync::CancellationToken;

pub use klog::KlogArgs;
pub use log::{LogFormat, LogLevel};
pub use tls::TlsArgs;

use crate::{
    address::{BindAddress, MetricsAddress},
    build_info,
    features::{Binary, FeatureError, FeatureGates},
    tls::{OwnCertificate, Profile, ProfileError, ServingCert, TlsError},
};

/// File with the namespace of the pod.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Default namespace, without a flag and outside a pod.
pub const DEFAULT_SYSTEM_NAMESPACE: &str = "olmv1-system";

/// Flags of both controllers, to be flattened into the binary's arguments.
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
    /// Address of the metrics, HTTPS; "0" for none. If empty: the usual port with --tls-cert, none without.
    #[arg(long, default_value = "", value_name = "ADDRESS", help_heading = "Servers")]
    pub metrics_bind_address: MetricsAddress,
    /// Address of the endpoint in place of Go's profiles, plain HTTP; empty or "0" for none.
    #[arg(long, default_value = "0", value_name = "ADDRESS", help_heading = "Servers")]
    pub pprof_bind_address: BindAddress,
    /// Act only while holding the lease, so that several replicas can run.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = clap::ArgAction::Set, help_heading = "Cluster")]
    pub leader_elect: bool,
    /// Namespace of the controllers' own objects; by default the pod's namespace.
    #[arg(long, value_name = "NAMESPACE", help_heading = "Cluster")]
    pub system_namespace: Option<String>,
    /// Kubeconfig file; by default KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// Comma-separated NAME=true|false; may be repeated.
    #[arg(long = "feature-gates", value_name = "GATES", help_heading = "Cluster")]
    pub feature_gates: Vec<FeatureGates>,
    /// Certificates and protocol.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Directory whose *.crt and *.pem files are trusted for image registries.
    #[arg(long, value_name = "DIRECTORY", help_heading = "Images")]
    pub pull_cas_dir: Option<PathBuf>,
    /// Secret with registry credentials, NAMESPACE/NAME.
    #[arg(long, value_name = "NAMESPACE/NAME", help_heading = "Images")]
    pub global_pull_secret: Option<NamespacedName>,
    /// Registry, HOST[:PORT], reached by plain HTTP; may be repeated.
    #[arg(long = "plain-http-registry", value_name = "HOST", help_heading = "Images")]
    pub plain_http_registry: Vec<String>,
    /// Format of log lines.
    #[arg(long, default_value = "text", value_name = "FORMAT", help_heading = "Logging")]
    pub log_format: LogFormat,
    /// Minimum level of log lines; overrides --v, and `RUST_LOG` overrides both.
    #[arg(long, value_name = "LEVEL", help_heading = "Logging")]
    pub log_level: Option<LogLevel>,
    /// Flags of Go's logging.
    #[command(flatten)]
    pub klog: KlogArgs,
}

/// Subcommands of the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Command {
    /// Print version, commit, state of the tree and date of the build.
    Version,
}

impl Command {
    /// Runs the subcommand, with output on standard output.
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
    /// The part before the slash.
    pub namespace: String,
    /// The part after the slash.
    pub name: String,
}

/// Error for an invalid combination of flags.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgsError {
    /// The value is not `NAMESPACE/NAME`.
    #[error(
        "incorrect number of components: Value of global-pull-secret should be of the format <namespace>/<name>"
    )]
    NamespacedName,
    /// One of the two TLS files is missing.
    #[error("unable to configure TLS certificates: tls-cert and tls-key flags must be used together")]
    IncompleteTlsPair,
    /// The custom TLS profile allows nothing.
    #[error("unable to configure TLS")]
    Profile(#[source] ProfileError),
    /// The gate belongs to the other binary.
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

/// Values of the flags after validation.
#[derive(Clone, Debug)]
pub struct CheckedArgs {
    /// Feature gates.
    pub features: FeatureGates,
    /// Files of the serving certificate and its key.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// TLS versions, cipher suites and groups.
    pub tls_profile: Profile,
}

impl CheckedArgs {
    /// Returns the certificate that the flags select, with their TLS profile: from files if given, else `own`.
    ///
    /// # Errors
    /// As [`ServingCert::from_files`] and [`ServingCert::own`].
    pub async fn serving_certificate(
        &self,
        client: Client,
        own: OwnCertificate,
        shutdown: CancellationToken,
    ) -> Result<ServingCert, TlsError> {
        let certificate = match self.tls_files.clone() {
            Some((certificate, key)) => ServingCert::from_files(certificate, key, shutdown).await?,
            None => ServingCert::own(client, own, shutdown).await?,
        };
        Ok(certificate.with_profile(self.tls_profile.clone()))
    }
}

impl CommonArgs {
    /// Validates combinations of flags, and logs flags without effect.
    ///
    /// # Errors
    /// [`ArgsError`], one sentence for the user.
    pub fn check(&self, binary: Binary) -> Result<CheckedArgs, ArgsError> {
        let features = self.features();
        features.check(binary).map_err(ArgsError::Feature)?;
        let checked = CheckedArgs {
            features,
            tls_files: self.tls.files()?,
            tls_profile: self.tls.profile()?,
        };
        checked.features.log(binary);
        let unsupported = self.tls.unsupported();
        if !unsupported.is_empty() {
            tracing::warn!(
                left_out = unsupported.join(","),
                "unsupported TLS settings are ignored; TLS is stricter than requested"
            );
        }
        for flag in self.klog.without_effect() {
            tracing::info!(flag, "the flag has no effect: log lines go to standard error");
        }
        Ok(checked)
    }

    /// Returns the system namespace: the flag's value, else the pod's namespace, else [`DEFAULT_SYSTEM_NAMESPACE`].
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

    /// Merges all `--feature-gates`, without a check of their binary.
    #[must_use]
    pub fn features(&self) -> FeatureGates {
        FeatureGates::merged(&self.feature_gates)
    }
}

/// Flags whose empty value means unset, as in Go programs.
const EMPTY_MEANS_UNSET: [&str; 10] = [
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

/// Returns the command line without flags that have an empty value and thus mean unset.
pub fn command_line(args: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    args.into_iter()
        .filter(|arg| !EMPTY_MEANS_UNSET.iter().any(|unset| arg == unset))
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
    fn the_last_occurrence_wins() {
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
    fn an_empty_value_means_unset() {
        let empty: Vec<&str> = EMPTY_MEANS_UNSET
            .iter()
            .copied()
            .filter(|flag| *flag != "--catalogd-cas-dir=")
            .collect();
        let args = parse(&empty).unwrap();
        assert_eq!(args.pull_cas_dir, None);
        assert_eq!(args.tls.files(), Ok(None));
    }

    #[test]
    fn an_incomplete_pair_is_refused() {
        let args = parse(&["--tls-cert=a"]).unwrap();
        assert_eq!(
            args.check(Binary::Catalogd).unwrap_err(),
            ArgsError::IncompleteTlsPair
        );
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
        assert!(args.tls.unsupported().is_empty());
    }
}
