//! Failures to pull, store or remove the content of a catalog.

use olm_api::event::Reason;
use olm_catalog_files::WalkError;
use olm_image::{Cause, Reference};

use crate::{controller::images::ShuttingDown, metrics::PullResult, storage::StorageError};

/// Failure to pull, store or remove content. Its text is the message of the condition.
#[derive(Debug, thiserror::Error)]
pub(in crate::controller) enum ActError {
    /// The image cannot be pulled until the spec changes.
    #[error("source catalog content: {0}")]
    Terminal(String, Cause),
    /// The image cannot be pulled now.
    #[error("source catalog content: {0}")]
    Source(String, Cause),
    /// The image was pulled, but its catalog cannot be used.
    #[error("error storing fbc: {}", olm_text::chain(.0))]
    Store(#[source] StorageError),
    /// The content cannot be removed.
    #[error("error deleting catalog content: {0}")]
    Remove(String),
    /// The process is shutting down.
    #[error("error storing fbc: interrupted, the catalog is stored again at the next start")]
    Interrupted,
}

impl From<ShuttingDown> for ActError {
    fn from(_: ShuttingDown) -> Self {
        Self::Interrupted
    }
}

impl ActError {
    pub(in crate::controller) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(..))
    }

    /// Returns the reason of the event for this error.
    pub(in crate::controller) fn reason(&self) -> Reason {
        match self {
            Self::Terminal(..) | Self::Source(..) => Reason::PullFailed,
            Self::Store(_) => Reason::UnpackFailed,
            Self::Remove(_) => Reason::RemoveFailed,
            Self::Interrupted => Reason::Interrupted,
        }
    }

    pub(super) fn result(&self) -> Option<PullResult> {
        match self {
            Self::Terminal(_, cause) | Self::Source(_, cause) => Some(PullResult::Image(*cause)),
            Self::Store(
                StorageError::Io { .. }
                | StorageError::Damaged { .. }
                | StorageError::Walk(WalkError::Read { .. }),
            ) => Some(PullResult::Disk),
            Self::Store(_) => Some(PullResult::Content),
            Self::Remove(_) | Self::Interrupted => None,
        }
    }

    pub(super) fn of(error: &olm_image::Error, reference: &Reference) -> Self {
        let (terminal, message) = (error.terminal_for(reference), error.message());
        // Upstream puts its "terminal error" mark before the cause: behind the step for a missing label.
        let step = if error.missing_label() {
            "error applying image: "
        } else {
            ""
        };
        if terminal {
            Self::Terminal(format!("{step}terminal error: {message}"), error.cause())
        } else {
            Self::Source(format!("{step}{message}"), error.cause())
        }
    }

    /// Returns the error for stored content that the signature policy refuses. The policy may change, so it is not terminal.
    pub(super) fn refused(error: &olm_image::Error) -> Self {
        Self::Source(error.message(), error.cause())
    }

    /// Returns the error for a text that is not an image reference.
    pub(super) fn invalid_reference(error: &olm_image::ReferenceError) -> Self {
        Self::Terminal(format!("terminal error: {error}"), Cause::Invalid)
    }
}
