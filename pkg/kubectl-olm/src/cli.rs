//! Command line.

pub(crate) mod act;
pub(crate) mod bundle;
pub(crate) mod controllers;
pub(crate) mod crd;
pub(crate) mod crd_safety;
pub(crate) mod delete;
mod format;
pub(crate) mod plan;
pub(crate) mod rollout;
pub(crate) mod site;
pub(crate) mod ui;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use olm_image::AllowedHost;
use olm_text::name::{CatalogName, PackageName};

pub(crate) use format::Format;

use crate::spec_range;

const CODES: &str = "Exit codes: 0 yes, 1 a negative answer (no bundle, findings, no match), \
    2 wrong usage, 3 could not ask. With -o json or yaml errors are data, too: {\"error\": {...}}.";

/// Answer questions about OLM's catalogs and extensions: available versions, the next installation, and the reasons.
/// Install and upgrade extensions. Install and remove the controllers.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm", bin_name = "kubectl olm", version, after_help = CODES)]
pub(crate) struct Cli {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table, global = true)]
    pub(crate) output: Format,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Subcommands of `kubectl olm`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Search packages whose name, keywords, provider or description contain all words, best match first.
    Search(SearchArgs),
    /// Show a package: channels, heads, deprecations.
    Show(ShowArgs),
    /// List the versions of a package, highest first.
    Versions(PackageArgs),
    /// Show the bundle that would be installed.
    Resolve(ResolveArgs),
    /// Explain why a bundle is chosen, or none, and which rule excludes each other bundle.
    Why(WhyArgs),
    /// Draw the upgrade graph of a package as text, Mermaid, DOT or SVG.
    Graph(GraphArgs),
    /// Validate a catalog directory.
    Validate(ValidateArgs),
    /// Show which versions a range admits, and why it excludes the others.
    Range(RangeArgs),
    /// Show what a catalog update changes, and for which installed versions.
    Diff(DiffArgs),
    /// Write catalogs as a site of static web pages: packages, versions, upgrade graphs, installation.
    Site(site::SiteArgs),
    /// Serve web pages about the cluster on this machine, with your own rights: what is installed, what could be, and why. Read-only.
    Ui(ui::UiArgs),
    /// Serve the web pages to readers with tokens, as the deployment of config/optional/ui does: each reader sees what the reader's own
    /// token may read. The account of the server only reviews tokens and rights.
    UiServer(ui::UiServerArgs),
    /// Show a bundle's content and the rights that its installation takes; works offline.
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Show the configuration that a package accepts.
    #[command(subcommand)]
    Config(bundle::ConfigCommand),
    /// Install a package: create its ClusterExtension and wait until it is ready.
    Install(act::InstallPackageArgs),
    /// Change the version, channels or policy of an extension and wait until it is ready.
    Upgrade(act::UpgradeArgs),
    /// Add, remove, list and refresh the catalogs of the cluster.
    #[command(subcommand)]
    Catalog(act::CatalogCommand),
    /// List the extensions of the cluster; the exit code is 1 unless all are ready. With --namespace, list the APIs that extensions
    /// offer there and what you may do with them, also without rights on the cluster; the exit code is 1 if there are none.
    Get(GetArgs),
    /// Show one extension with its conditions; the exit code is 1 unless the extension is ready.
    Status(StatusArgs),
    /// List the revisions of an extension.
    History(ExtensionArgs),
    /// List the events of an extension and its revisions.
    Events(ExtensionArgs),
    /// Show the objects of an extension by phase, with their health.
    Tree(ExtensionArgs),
    /// Delete an extension after showing what goes and what stays; asks before custom resources are deleted.
    Delete(delete::DeleteArgs),
    /// Approve the plan of an extension that waits for approval.
    Approve(rollout::ApproveArgs),
    /// Pause an extension: nothing is resolved, applied or repaired.
    Pause(rollout::PauseArgs),
    /// Resume a paused extension.
    Resume(rollout::PauseArgs),
    /// Give an extension the content of a former revision, or with --end let it follow its source again; shows the plan and asks. The
    /// exit code is 2 if data would be lost.
    Rollback(rollout::RollbackArgs),
    /// Show what extensions mean for an upgrade of the cluster.
    #[command(subcommand)]
    ClusterUpgrade(ClusterUpgrade),
    /// Show everything that an upgrade of CRDs would break.
    CrdSafety(crd_safety::CrdSafetyArgs),
    /// Work on a CRD of the cluster.
    #[command(subcommand)]
    Crd(crd::CrdCommand),
    /// Show everything that an upgrade or another change of an extension would change; the exit code is 0 if there is nothing to
    /// do, 1 for a plan, and 2 for a plan that would be refused.
    Plan(Box<plan::PlanArgs>),
    /// Install or upgrade catalogd and operator-controller, and wait until they run.
    InstallControllers(controllers::InstallArgs),
    /// Remove catalogd and operator-controller; refused while extensions or catalogs exist.
    UninstallControllers(controllers::UninstallArgs),
    /// Check the controllers and what they need; the exit code is 1 if there are errors or warnings.
    Doctor(controllers::DoctorArgs),
    /// Collect the state of the controllers into an archive without secrets.
    SupportBundle(controllers::SupportBundleArgs),
    /// Print the completion script for a shell.
    Completion(CompletionArgs),
}

