//! The flags of operator-controller.

use std::path::PathBuf;

use olm_runtime::CommonArgs;

/// Installs and upgrades operators from catalogs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "operator-controller", version)]
pub struct Args {
    /// Flags shared with catalogd.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Where unpacked bundles are kept; may be lost at any time.
    #[arg(long, default_value = "/var/cache/operator-controller", value_name = "DIR")]
    pub cache_path: PathBuf,
    /// A folder of CAs (PEM) that vouch for catalogd; without it, the CA that catalogd itself keeps in a Secret.
    #[arg(long, value_name = "DIR")]
    pub catalogd_cas_dir: Option<PathBuf>,
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
    }
}
