//! Arguments of `crd`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::AccessArgs;
use super::controllers::duration;

/// Commands about a CRD of the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum CrdCommand {
    /// Store all custom resources of a CRD in its storage version, and remove the other versions from
    /// status.storedVersions.
    Migrate(MigrateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Name of the CustomResourceDefinition, such as kites.example.com.
    pub(crate) crd: String,
    /// Print what would be done; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Time limit, such as 90s or 5m.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}
