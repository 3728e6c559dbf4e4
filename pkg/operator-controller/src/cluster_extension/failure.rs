//! Failures of a pass, and their form in the status.

use std::time::Duration;

use olm_api::keys;
use olm_api::names::InvalidNames;
use olm_applier::account::{Account, AccountError};
use olm_applier::stored::SurveyError;
use olm_bundle::kube_version::KubeVersionError;
use olm_bundle_files::FilesError;
use olm_decide::extension::admission::Waiting;
use olm_decide::extension::{BundleRef, Refusal, Revision};
use olm_image::Reference;
use olm_rollout::{SoakError, WindowError};
use olm_status::cluster_extension::Progress;
use thiserror::Error;

use super::call::{CallError, chain};
use super::delays::Delays;
use super::gather::CertificateError;

/// Failure on the way to a new revision.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The install namespace does not exist.
    #[error("namespace \"{0}\" does not exist: create it and the installation continues automatically")]
    NamespaceMissing(String),
    /// The install namespace is being deleted.
    #[error(
        "namespace \"{0}\" is being deleted: nothing can be installed there until it is gone and created again"
    )]
    NamespaceGoing(String),
    /// The namespace that the extension would create exists already.
    #[error(
        "namespace \"{0}\", which would be created with the extension, exists and belongs to somebody else: delete it, or create the \
         ClusterExtension again with spec.namespace: {0} to install into it"
    )]
    NamespaceTaken(String),
    /// The namespaces that the configuration selects cannot be listed; the text is the failed call.
    #[error("{0}")]
    NamespacesUnread(String),
    /// The service account does not exist.
    #[error(
        "operation cannot proceed due to the following validation error(s): service account \"{}\" not found in namespace \"{}\"; \
         create it, or {otherwise}", .account.name(), .account.namespace()
    )]
    AccountMissing {
        /// The account.
        account: Account,
        /// Next step instead of creating the account, as a phrase.
        otherwise: &'static str,
    },
    /// The policy requires a service account, and the spec has none; the text is the install namespace.
    #[error(
        "spec.serviceAccount.name is required: operator-controller runs with --service-account-policy=Require and installs nothing \
         with its own rights; name a ServiceAccount of namespace \"{0}\" that it may act as, see docs/service-accounts.md"
    )]
    AccountRequired(String),
    /// A service account is named or required, and the spec names no namespace.
    #[error(
        "spec.serviceAccount needs spec.namespace: without it, the install namespace is created with the extension, and no service \
         account can exist there before. Create the ClusterExtension again with both"
    )]
    AccountNeedsNamespace,
    /// The controller may not read the service account.
    #[error(
        "operator-controller may not act as the {0}; grant its own service account get and impersonate on this ServiceAccount, see \
         docs/service-accounts.md"
    )]
    AccountClosed(Account),
    /// The name in `spec.serviceAccount` is invalid.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The service account lacks rights.
    #[error(
        "pre-authorization failed: service account requires the following permissions to manage cluster extension:\n  {}\n\
         Grant them to the {account}; nothing is applied before. Instead of the rights that the bundle's own roles grant, escalate \
         and bind on these roles will do.", .rules.join("\n  ")
    )]
    Rights {
        /// The account.
        account: Account,
        /// Missing rules, one text each.
        rules: Vec<String>,
    },
    /// The image cannot be pulled.
    #[error("{}", chain(.0.as_ref()))]
    Image(Box<olm_image::Error>),
    /// The files of the image cannot be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The files are not a valid bundle.
    #[error(transparent)]
    Parse(olm_bundle::ParseError),
    /// The cluster is too old for the bundle, or the bundle does not say what it needs.
    #[error(
        "{error}. Upgrade the cluster and the installation continues, choose another version of the package, or go on at your own risk: \
         kubectl annotate clusterextension {extension} {}=true",
        keys::IGNORE_MIN_KUBE_VERSION_ANNOTATION
    )]
    KubeVersion {
        /// Cause.
        error: KubeVersionError,
        /// Name of the extension.
        extension: String,
    },
    /// The bundle cannot be rendered for the spec.
    #[error(transparent)]
    Render(olm_bundle::RenderError),
    /// Objects of the bundle have names that no API server accepts.
    #[error(transparent)]
    Names(#[from] InvalidNames),
    /// The certificates of webhooks and API services cannot be read or issued.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// Another server serves a group and version that the bundle owns.
    #[error(
        "APIService \"{name}\" exists and does not belong to this extension: its group and version are served by {server}. Remove \
         that server, or choose a bundle that owns another group or version"
    )]
    ApiServiceTaken {
        /// Name of the APIService: version and group.
        name: String,
        /// The server, as a phrase.
        server: String,
    },
    /// CRDs of the bundle are unsafe for the stored objects.
    #[error("{text}")]
    CrdSafety {
        /// Message that names the unsafe changes.
        text: String,
        /// Duration of the check.
        took: Duration,
    },
    /// Stored objects would be invalid under the new schema.
    #[error("{text}")]
    StoredObjects {
        /// Message that names the objects and their faults.
        text: String,
        /// Duration of the check.
        took: Duration,
    },
    /// The stored objects cannot be listed.
    #[error("validating stored objects for CRD \"{crd}\"")]
    Survey {
        /// Name of the CRD.
        crd: String,
        /// Cause.
        #[source]
        source: Box<SurveyError>,
        /// Duration of the check.
        took: Duration,
    },
    /// The objects do not fit into a revision.
    #[error("packing objects into Secrets")]
    Pack(#[source] olm_applier::plan::PackError),
    /// A call to the API server failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A task ended early: the process is stopping, or the task panicked.
    #[error("{0} was interrupted")]
    Interrupted(&'static str),
    /// A window of `spec.rollout` is invalid.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The content of a former revision cannot be read; the text names what is missing.
    #[error("{0}; roll back to another revision")]
    Former(String),
    /// A rollback would delete custom resources, or they cannot be counted.
    #[error("{0}")]
    CustomResourcesLost(String),
    /// `spec.rollout.soak` is invalid.
    #[error(transparent)]
    Soak(#[from] SoakError),
    /// The object by which the installed operator can hold its upgrade cannot be read.
    #[error(
        "{object} may hold this upgrade by its condition Upgradeable, and operator-controller may not read it: grant get, list and \
         watch on {resource}, see docs/rollouts.md"
    )]
    HoldUnreadable {
        /// The object, as a phrase.
        object: String,
        /// Resource and group of its kind.
        resource: String,
    },
    /// The newest revision was deleted, and the watch does not report it yet.
    #[error("ClusterObjectSet \"{0}\" is gone; the rollout goes on when its watch reports the deletion")]
    RevisionGone(String),
    /// The extension was deleted or its spec changed during a pull, or a revision succeeded or failed before a new one was written;
    /// the next pass follows at once.
    #[error("the extension or its revisions changed during the pass")]
    Superseded,
}

