//! The command line of `bundle` and `config`.

use clap::{Args, Subcommand, ValueEnum};
use olm_api::schema::DNS1123_LABEL;

use super::{AccessArgs, PackageArgs};
use crate::spec_range;

/// Most characters of a namespace's name.
const LABEL: usize = 63;

/// What is asked about one bundle.
#[derive(Debug, Subcommand)]
pub(crate) enum BundleCommand {
    /// The objects that installing it would create; with -o yaml or json ready for `kubectl apply`.
    Render(RenderArgs),
    /// Everything for which it would be refused, and what its author should look at.
    Validate(BundleArgs),
    /// The rights that installing, upgrading and removing it takes; with -o yaml or json as a `ClusterRole`.
    Permissions(PermissionsArgs),
}

/// What is asked about configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// A commented `spec.config` to begin with.
    Init(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BundleArgs {
    /// The bundle's directory or image.
    #[arg(value_name = "DIR|IMAGE")]
    pub(crate) bundle: String,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Who makes the certificates of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Issuer {
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// operator-controller itself; the Secret is shown without keys.
    Own,
    /// Nobody: a bundle with webhooks is refused.
    None,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,
    /// The namespace to install to.
    #[arg(short, long, default_value = "default", value_parser = namespace)]
    pub(crate) namespace: String,
    /// `spec.config.inline`, JSON or YAML; @FILE reads it from a file.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) config: Option<String>,
    /// Who makes the certificates of webhooks.
    #[arg(long, value_enum, default_value_t = Issuer::Own)]
    pub(crate) certificates: Issuer,
}

#[derive(Debug, Args)]
pub(crate) struct PermissionsArgs {
    #[command(flatten)]
    pub(crate) render: RenderArgs,
    /// Ask for `escalate` and `bind` on the bundle's roles instead of all the rights that they grant.
    #[arg(long)]
    pub(crate) escalate: bool,
    /// Grant what is needed in one namespace by a `Role` there instead of in the whole cluster.
    #[arg(long)]
    pub(crate) split: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Of the version that this range chooses; else of the highest.
    #[arg(long, value_name = "RANGE", value_parser = spec_range::flag)]
    pub(crate) range: Option<String>,
    /// The namespace to install to, for the rules that compare with it.
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

/// The name of a namespace, as the API server admits it.
fn namespace(text: &str) -> Result<String, String> {
    let admitted = regex::Regex::new(DNS1123_LABEL).is_ok_and(|label| label.is_match(text));
    if admitted && text.len() <= LABEL {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a namespace's name has at most {LABEL} characters, only lower-case letters, digits and \"-\", and begins and \
             ends with a letter or digit"
        ))
    }
}
