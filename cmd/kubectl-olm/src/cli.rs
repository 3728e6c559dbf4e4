//! The command line.

pub(crate) mod bundle;
pub(crate) mod crd_safety;
mod format;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use olm_resolve::Selection;

pub(crate) use format::Format;

use crate::spec_range;

const CODES: &str = "Exit codes: 0 yes, 1 a negative answer (no bundle, findings, no match), \
    2 wrong usage, 3 could not ask. With -o json or yaml errors are data, too: {\"error\": {...}}.";

/// Questions about OLM's catalogs and extensions: what is there, what would be installed, and why.
#[derive(Debug, Parser)]
#[command(name = "kubectl-olm", bin_name = "kubectl olm", version, after_help = CODES)]
pub(crate) struct Cli {
    /// How the answer is written.
    #[arg(short, long, value_enum, default_value_t = Format::Table, global = true)]
    pub(crate) output: Format,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Packages whose name, keywords, provider or description has all the words, the best fit first.
    Search(SearchArgs),
    /// What a package is: channels, heads, deprecations.
    Show(ShowArgs),
    /// The versions of a package, highest first.
    Versions(PackageArgs),
    /// The bundle that would be installed.
    Resolve(ResolveArgs),
    /// Why that bundle, or none: what ruled the others out.
    Why(WhyArgs),
    /// The upgrade graph of a package as text, Mermaid, DOT or SVG.
    Graph(GraphArgs),
    /// Findings in a catalog directory.
    Validate(ValidateArgs),
    /// Which versions a range admits, and why not the others.
    Range(RangeArgs),
    /// What a catalog update brings, and for which installed versions.
    Diff(DiffArgs),
    /// What a bundle is made of, and what installing it takes; offline.
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// What a package lets its users configure.
    #[command(subcommand)]
    Config(bundle::ConfigCommand),
    /// The extensions of the cluster; exit code 1 unless all are ready.
    Get(GetArgs),
    /// One extension with its conditions; exit code 1 unless it is ready.
    Status(StatusArgs),
    /// The revisions of an extension.
    History(ExtensionArgs),
    /// The events of an extension and its revisions.
    Events(ExtensionArgs),
    /// The objects of an extension by phase, with their health.
    Tree(ExtensionArgs),
    /// What extensions mean for an upgrade of the cluster.
    #[command(subcommand)]
    ClusterUpgrade(ClusterUpgrade),
    /// What an upgrade of CRDs would break, in full.
    CrdSafety(crd_safety::CrdSafetyArgs),
    /// Completion for a shell.
    Completion(CompletionArgs),
}

/// Where catalogs are. Without any of --dir, --image and --catalogd: those of the cluster.
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
    /// Ask only the catalog of this name; may be repeated.
    #[arg(long = "catalog", value_name = "NAME")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

impl SourceArgs {
    /// Whether no cluster is asked for catalogs.
    pub(crate) fn is_offline(&self) -> bool {
        self.dir.len() + self.image.len() + self.catalogd.len() > 0
    }
}

/// How catalogs are reached.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// PEM file of authorities trusted for catalogd besides the system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Registry, HOST[:PORT], reached by plain HTTP; may be repeated.
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub(crate) plain_http: Vec<String>,
    /// Directory whose *.crt files are trusted for image registries.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) pull_cas_dir: Option<PathBuf>,
    /// Registry credentials, a Docker config.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,
    /// registries.conf; else that of the environment, else /etc/containers/registries.conf.
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
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words, in any case; all must be there. None lists every package.
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    /// The package.
    pub(crate) package: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) package: PackageArgs,
    /// Print instead the JSON Schema of what can be configured (spec.config.inline of a `ClusterExtension`).
    #[arg(long)]
    pub(crate) config_schema: bool,
    #[command(flatten)]
    pub(crate) config: bundle::ConfigArgs,
}

/// What is asked for, as in `spec.source.catalog`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WishArgs {
    /// What is installed: VERSION, BUNDLE, or BUNDLE@VERSION when no catalog has it.
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) installed: Option<String>,
    /// Range of versions, as spec.source.catalog.version.
    #[arg(long, value_name = "RANGE", value_parser = spec_range::flag)]
    pub(crate) range: Option<String>,
    /// Channel to choose from; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Whether the upgrade edges of the catalog bind.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: Policy,
    /// Let a bundle's release count on its own (feature gate `BundleReleaseSupport`).
    #[arg(long)]
    pub(crate) release_support: bool,
    /// Choose between catalogs as upstream does (feature gate `UpstreamCatalogSelection`).
    #[arg(long)]
    pub(crate) upstream_catalog_selection: bool,
}

impl WishArgs {
    /// How to choose between catalogs.
    pub(crate) fn selection(&self) -> Selection {
        if self.upstream_catalog_selection {
            Selection::Upstream
        } else {
            Selection::Ours
        }
    }
}

/// `upgradeConstraintPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// Only successors that the catalog names.
    #[default]
    #[value(name = "CatalogProvided", alias = "catalog-provided")]
    CatalogProvided,
    /// Any version.
    #[value(name = "SelfCertified", alias = "self-certified")]
    SelfCertified,
}

/// Whose way of choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Semantics {
    /// OLM v1: the highest version that any edge leads to.
    #[default]
    V1,
    /// OLM Classic beside it: the successor nearest the channel head, on the replaces chain.
    Classic,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The package.
    pub(crate) package: String,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    /// Whose way of choosing decides the answer.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) semantics: Semantics,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// A ClusterExtension of the cluster.
    #[arg(required_unless_present = "package",
          conflicts_with_all = ["package", "installed", "range", "channels", "policy"])]
    pub(crate) extension: Option<String>,
    /// A package instead of an extension.
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) package: Option<String>,
    /// The version or bundle that was hoped for.
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) want: Option<String>,
    /// Name every bundle, not only the first of each catalog.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// Lines of text.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A picture.
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// The package.
    pub(crate) package: String,
    /// Show what can be reached from this installed VERSION or BUNDLE.
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) from: Option<String>,
    /// Only this channel; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// How it is drawn.
    #[arg(long, value_enum, default_value_t = Drawing::Text)]
    pub(crate) format: Drawing,
    /// Whose successors count.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) semantics: Semantics,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The directory of the catalog.
    pub(crate) dir: PathBuf,
    /// Show notes, too: what is worth knowing, though nothing is wrong.
    #[arg(long)]
    pub(crate) notes: bool,
    /// Let warnings count like errors.
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// The range, as in spec.source.catalog.version.
    pub(crate) range: String,
    /// The versions.
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
    /// As OLD, after the update.
    pub(crate) new: String,
    /// Only this package; may be repeated.
    #[arg(long = "package", value_name = "PACKAGE")]
    pub(crate) packages: Vec<String>,
    /// Update within this channel; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtensionArgs {
    /// The ClusterExtension.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) extension: ExtensionArgs,
    /// Wait until it is ready, or needs somebody; progress goes to standard error.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

/// About upgrades of the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterUpgrade {
    /// What stands in the way: bundles that do not run on the version, and APIs that it does not serve.
    Check(ClusterUpgradeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterUpgradeArgs {
    /// The version, of Kubernetes (1.37) or OpenShift (4.19); else the cluster's next minor.
    #[arg(long, value_name = "X.Y")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