/// Longest delay before rights are checked again: no event announces a grant.
const RIGHTS_RECHECK: Duration = Duration::from_secs(10);
/// Longest delay before rights that have been missing for long are checked again.
const LASTING_RIGHTS_RECHECK: Duration = Duration::from_mins(1);
/// Longest delay before images and CRDs are looked at again: no event announces a push, a moved tag or a changed CRD.
const CONTENT_RECHECK: Duration = Duration::from_mins(2);

fn fixed(bundle: &BundleRef) -> bool {
    bundle.image.reference().is_ok_and(Reference::by_digest)
}

impl Failure {
    /// Wraps a failure to resolve or pull an image.
    pub(crate) fn image(error: olm_image::Error) -> Self {
        Self::Image(Box::new(error))
    }

    /// Returns the limits of the delay before the retry. An expensive check is not repeated before ten times its duration.
    fn delays(&self) -> Delays {
        let delays = match self {
            Self::Rights { .. }
            | Self::AccountMissing { .. }
            | Self::AccountClosed(_)
            | Self::HoldUnreadable { .. } => {
                Delays::at_most(RIGHTS_RECHECK).if_lasting_at_most(LASTING_RIGHTS_RECHECK)
            }
            Self::Image(_)
            | Self::Files(_)
            | Self::Parse(_)
            | Self::KubeVersion { .. }
            | Self::ApiServiceTaken { .. }
            | Self::NamespaceTaken(_)
            | Self::CrdSafety { .. }
            | Self::StoredObjects { .. }
            | Self::Survey { .. }
            | Self::CustomResourcesLost(_) => Delays::at_most(CONTENT_RECHECK),
            _ => Delays::default(),
        };
        match self {
            Self::CrdSafety { took, .. } | Self::StoredObjects { took, .. } | Self::Survey { took, .. } => {
                delays.at_least(took.saturating_mul(10).min(CONTENT_RECHECK))
            }
            _ => delays,
        }
    }

