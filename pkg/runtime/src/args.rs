//! The flags both controllers share, with upstream's names and defaults.
//!
//! Booleans may be written `--flag`, `--flag=true` or `--flag=false`, as in Go programs.

use std::{path::PathBuf, str::FromStr};

use crate::{address::BindAddress, features::FeatureGates, telemetry::LogFormat};

/// Where a pod finds its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The namespace when neither flag nor pod says one.
pub const DEFAULT_SYSTEM_NAMESPACE: &str = "olmv1-system";

/// Flags of both controllers; flatten it into the binary's own arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// Address of the health probes, plain HTTP; "0" for none.
    #[arg(long, default_value = ":8081", value_name = "ADDRESS")]
    pub health_probe_bind_address: BindAddress,
    /// Address of the metrics, HTTPS; needs a serving certificate. Empty or "0" for none.
    #[arg(long, default_value = "", value_name = "ADDRESS")]
    pub metrics_bind_address: BindAddress,
    /// Taken for compatibility; profiling is not served.
    #[arg(long, default_value = "0", value_name = "ADDRESS", hide = true)]
    pub pprof_bind_address: String,
    /// Act only while holding the lease, so that several replicas can run.
    #[arg(long, default_value_t = false, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub leader_elect: bool,
    /// Namespace of the controllers' own objects; the pod's namespace when not given.
    #[arg(long, value_name = "NAMESPACE")]
    pub system_namespace: Option<String>,
    /// Serving certificate, PEM; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Key of the serving certificate, PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Directory whose *.crt files are trusted for image registries.
    #[arg(long, value_name = "DIRECTORY")]
    pub pull_cas_dir: Option<PathBuf>,
    /// Secret with registry credentials, NAMESPACE/NAME.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub global_pull_secret: Option<NamespacedName>,
    /// Comma-separated NAME=true|false; may be repeated.
    #[arg(long = "feature-gates", value_name = "GATES")]
    pub feature_gates: Vec<FeatureGates>,
    /// Kubeconfig file; else KUBECONFIG, ~/.kube/config, or the pod's service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Registry, HOST[:PORT], reached by plain HTTP; may be repeated.
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub plain_http_registry: Vec<String>,
    /// How log lines look.
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Log verbosity: 0 info, 1 to 4 debug, 5 and above trace. `RUST_LOG` wins.
    #[arg(long = "v", short = 'v', default_value_t = 0, value_name = "LEVEL")]
    pub verbosity: u8,
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

impl CommonArgs {
    /// The system namespace: the flag, else the pod's own, else [`DEFAULT_SYSTEM_NAMESPACE`].
    #[must_use]
    pub fn system_namespace(&self) -> String {
        self.system_namespace
            .clone()
            .filter(|namespace| !namespace.is_empty())
            .or_else(|| {
                let text = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
                Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
            })
            .unwrap_or_else(|| DEFAULT_SYSTEM_NAMESPACE.to_owned())
    }

    /// The gates of all `--feature-gates`.
    #[must_use]
    pub fn features(&self) -> FeatureGates {
        FeatureGates::merged(&self.feature_gates)
    }

    /// The serving certificate's files, when both are given.
    ///
    /// # Errors
    /// [`ArgsError::HalfATlsPair`] when only one is.
    pub fn tls_files(&self) -> Result<Option<(PathBuf, PathBuf)>, ArgsError> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Ok(Some((cert.clone(), key.clone()))),
            (None, None) => Ok(None),
            _ => Err(ArgsError::HalfATlsPair),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::features::Feature;

    #[derive(Parser)]
    struct Binary {
        #[command(flatten)]
        common: CommonArgs,
    }

    fn parse(args: &[&str]) -> Result<CommonArgs, clap::Error> {
        Binary::try_parse_from([&["binary"], args].concat()).map(|binary| binary.common)
    }

    #[test]
    fn defaults_are_upstreams() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.health_probe_bind_address, BindAddress::Any(8081));
        assert_eq!(args.metrics_bind_address, BindAddress::Off);
        assert!(!args.leader_elect);
        assert_eq!(args.tls_files(), Ok(None));
    }

    #[test]
    fn booleans_as_in_go() {
        assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
        assert!(parse(&["--leader-elect=true"]).unwrap().leader_elect);
        assert!(!parse(&["--leader-elect=false"]).unwrap().leader_elect);
    }

    #[test]
    fn gates_repeat_and_unknown_ones_are_refused() {
        let args = parse(&[
            "--feature-gates=DeploymentConfig=true",
            "--feature-gates",
            "DeploymentConfig=false",
        ])
        .unwrap();
        assert!(!args.features().enabled(Feature::DeploymentConfig));
        let error = parse(&["--feature-gates=X=true"]).unwrap_err().to_string();
        assert!(error.contains("unrecognized feature gate: X"), "{error}");
    }

    #[test]
    fn half_a_pair_and_a_bad_secret_name_are_refused() {
        assert_eq!(
            parse(&["--tls-cert=a"]).unwrap().tls_files(),
            Err(ArgsError::HalfATlsPair)
        );
        assert!(parse(&["--global-pull-secret=a"]).is_err());
        assert!(parse(&["--global-pull-secret=a/b/c"]).is_err());
        assert!(parse(&["--global-pull-secret=a/b"]).is_ok());
    }
}
