//! The flags of operator-controller.

use std::path::PathBuf;

use olm_image::ImageArgs;
use olm_runtime::CommonArgs;

/// What `spec.serviceAccount` of an extension means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum ServiceAccountPolicy {
    /// Objects are applied and deleted as that service account, with its rights.
    #[default]
    Impersonate,
    /// Nothing: everything is done with the controller's own rights.
    Ignore,
}

/// Installs and upgrades operators from catalogs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "operator-controller", version)]
pub struct Args {
    /// Flags shared with catalogd.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Flags about images, shared with catalogd.
    #[command(flatten)]
    pub images: ImageArgs,
    /// Where unpacked bundles are kept; may be lost at any time.
    #[arg(long, default_value = "/var/cache/operator-controller", value_name = "DIR")]
    pub cache_path: PathBuf,
    /// A folder of CAs (PEM) that vouch for catalogd; without it, the CA that catalogd itself keeps in a Secret.
    #[arg(long, value_name = "DIR")]
    pub catalogd_cas_dir: Option<PathBuf>,
    /// What spec.serviceAccount of a ClusterExtension means: its objects are applied and deleted as that service account
    /// (Impersonate), or with the controller's own rights as if it were not set (Ignore).
    #[arg(long, value_enum, ignore_case = true, default_value_t, value_name = "POLICY")]
    pub service_account_policy: ServiceAccountPolicy,
    /// A file with the bearer token to bring to catalogd, where that asks for one; read anew for every request.
    #[arg(long, value_name = "FILE")]
    pub catalogd_token_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn upstreams_flags_are_taken() {
        Args::command().debug_assert();
        let args = Args::parse_from([
            "operator-controller",
            "--health-probe-bind-address=:8081",
            "--leader-elect",
            "--catalogd-cas-dir=/var/certs",
            "--cache-path=/tmp/c",
            "--feature-gates=BoxcutterRuntime=true",
        ]);
        assert_eq!(args.cache_path, PathBuf::from("/tmp/c"));
        assert_eq!(args.catalogd_cas_dir, Some(PathBuf::from("/var/certs")));
        assert!(args.common.leader_elect);
        assert_eq!(args.service_account_policy, ServiceAccountPolicy::Impersonate);
    }

    #[test]
    fn service_accounts_can_be_ignored() {
        let policy = |value: &str| {
            let flag = format!("--service-account-policy={value}");
            Args::try_parse_from(["operator-controller", &flag]).map(|args| args.service_account_policy)
        };
        assert_eq!(policy("Ignore").unwrap(), ServiceAccountPolicy::Ignore);
        assert_eq!(policy("Impersonate").unwrap(), ServiceAccountPolicy::Impersonate);
        assert!(policy("").is_err());
    }
}