    /// Returns true if only a change of the spec or of the catalog helps. `fixed` means an image reference by digest.
    pub(crate) fn terminal(&self, fixed: bool) -> bool {
        match self {
            Self::Image(error) => error.terminal(),
            Self::Pack(error) => error.terminal(),
            Self::Render(error) => error.terminal(),
            Self::Account(_)
            | Self::AccountRequired(_)
            | Self::AccountNeedsNamespace
            | Self::Names(_)
            | Self::Window(_)
            | Self::Soak(_)
            | Self::Former(_) => true,
            // The image of a digest never changes; a tag may move to another one.
            Self::Files(error) => fixed && !matches!(error, FilesError::Read { .. }),
            Self::Parse(error) => fixed || error.terminal(),
            Self::KubeVersion { .. }
            | Self::ApiServiceTaken { .. }
            | Self::CrdSafety { .. }
            | Self::StoredObjects { .. }
            | Self::Survey { .. }
            | Self::CustomResourcesLost(_)
            | Self::NamespaceMissing(_)
            | Self::NamespaceGoing(_)
            | Self::NamespaceTaken(_)
            | Self::NamespacesUnread(_)
            | Self::AccountMissing { .. }
            | Self::AccountClosed(_)
            | Self::Rights { .. }
            | Self::Certificates(_)
            | Self::HoldUnreadable { .. }
            | Self::Call(_)
            | Self::Interrupted(_)
            | Self::RevisionGone(_)
            | Self::Superseded => false,
        }
    }

    /// Returns the label of the failure in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::NamespaceMissing(_) | Self::NamespaceGoing(_) | Self::NamespaceTaken(_) => "namespace",
            Self::AccountMissing { .. }
            | Self::AccountRequired(_)
            | Self::AccountNeedsNamespace
            | Self::AccountClosed(_)
            | Self::Account(_)
            | Self::HoldUnreadable { .. }
            | Self::Rights { .. } => "rights",
            Self::Image(_) => "image",
            Self::Files(_)
            | Self::Parse(_)
            | Self::KubeVersion { .. }
            | Self::ApiServiceTaken { .. }
            | Self::Names(_) => "bundle",
            Self::Render(_) => "render",
            Self::Certificates(_) => "certificates",
            Self::CrdSafety { .. }
            | Self::StoredObjects { .. }
            | Self::Survey { .. }
            | Self::CustomResourcesLost(_) => "crd_safety",
            Self::Former(_) => "rollback",
            Self::Pack(_) => "pack",
            Self::Window(_) | Self::Soak(_) => "rollout",
            Self::Call(_) | Self::NamespacesUnread(_) => "api",
            Self::Interrupted(_) | Self::RevisionGone(_) | Self::Superseded => "interrupted",
        }
    }

    /// Returns the progress for the status.
    fn progress(&self, bundle: &BundleRef) -> Progress {
        match self {
            // These concern the extension, not the bundle.
            Self::AccountMissing { .. } | Self::AccountClosed(_) => {
                return Progress::Retrying(self.to_string());
            }
            Self::AccountRequired(_) | Self::AccountNeedsNamespace | Self::Window(_) | Self::Soak(_) => {
                return Progress::Blocked(self.to_string());
            }
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

/// End of a pass before the revision is the desired one.
#[derive(Clone, Debug)]
pub(crate) struct Stopped {
    /// Progress for the status.
    pub progress: Progress,
    /// Limits of the delay before the retry.
    pub delays: Delays,
    /// True if the extension changed meanwhile, so that the status of this pass is outdated.
    pub superseded: bool,
    /// Plan that waits for its approval, for a window or for the installed operator.
    pub waiting: Option<Box<Waiting>>,
}

impl Stopped {
    /// The end of a pass that `failure` stopped.
    pub(crate) fn failed(failure: &Failure, bundle: &BundleRef) -> Self {
        Self {
            progress: failure.progress(bundle),
            delays: failure.delays(),
            superseded: matches!(failure, Failure::Superseded),
            waiting: None,
        }
    }

    /// The end of a pass that could not roll back; `what` says which rollback failed.
    pub(crate) fn not_rolled_back(failure: &Failure, what: &str) -> Self {
        let message = format!("{what}: {}", chain(failure));
        Self {
            progress: if failure.terminal(true) {
                Progress::Blocked(message)
            } else {
                Progress::Retrying(message)
            },
            delays: failure.delays(),
            superseded: matches!(failure, Failure::Superseded),
            waiting: None,
        }
    }

    /// The end of a pass whose revision waits.
    pub(crate) fn waiting(waiting: Box<Waiting>) -> Self {
        Self {
            progress: waiting.progress.clone(),
            delays: Delays::default(),
            superseded: false,
            waiting: Some(waiting),
        }
    }

    /// The end of a pass without a bundle.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self {
            progress: if refusal.terminal {
                Progress::Blocked(refusal.message)
            } else {
                Progress::Unresolved(refusal.message)
            },
            delays: Delays::default(),
            superseded: false,
            waiting: None,
        }
    }

    /// Adds that a changed spec waits for the bundle's image while `newest` stays.
    pub(crate) fn while_image_is_unavailable(mut self, newest: Option<&Revision>) -> Self {
        if let (Progress::Retrying(message) | Progress::Blocked(message), Some(newest)) =
            (&mut self.progress, newest)
        {
            message.push_str(
                ". The changed spec is rolled out when the image can be found; until then revision \"",
            );
            message.push_str(&newest.name);
            message.push_str("\" stays");
        }
        self
    }
}
