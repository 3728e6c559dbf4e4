//! The command line of `crd-safety`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::SourceArgs;

#[derive(Debug, Args)]
pub(crate) struct CrdSafetyArgs {
    /// [OLD] NEW: files or directories with CRDs, such as bundles. Without OLD the CRDs of the cluster are compared.
    #[arg(required_unless_present = "extension", conflicts_with = "extension", num_args = 1..=2, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Compare the CRDs of the bundle that this ClusterExtension would install next with those of the cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) extension: Option<String>,
    /// Refuse every change that upstream refuses (feature gate `UpstreamCRDUpgradeSafety`).
    #[arg(long)]
    pub(crate) upstream: bool,
    /// Validate the objects stored on the cluster too.
    #[arg(long)]
    pub(crate) stored_objects: bool,
    /// Number of objects to name for each CRD and version.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) named: usize,
    /// Time limit for reading the objects of one version, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

pub(super) fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}
