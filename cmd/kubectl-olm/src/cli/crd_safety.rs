//! The command line of `crd-safety`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::SourceArgs;

#[derive(Debug, Args)]
pub(crate) struct CrdSafetyArgs {
    /// [OLD] NEW: files or directories with CRDs, such as bundles. Without OLD: what is on the cluster.
    #[arg(required_unless_present = "extension", conflicts_with = "extension", num_args = 1..=2, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The CRDs of the bundle that this ClusterExtension would be rolled out with next, against those on the cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) extension: Option<String>,
    /// Refuse all that upstream refuses (feature gate `UpstreamCRDUpgradeSafety`).
    #[arg(long)]
    pub(crate) upstream: bool,
    /// Look at the objects on the cluster, too: would each still be valid?
    #[arg(long)]
    pub(crate) stored_objects: bool,
    /// How many objects that would break are named, per CRD and version.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) named: usize,
    /// How long looking at the objects of one version may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}
