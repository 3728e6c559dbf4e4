//! Arguments of `delete`.

use std::time::Duration;

use clap::Args;
use olm_api::CustomResourcePolicy;

use super::ExtensionArgs;
use super::controllers::{TIMEOUT, duration};

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) extension: ExtensionArgs,
    /// Fate of CRDs that hold custom resources: Keep, Delete or Block; written to spec.deletion.customResources. Without
    /// the flag, the value of the spec; without both, Keep.
    #[arg(long, value_name = "POLICY")]
    pub(crate) custom_resources: Option<CustomResourcePolicy>,
    /// Print what would be deleted; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete custom resources without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Time limit for the deletion, such as 90s or 5m.
    #[arg(long, value_name = "DURATION", default_value = TIMEOUT, value_parser = duration)]
    pub(crate) timeout: Duration,
}
