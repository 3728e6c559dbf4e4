//! The flags of operator-controller.

use std::path::PathBuf;

use olm_api::CustomResourcePolicy;
use olm_image::ImageArgs;
use olm_runtime::{CommonArgs, args::Command, build_info};

/// Policy for `spec.serviceAccount` of an extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum ServiceAccountPolicy {
    /// The controller applies and deletes objects as that service account, with its rights.
    #[default]
    Impersonate,
    /// The controller uses its own rights and ignores the service account.
    Ignore,
    /// Like `Impersonate`, and the controller also reads objects with the account's rights. An extension without an account is refused.
    Require,
}

/// Installs and upgrades operators from catalogs.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "operator-controller",
    version = build_info::line(),
    args_override_self = true
)]
pub struct Args {
    /// Flags shared with catalogd.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Flags about images, shared with catalogd.
    #[command(flatten)]
    pub images: ImageArgs,
    /// Directory of unpacked bundles; its content may be lost at any time.
    #[arg(
        long,
        default_value = "/var/cache/operator-controller",
        value_name = "DIRECTORY",
        help_heading = "Images"
    )]
    pub cache_path: PathBuf,
    /// Directory of CAs (PEM) that verify catalogd's certificate. By default, the CA that catalogd keeps in a Secret.
    #[arg(long, value_name = "DIRECTORY", help_heading = "TLS")]
    pub catalogd_cas_dir: Option<PathBuf>,
    /// Policy for spec.serviceAccount of a ClusterExtension. Impersonate applies and deletes objects as that service account.
    /// Ignore uses the controller's own rights, as if the field were not set. Require also reads objects as that account
    /// and refuses a ClusterExtension without one, so the controller needs no rights on the objects of bundles.
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "POLICY")]
    pub service_account_policy: ServiceAccountPolicy,
    /// Fate of CRDs that hold custom resources when their ClusterExtension is deleted or a newer version no
    /// longer has them, unless spec.deletion.customResources names another. Keep leaves them on the cluster, for the next
    /// ClusterExtension that installs them. Delete deletes them with their custom resources. Block holds the deletion until
    /// there are no custom resources.
    #[arg(long, default_value_t, value_name = "POLICY")]
    pub custom_resources_on_delete: CustomResourcePolicy,
    /// Add cluster roles CRD-view, CRD-edit and CRD-admin for each CRD of a bundle. They aggregate to the cluster roles view,
    /// edit and admin of Kubernetes. A change of the flag applies to new revisions.
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          action = clap::ArgAction::Set)]
    pub aggregate_crd_roles: bool,
    /// File with the bearer token for catalogd, if catalogd requires one; read again for every request.
    #[arg(long, value_name = "FILE")]
    pub catalogd_token_file: Option<PathBuf>,
    /// Most ClusterExtensions that are reconciled concurrently, and half of the most ClusterObjectSets. Those that wait for a
    /// registry or a catalog do not count.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: u16,
    /// Command to run instead of the controllers.
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{CommandFactory as _, Parser as _};
    use olm_runtime::args::command_line;
    use olm_runtime::{Binary, Feature};

    use super::*;

    fn parse(flags: &[&str]) -> Result<Args, String> {
        let line = std::iter::once("operator-controller").chain(flags.iter().copied());
        Args::try_parse_from(command_line(line.map(OsString::from))).map_err(|error| error.to_string())
    }

    /// Flags that upstream's manifests and their derivatives pass.
    #[test]
    fn upstreams_flags_are_taken() {
        Args::command().debug_assert();
        for flags in [
            "--health-probe-bind-address=:8081 --metrics-bind-address=:8443 --leader-elect \
             --feature-gates=WebhookProviderCertManager=true --feature-gates=BoxcutterRuntime=false \
             --feature-gates=SingleOwnNamespaceInstallSupport=false --feature-gates=DeploymentConfig=false \
             --feature-gates=BundleReleaseSupport=false --feature-gates=WebhookProviderOpenshiftServiceCA=false \
             --tls-cert=/var/certs/tls.crt --tls-key=/var/certs/tls.key --catalogd-cas-dir=/var/ca-certs \
             --pull-cas-dir=/var/ca-certs",
            "--feature-gates=HelmChartSupport=false --feature-gates=PreflightPermissions=false,SyntheticPermissions=false",
            "--tls-profile=modern --pprof-bind-address=:6060 --cache-path=/c",
            "--global-pull-secret=openshift-config/pull-secret --v=2 --system-namespace=a --kubeconfig=/k",
            "--catalogd-cas-dir= --global-pull-secret= --metrics-bind-address=",
            "version",
        ] {
            let flags: Vec<&str> = flags.split_whitespace().collect();
            let args = parse(&flags).unwrap();
            let features = args.common.features();
            assert_eq!(features.check(Binary::OperatorController), Ok(()), "{flags:?}");
        }
        let args = parse(&["--feature-gates=SingleOwnNamespaceInstallSupport=false"]).unwrap();
        let features = args.common.features();
        assert!(!features.enabled(Feature::SingleOwnNamespaceInstallSupport));
        assert!(features.enabled(Feature::DeploymentConfig), "not named, so on");
    }

    #[test]
    fn what_cannot_be_used_is_refused_in_a_sentence() {
        for (flag, sentence) in [
            ("--feature-gates=X=true", "unrecognized feature gate: X"),
            ("--global-pull-secret=a/b/c", "incorrect number of components"),
            ("--tls-profile=x", "unknown TLS profile"),
            ("--concurrency=0", "0 is not in 1..=65535"),
            ("--gc-interval=1h", "unexpected argument"),
        ] {
            let error = parse(&[flag]).unwrap_err();
            assert!(error.contains(sentence), "{flag}: {error}");
        }
    }

    #[test]
    fn custom_resources_are_kept_by_default() {
        let policy = |flags: &[&str]| parse(flags).map(|args| args.custom_resources_on_delete);
        assert_eq!(policy(&[]), Ok(CustomResourcePolicy::Keep));
        assert_eq!(
            policy(&["--custom-resources-on-delete=delete"]),
            Ok(CustomResourcePolicy::Delete)
        );
        let refused = policy(&["--custom-resources-on-delete=Orphan"]).unwrap_err();
        assert!(refused.contains("is none of Keep, Delete and Block"), "{refused}");
    }

    #[test]
    fn service_accounts_can_be_ignored() {
        let policy = |value: &str| {
            let flag = format!("--service-account-policy={value}");
            Args::try_parse_from(["operator-controller", &flag]).map(|args| args.service_account_policy)
        };
        assert_eq!(policy("Ignore").unwrap(), ServiceAccountPolicy::Ignore);
        assert_eq!(policy("Impersonate").unwrap(), ServiceAccountPolicy::Impersonate);
        assert_eq!(policy("require").unwrap(), ServiceAccountPolicy::Require);
        assert!(policy("").is_err());
    }
}