/// Sources of catalogs. Without --dir, --image and --catalogd: the catalogs of the cluster.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Catalogs")]
pub(crate) struct SourceArgs {
    /// Directory of a file-based catalog; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,
    /// Catalog image; may be repeated.
    #[arg(long, value_name = "REF")]
    pub(crate) image: Vec<String>,
    /// Base URL of a served catalog, as in status.urls.base of its object; may be repeated.
    #[arg(long, value_name = "URL")]
    pub(crate) catalogd: Vec<String>,
    /// Read only the catalog of this name; may be repeated.
    #[arg(long = "catalog", value_name = "NAME")]
    pub(crate) only: Vec<CatalogName>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

impl SourceArgs {
    /// Returns true if the catalogs come from files or images, not from a cluster.
    pub(crate) fn is_offline(&self) -> bool {
        self.dir.len() + self.image.len() + self.catalogd.len() > 0
    }
}

/// Access to catalogs and to the cluster.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// PEM file with certificate authorities to trust for catalogd, besides the system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Registry, HOST[:PORT], to reach by plain HTTP; may be repeated.
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub(crate) plain_http: Vec<String>,
    /// Directory with certificate authorities (*.crt, *.pem) to trust for image registries.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) pull_cas_dir: Option<PathBuf>,
    /// Registry credentials, a Docker config.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,
    /// registries.conf file; else that of the environment, else /etc/containers/registries.conf.
    #[arg(long, value_name = "FILE")]
    pub(crate) registries_conf: Option<PathBuf>,
    /// Kubeconfig file; else KUBECONFIG, else ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace of catalogd.
    #[arg(long, value_name = "NAMESPACE", default_value = "olmv1-system")]
    pub(crate) system_namespace: String,
    /// Hosts that images are pulled from.
    #[arg(skip)]
    pub(crate) hosts: PullHosts,
}

/// Hosts that images are pulled from.
#[derive(Clone, Debug, Default)]
pub(crate) enum PullHosts {
    /// All: the user who names an image may contact any host.
    #[default]
    Any,
    /// Those that the controllers pull from: besides public hosts only these.
    Public(Vec<AllowedHost>),
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words, in any case; a package must contain all of them. Without words every package is listed.
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    /// Name of the package.
    pub(crate) package: PackageName,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) package: PackageArgs,
    /// Print the JSON Schema of `spec.config.inline` instead.
    #[arg(long)]
    pub(crate) config_schema: bool,
    #[command(flatten)]
    pub(crate) config: bundle::ConfigArgs,
}

