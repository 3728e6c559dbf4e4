//! Options of the command `report`.

use std::path::PathBuf;

use olm_harness::workspace;

use super::groups::Group;
use super::scale::FULL;
use super::start_script::CONTRACT;
use crate::figures;

/// Options of a run: its groups, their sizes and repetitions, and the place of the report.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = CONTRACT)]
pub struct Options {
    /// Folder with catalogd and operator-controller; the report takes the target and the profile of the build from its path.
    #[arg(long)]
    pub programs: PathBuf,
    /// Measure only these groups of rows; can be repeated.
    #[arg(long, value_name = "GROUP")]
    pub only: Vec<Group>,
    /// Number of extensions, which all other sizes follow. Below 20, the run only shows that the measurement works.
    #[arg(long, default_value_t = FULL, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: u32,
    /// Runs of each group; a figure is their median.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub times: u32,
    /// Also measure another implementation, which this command starts; the contract is below.
    #[arg(long, value_name = "CMD")]
    pub beside: Option<String>,
    /// Record of an earlier run to compare with, if it exists.
    #[arg(long, default_value_os_t = baseline(), value_name = "FILE")]
    pub baseline: PathBuf,
    /// Store this run as the baseline, unless it fails.
    #[arg(long)]
    pub save_baseline: bool,
    /// Fail if a row is worse than in the baseline by more than so many per cent.
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<f64>,
    /// Folder for report.md, report.json and the plots.
    #[arg(long, default_value_os_t = workspace::target_dir().join("bench-report"), value_name = "DIR")]
    pub out: PathBuf,
    /// Use one control plane for all groups of an implementation: faster, but later groups work with what earlier ones left in etcd.
    #[arg(long)]
    pub one_plane: bool,
    /// Folder of a bundle, for the group operators; repeatable. By default an operator is made up.
    #[arg(long, value_name = "DIR")]
    pub operator: Vec<PathBuf>,
    /// Other catalogs of 1 MB in the groups tiny and five, which have none of the installed packages.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub catalogs: u32,
    /// Options of the groups catalogd and catalogs.
    #[command(flatten)]
    pub catalogd: figures::Options,
}

impl Options {
    /// Returns the groups to measure, in the order of the report.
    pub(super) fn groups(&self) -> Vec<Group> {
        let wanted = |group: &Group| self.only.is_empty() || self.only.contains(group);
        Group::ALL.into_iter().filter(wanted).collect()
    }
}

/// Returns the path of the baseline in the checkout.
fn baseline() -> PathBuf {
    workspace::root().join("hack/bench/baseline.json")
}
