//! Why a revision could not be made, and how the status says it.

use std::time::Duration;

use olm_api::names::InvalidNames;
use olm_applier::account::{Account, AccountError};
use olm_applier::stored::SurveyError;
use olm_bundle_files::FilesError;
use olm_image::Reference;
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
    /// The service account is not there.
    #[error(
        "operation cannot proceed due to the following validation error(s): service account \"{}\" not found in namespace \"{}\"; \
         create it, or {otherwise}", .account.name(), .account.namespace()
    )]
    AccountMissing {
        /// The account.
        account: Account,
        /// Another next step.
        otherwise: &'static str,
    },
    /// No service account is named, and the policy demands one; the text is the namespace it must be in.
    #[error(
        "spec.serviceAccount.name is required: operator-controller runs with --service-account-policy=Require and installs nothing \
         with its own rights; name a ServiceAccount of namespace \"{0}\" that it may act as, see docs/service-accounts.md"
    )]
    AccountRequired(String),
    /// The controller may not read the service account, so it may hardly act as it.
    #[error(
        "operator-controller may not act as the {0}; grant its own service account get and impersonate on this ServiceAccount, see \
         docs/service-accounts.md"
    )]
    AccountClosed(Account),
    /// `spec.serviceAccount` cannot be one.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The service account lacks rights; a line for each rule.
    #[error(
        "pre-authorization failed: service account requires the following permissions to manage cluster extension:\n  {}\n\
         Grant them to the {account}; nothing is applied before. Instead of the rights that the bundle's own roles grant, escalate \
         and bind on these roles will do.", .rules.join("\n  ")
    )]
    Rights {
        /// Whose.
        account: Account,
        /// What is missing.
        rules: Vec<String>,
    },
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
    /// Its objects have names that no API server accepts.
    #[error(transparent)]
    Names(#[from] InvalidNames),
    /// There are no certificates for its webhooks.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// Its CRDs would break what is stored.
    #[error("{text}")]
    CrdSafety {
        /// The findings.
        text: String,
        /// Time that looking at stored objects took.
        took: Duration,
    },
    /// Stored objects would not be valid any more.
    #[error("{text}")]
    StoredObjects {
        /// Which.
        text: String,
        /// How long looking took.
        took: Duration,
    },
    /// The stored objects could not be looked at.
    #[error("validating stored objects for CRD \"{crd}\"")]
    Survey {
        /// The CRD.
        crd: String,
        /// Why not.
        #[source]
        source: Box<SurveyError>,
        /// How long trying took.
        took: Duration,
    },
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

/// Rights are granted without a word to us.
const RIGHTS_RECHECK: Duration = Duration::from_secs(10);
/// An image that is pushed, a tag that moves, a CRD that changes: none of it says a word to us.
const CONTENT_RECHECK: Duration = Duration::from_mins(2);

fn fixed(bundle: &BundleRef) -> bool {
    bundle
        .image
        .parse::<Reference>()
        .is_ok_and(|reference| reference.by_digest())
}

impl Failure {
    /// The image cannot be had.
    pub(crate) fn image(error: olm_image::Error) -> Self {
        Self::Image(Box::new(error))
    }

    /// The longest to wait before it is tried again; `None` leaves it to the usual delays.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match self {
            Self::Rights { .. } | Self::AccountMissing { .. } | Self::AccountClosed(_) => {
                Some(RIGHTS_RECHECK)
            }
            Self::Image(_)
            | Self::Files(_)
            | Self::Parse(_)
            | Self::CrdSafety { .. }
            | Self::StoredObjects { .. }
            | Self::Survey { .. } => Some(CONTENT_RECHECK),
            _ => None,
        }
    }

    /// The least to wait before it is tried again: what takes long is not done over and over.
    pub(crate) fn pause(&self) -> Duration {
        match self {
            Self::CrdSafety { took, .. } | Self::StoredObjects { took, .. } | Self::Survey { took, .. } => {
                took.saturating_mul(10).min(CONTENT_RECHECK)
            }
            _ => Duration::ZERO,
        }
    }

    /// Whether only another spec, or another catalog, helps; `fixed` when the image is given by digest, so that it cannot change.
    pub(crate) fn terminal(&self, fixed: bool) -> bool {
        match self {
            Self::Image(error) => error.terminal(),
            Self::Pack(error) => error.terminal(),
            Self::Render(error) => error.terminal(),
            Self::Account(_) | Self::AccountRequired(_) | Self::Names(_) => true,
            // What a digest names stays as it is; a tag may mean something better tomorrow.
            Self::Files(error) => fixed && !matches!(error, FilesError::Read { .. }),
            Self::Parse(error) => fixed || error.terminal(),
            Self::CrdSafety { .. }
            | Self::StoredObjects { .. }
            | Self::Survey { .. }
            | Self::NamespaceMissing(_)
            | Self::NamespaceGoing(_)
            | Self::AccountMissing { .. }
            | Self::AccountClosed(_)
            | Self::Rights { .. }
            | Self::Certificates(_)
            | Self::Call(_)
            | Self::Interrupted(_) => false,
        }
    }

    /// What failed, as metrics name it.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::NamespaceMissing(_) | Self::NamespaceGoing(_) => "namespace",
            Self::AccountMissing { .. }
            | Self::AccountRequired(_)
            | Self::AccountClosed(_)
            | Self::Account(_)
            | Self::Rights { .. } => "rights",
            Self::Image(_) => "image",
            Self::Files(_) | Self::Parse(_) | Self::Names(_) => "bundle",
            Self::Render(_) => "render",
            Self::Certificates(_) => "certificates",
            Self::CrdSafety { .. } | Self::StoredObjects { .. } | Self::Survey { .. } => "crd_safety",
            Self::Pack(_) => "pack",
            Self::Call(_) => "api",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// How the status says it.
    pub(crate) fn progress(&self, bundle: &BundleRef) -> Progress {
        match self {
            // These are about the extension, not about the bundle.
            Self::AccountMissing { .. } | Self::AccountClosed(_) => {
                return Progress::Retrying(self.to_string());
            }
            Self::AccountRequired(_) => return Progress::Blocked(self.to_string()),
            _ => {}
        }
        let message = format!(
            "error for resolved bundle \"{}\" with version \"{}\": {}",
            bundle.name,
            bundle.version,
            chain(self)
        );
        match self {
            Self::Render(error) if error.is_configuration() => {
                let allowed = error.allowed().map(|allowed| format!(". {allowed}"));
                Progress::InvalidConfiguration(message + &allowed.unwrap_or_default())
            }
            _ if self.terminal(fixed(bundle)) => Progress::Blocked(message),
            _ => Progress::Retrying(message),
        }
    }
}
