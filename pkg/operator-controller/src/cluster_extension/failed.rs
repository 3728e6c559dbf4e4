//! End of a pass between the resolved bundle and its revision.

use olm_decide::extension::admission::Waiting;
use olm_decide::extension::{History, Refusal, Resolved};

use super::failure::{Failure, Stopped};
use super::pass::Pass;

/// Reason why [`Pass::apply`] did not reach [`Applied`](super::act::Applied).
pub(super) enum Failed {
    /// No revision can hold the bundle.
    Refused(Refusal),
    /// The revision waits for its approval or for a window.
    Waiting(Box<Waiting>),
    /// Other extensions hold the bundle.
    Stopped(Box<Stopped>),
    /// This extension is ready, and the others of its joint plan are not.
    AwaitsPartners(Box<Stopped>),
    /// A step failed.
    Failure(Failure),
    /// The spec needs a new revision, and the registry does not answer for the image of its bundle.
    Unlocated(Failure),
}

impl Failed {
    /// Returns the end of the pass.
    pub(super) fn stopped(self, pass: &Pass<'_>, resolved: &Resolved, history: &History) -> Stopped {
        let retried = |failure: &Failure| pass.context.shared.metrics.retried(failure.label());
        match self {
            Self::Refused(refusal) => Stopped::refused(refusal),
            Self::Waiting(waiting) => Stopped::waiting(waiting),
            Self::Stopped(stopped) | Self::AwaitsPartners(stopped) => *stopped,
            Self::Failure(failure) => {
                retried(&failure);
                Stopped::failed(&failure, &resolved.bundle)
            }
            Self::Unlocated(failure) => {
                retried(&failure);
                let stopped = Stopped::failed(&failure, &resolved.bundle);
                stopped.while_image_is_unavailable(history.newest())
            }
        }
    }
}

impl From<Stopped> for Failed {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(Box::new(stopped))
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}
