//! The command line of `bundle` and `config`.

use clap::{Args, Subcommand, ValueEnum};
use olm_text::dns::{LABEL_MAX, is_label};

use super::{AccessArgs, PackageArgs};
use crate::spec_range;

/// Questions about one bundle.
#[derive(Debug, Subcommand)]
pub(crate) enum BundleCommand {
    /// Print the objects that the installation would create; with -o yaml or json ready for `kubectl apply`.
    Render(RenderArgs),
    /// Report every reason to refuse the bundle, and remarks for its author.
    Validate(BundleArgs),
    /// Print the rights to install, upgrade and remove the bundle; with -o yaml or json as a `ClusterRole`.
    Permissions(PermissionsArgs),
}

/// Questions about configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print a commented `spec.config` to start with.
    Init(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// Directory or image of the bundle.
    #[arg(value_name = "DIR|IMAGE")]
    pub(crate) bundle: String,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Issuers of webhook certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Issuer {
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// operator-controller itself; the printed Secret has no keys.
    Own,
    /// Issue no certificates; a bundle with webhooks is refused.
    None,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,
    /// Install namespace.
    #[arg(short, long, default_value = "default", value_parser = namespace)]
    pub(crate) namespace: String,
    /// Value of `spec.config.inline`, JSON or YAML; @FILE reads a file.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<String>,
    /// Namespace that watchNamespaceSelector of the configuration matches; may be repeated.
    #[arg(long = "selected-namespace", value_name = "NAMESPACE", requires = "config", value_parser = namespace)]
    pub(crate) selected_namespaces: Vec<String>,
    /// Issuer of webhook certificates.
    #[arg(long, value_enum, default_value_t = Issuer::Own)]
    pub(crate) certificates: Issuer,
}

#[derive(Debug, Args)]
pub(crate) struct PermissionsArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,
    /// Print `escalate` and `bind` on the bundle's roles instead of all rights that these roles grant.
    #[arg(long)]
    pub(crate) escalate: bool,
    /// Grant the rights that one namespace needs by a `Role` there instead of cluster-wide.
    #[arg(long)]
    pub(crate) split: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Choose the version by this range; without it the highest version.
    #[arg(long, value_name = "RANGE", value_parser = spec_range::flag)]
    pub(crate) range: Option<String>,
    /// Install namespace, for the rules that compare with it.
    #[arg(short, long, value_parser = namespace)]
    pub(crate) namespace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) package: PackageArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Parses the name of a namespace as the API server does.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    if is_label(text) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a namespace's name has at most {LABEL_MAX} characters, only lower-case letters, digits and \"-\", and begins and \
             ends with a letter or digit"
        ))
    }
}
