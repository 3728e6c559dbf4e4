//! Why a revision could not be made, and how the status says it.

use olm_bundle_files::FilesError;
use olm_status::cluster_extension::Progress;
use thiserror::Error;

use super::call::{CallError, chain};
use super::certificates::CertificateError;
use super::model::BundleRef;

/// Why a revision could not be made.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The namespace to install to is not there.
    #[error("namespace \"{0}\" does not exist: create it, the installation then goes on by itself")]
    NamespaceMissing(String),
    /// The namespace to install to is being deleted.
    #[error(
        "namespace \"{0}\" is being deleted: nothing can be installed there until it is gone and created again"
    )]
    NamespaceGoing(String),
    /// The image cannot be had.
    #[error("{}", chain(.0.as_ref()))]
    Image(Box<olm_image::Error>),
    /// The image's files cannot be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The files are no bundle.
    #[error(transparent)]
    Parse(olm_bundle::ParseError),
    /// The bundle cannot be rendered as the spec wants it.
    #[error(transparent)]
    Render(olm_bundle::RenderError),
    /// There are no certificates for its webhooks.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// Its CRDs would break what is stored.
    #[error("{}", .0.join("\n"))]
    CrdSafety(Vec<String>),
    /// Its objects do not fit into a revision.
    #[error("packing objects into Secrets")]
    Pack(#[source] olm_applier::plan::PackError),
    /// The API server refused.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The process is stopping, or a task died.
    #[error("{0} was interrupted")]
    Interrupted(&'static str),
}

impl Failure {
    /// The image cannot be had.
    pub(crate) fn image(error: olm_image::Error) -> Self {
        Self::Image(Box::new(error))
    }

    /// Whether only another spec, or another catalog, helps.
    pub(crate) fn terminal(&self) -> bool {
        match self {
            Self::Image(error) => error.terminal(),
            Self::Pack(error) => error.terminal(),
            Self::Render(error) => error.terminal(),
            // Without a change of the image some of these stay; but a tag may move, and upstream retries them, too.
            Self::Files(_)
            | Self::Parse(_)
            | Self::CrdSafety(_)
            | Self::NamespaceMissing(_)
            | Self::NamespaceGoing(_)
            | Self::Certificates(_)
            | Self::Call(_)
            | Self::Interrupted(_) => false,
        }
    }

    /// How the status says it.
    pub(crate) fn progress(&self, bundle: &BundleRef) -> Progress {
        let message = format!(
            "error for resolved bundle \"{}\" with version \"{}\": {}",
            bundle.name,
            bundle.version,
            chain(self)
        );
        match self {
            Self::Render(error) if error.is_configuration() => Progress::InvalidConfiguration(message),
            _ if self.terminal() => Progress::Blocked(message),
            _ => Progress::Retrying(message),
        }
    }
}