/// Options of a request, with the meaning of the fields of `spec.source.catalog`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RequestArgs {
    /// Installed bundle: VERSION, BUNDLE, or BUNDLE@VERSION if no catalog has it.
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) installed: Option<String>,
    /// Version range, as in spec.source.catalog.version.
    #[arg(long, value_name = "RANGE", value_parser = spec_range::flag)]
    pub(crate) range: Option<String>,
    /// Channel to choose from; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Upgrade constraint policy.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: Policy,
    /// Keep the release of a bundle apart from its version (feature gate `BundleReleaseSupport`); by default as operator-controller on the
    /// cluster, or in its shipped manifests.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) release_support: Option<bool>,
    /// Choose between catalogs as upstream does (feature gate `UpstreamCatalogSelection`).
    #[arg(long)]
    pub(crate) upstream_catalog_selection: bool,
}

/// Values of `upgradeConstraintPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// Upgrade only to successors that the catalog names.
    #[default]
    #[value(name = "CatalogProvided", alias = "catalog-provided")]
    CatalogProvided,
    /// Permit every version.
    #[value(name = "SelfCertified", alias = "self-certified")]
    SelfCertified,
}

/// Product whose rules choose a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Semantics {
    /// OLM v1: the highest version among the successors.
    #[default]
    V1,
    /// OLM Classic besides: the successor nearest the channel head, on the replaces chain.
    Classic,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// Name of the package.
    pub(crate) package: PackageName,
    #[command(flatten)]
    pub(crate) request_args: RequestArgs,
    /// Product whose rules choose the bundle.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) semantics: Semantics,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// Name of a ClusterExtension of the cluster.
    #[arg(required_unless_present = "package",
          conflicts_with_all = ["package", "installed", "range", "channels", "policy"])]
    pub(crate) extension: Option<String>,
    /// Package to ask about instead of an extension.
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) package: Option<PackageName>,
    /// Version or bundle that you expected.
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) want: Option<String>,
    /// Name every bundle, not only the first of each catalog.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) request_args: RequestArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// Formats of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Text.
    Text,
    /// Mermaid flowchart.
    Mermaid,
    /// Graphviz DOT.
    Dot,
    /// SVG picture.
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// Name of the package.
    pub(crate) package: PackageName,
    /// Show the upgrades from this installed VERSION or BUNDLE.
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) from: Option<String>,
    /// Show only this channel; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Add a verdict to each edge: CRD-safe or not, rights gained, new images. Pulls the bundles, unless --bundles has them.
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Directory of bundles by version or name, also below a directory of the package's name, with --annotate.
    #[arg(long, value_name = "DIR", requires = "annotate")]
    pub(crate) bundles: Option<PathBuf>,
    /// Format of the graph.
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,
    /// Product whose rules find successors.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) semantics: Semantics,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Directory of the catalog.
    pub(crate) dir: PathBuf,
    /// Show notes too: remarks that need no change.
    #[arg(long)]
    pub(crate) notes: bool,
    /// Count warnings as errors.
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Version range, as in spec.source.catalog.version.
    pub(crate) range: String,
    /// Versions to compare with the range.
    #[arg(required = true)]
    pub(crate) versions: Vec<String>,
    /// Read the range as a catalog's skipRange.
    #[arg(long)]
    pub(crate) skip_range: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Directory, image, or base URL of a served catalog.
    pub(crate) old: String,
    /// Catalog after the update, in the same form as OLD.
    pub(crate) new: String,
    /// Compare only this package; may be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    pub(crate) packages: Vec<PackageName>,
    /// Compare updates within this channel only; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Namespace whose APIs of extensions are listed, with your own rights there.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtensionArgs {
    /// Name of the ClusterExtension.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) extension: ExtensionArgs,
    /// Wait until the extension is ready or stalled; progress goes to standard error.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// Questions about upgrades of the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterUpgrade {
    /// Show what blocks the upgrade: bundles that do not support the version, and APIs that it no longer serves.
    Check(ClusterUpgradeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterUpgradeArgs {
    /// Version of Kubernetes (1.37) or OpenShift (4.19); the cluster's next minor version without it.
    #[arg(long, value_name = "X.Y")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// Name of the shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
