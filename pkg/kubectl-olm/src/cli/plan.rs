//! The command line of `plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::bundle::{Issuer, namespace};
use super::crd_safety::seconds;
use super::{AccessArgs, SourceArgs};

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Name of the ClusterExtension. With several names, the joint plan of extensions whose new versions need each other.
    #[arg(required_unless_present_any = ["from", "file"], conflicts_with = "from", value_name = "EXTENSION")]
    pub(crate) extensions: Vec<String>,
    /// Compare two bundles without a cluster: directory or image of the present bundle.
    #[arg(long, value_name = "DIR|IMAGE", requires = "to", conflicts_with_all = ["file", "channels", "stored_objects"])]
    pub(crate) from: Option<String>,
    /// Version range to plan for instead of the one in the spec; with --from the directory or image of the wanted bundle.
    #[arg(long, value_name = "VERSION|DIR|IMAGE")]
    pub(crate) to: Option<String>,
    /// Channel to choose from instead of those in the spec; may be repeated.
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub(crate) channels: Vec<String>,
    /// Manifest of the ClusterExtension as it would be applied, JSON or YAML.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Approve the plan after asking: write its digest to spec.rollout.approvedPlan. Exit code 0 if the plan is approved.
    #[arg(long, conflicts_with_all = ["from", "file", "to", "channels"])]
    pub(crate) approve: bool,
    /// Approve without asking.
    #[arg(short, long, requires = "approve")]
    pub(crate) yes: bool,
    /// Install namespace, with --from.
    #[arg(short, long, requires = "from", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// Value of `spec.config.inline`, JSON or YAML, with --from; @FILE reads a file.
    #[arg(long, value_name = "CONFIG", requires = "from")]
    pub(crate) config: Option<String>,
    /// Namespace that watchNamespaceSelector of --config matches; may be repeated.
    #[arg(long = "selected-namespace", value_name = "NAMESPACE", requires = "config", value_parser = namespace)]
    pub(crate) selected_namespaces: Vec<String>,
    /// Issuer of webhook certificates; by default the one that operator-controller chooses, and with --from operator-controller itself.
    #[arg(long, value_enum)]
    pub(crate) certificates: Option<Issuer>,
    /// Validate the objects stored on the cluster by the schemas of the new CRDs.
    #[arg(long)]
    pub(crate) stored_objects: bool,
    /// Time limit for reading the objects of one version with --stored-objects, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

impl PlanArgs {
    /// Returns the arguments of the plan of an extension by its own spec.
    pub(crate) fn of(extension: &str, access: AccessArgs) -> Self {
        Self {
            extensions: vec![extension.to_owned()],
            from: None,
            to: None,
            channels: Vec::new(),
            file: None,
            approve: false,
            yes: false,
            namespace: None,
            config: None,
            selected_namespaces: Vec::new(),
            certificates: None,
            stored_objects: false,
            timeout: Duration::ZERO,
            source: SourceArgs {
                access,
                ..SourceArgs::default()
            },
        }
    }
}
