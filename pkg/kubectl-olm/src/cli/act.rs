//! Arguments of the commands that write extensions and catalogs.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use olm_text::name::{CatalogName, PackageName};

use super::controllers::{TIMEOUT, duration};
use super::{AccessArgs, Policy};
use crate::spec_range;

/// Ways to run without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// Print the objects without asking the cluster.
    Client,
    /// Check the objects with the cluster, and print them.
    Server,
}

/// Flags of commands that write an object and wait for it.
#[derive(Clone, Debug, Args)]
pub(crate) struct WriteArgs {
    /// Change nothing: `client` prints the objects without asking the cluster, `server` also checks them.
    #[arg(long, value_enum, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    pub(crate) dry_run: Option<DryRun>,
    /// Return when the object is written.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Time limit for the wait, such as 90s or 5m.
    #[arg(long, value_name = "DURATION", default_value = TIMEOUT, value_parser = duration)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct InstallPackageArgs {
    /// Name of the package.
    pub(crate) package: PackageName,
    /// Name of the ClusterExtension; else that of the package.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Namespace of the extension's objects; else PACKAGE-system.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Create the namespace if it does not exist.
    #[arg(long)]
    pub(crate) create_namespace: bool,
    /// Leave the namespace to the bundle: the one that it suggests is created with the extension, and deleted with it.
    #[arg(long, conflicts_with_all = ["namespace", "create_namespace", "service_account"])]
    pub(crate) suggested_namespace: bool,
    /// Version or range of versions.
    #[arg(long, value_name = "RANGE", value_parser = spec_range::flag)]
    pub(crate) version: Option<String>,
    /// Channel to choose from; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Upgrade constraint policy.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: Policy,
    /// Catalog to choose from.
    #[arg(long, value_name = "NAME")]
    pub(crate) catalog: Option<CatalogName>,
    /// Service account in the namespace whose rights install the extension.
    #[arg(long, value_name = "NAME")]
    pub(crate) service_account: Option<String>,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
#[group(id = "change", required = true, multiple = true, args = ["version", "latest", "channels", "any_channel", "policy"])]
pub(crate) struct UpgradeArgs {
    /// Name of the ClusterExtension.
    pub(crate) name: String,
    /// New version or range of versions.
    #[arg(long, value_name = "RANGE", value_parser = spec_range::flag)]
    pub(crate) version: Option<String>,
    /// Remove the version range, so that the extension follows the catalog.
    #[arg(long, conflicts_with = "version")]
    pub(crate) latest: bool,
    /// Channel to choose from, in place of the present ones; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Choose from all channels.
    #[arg(long, conflicts_with = "channels")]
    pub(crate) any_channel: bool,
    /// Upgrade constraint policy.
    #[arg(long, value_enum)]
    pub(crate) policy: Option<Policy>,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Commands for the catalogs of the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Add a catalog and wait until it is served.
    Add(AddCatalogArgs),
    /// Remove a catalog; extensions that were installed from it keep running.
    Remove(RemoveCatalogArgs),
    /// List the catalogs; the exit code is 1 unless all available ones are served.
    List(ListCatalogsArgs),
    /// Make catalogd check the registry now.
    Refresh(RefreshCatalogArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddCatalogArgs {
    /// Name of the ClusterCatalog.
    pub(crate) name: String,
    /// Image of the catalog.
    pub(crate) image: String,
    /// Priority among catalogs with the same package: the higher number wins.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// Minutes between checks of the registry for new content of a tag; 0 for none. Images by digest are not checked.
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    pub(crate) poll_minutes: u32,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveCatalogArgs {
    /// Name of the ClusterCatalog.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListCatalogsArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RefreshCatalogArgs {
    /// Name of the ClusterCatalog.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}
