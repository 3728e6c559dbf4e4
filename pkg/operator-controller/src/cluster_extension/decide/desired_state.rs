//! Compares the newest revision with the resolved bundle and the spec.

use jiff::Timestamp;
use olm_api::ClusterExtension;
use olm_text::name::CatalogName;

use super::history::{History, Revision};
use super::identity::{CertificateProvider, RenderInputs};
use super::resolve::Refusal;

/// Number of archived revisions that are kept, the newest ones.
const ARCHIVED_KEPT: usize = 5;
/// Longest value of a label (Kubernetes); the name of a revision is a label value.
const LABEL_VALUE_MAX: usize = 63;

/// Revision that the extension needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DesiredState {
    /// The newest revision, whose objects are the wanted ones.
    Current(CurrentRevision),
    /// A revision that does not exist yet.
    New(NewRevision),
}

/// The newest revision and its differences from the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CurrentRevision {
    /// Name of the revision.
    pub name: String,
    /// True if `spec.progressDeadlineMinutes` differs: the one field of a revision that may change.
    pub deadline_differs: bool,
    /// Catalog of the revision, if the extension leaves it for another.
    pub moves_from: Option<CatalogName>,
}

/// A revision to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewRevision {
    /// Name of the revision.
    pub name: String,
    /// Number of the revision.
    pub number: i64,
    /// Revision from a Helm release of the same bundle. If it has the rendered objects, it becomes the wanted revision.
    pub taken_over: Option<TakenOver>,
}

/// A revision that was taken over from a Helm release and not yet compared with its bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenOver {
    /// Name of the revision.
    pub name: String,
    /// Digest of its objects.
    pub objects: String,
}

/// Returns the newest revision if `inputs` render to its objects, else the name and number of a new revision.
///
/// Errors: [`Refusal`] if the name of the extension is too long for the names of its revisions.
pub(crate) fn desired_state(
    extension: &str,
    deadline_minutes: Option<i32>,
    inputs: &RenderInputs<'_>,
    moved_from: Option<&CatalogName>,
    history: &History,
    now: Timestamp,
) -> Result<DesiredState, Refusal> {
    if let Some(newest) = history.newest() {
        // Rendering decides if a bundle has webhooks, and the newest revision records the answer. The answer holds for the same
        // image; for another image the identity differs anyway.
        let provider = match newest.certificates.as_deref() {
            Some("none") => CertificateProvider::None,
            _ => inputs.provider,
        };
        let wanted = RenderInputs {
            provider,
            ..inputs.clone()
        }
        .identity();
        if newest.identity.as_deref() == Some(wanted.as_str()) && !renewal_due(newest, now) {
            return Ok(DesiredState::Current(CurrentRevision {
                name: newest.name.clone(),
                deadline_differs: newest.deadline_minutes != deadline_minutes,
                moves_from: moved_from
                    .filter(|from| newest.bundle.catalog.as_ref() == Some(*from))
                    .cloned(),
            }));
        }
    }
    let number = history.highest.saturating_add(1);
    let name = format!("{extension}-{number}");
    if name.len() > LABEL_VALUE_MAX {
        return Err(Refusal {
            message: format!(
                "the name of ClusterExtension \"{extension}\" is too long: its revision \"{name}\" would have more than \
                 {LABEL_VALUE_MAX} characters; create it again with a shorter name"
            ),
            terminal: true,
        });
    }
    let taken_over = history.newest().and_then(|newest| {
        let same = newest.identity.is_none() && newest.bundle.same_bundle(inputs.bundle);
        Some(TakenOver {
            name: newest.name.clone(),
            objects: newest.taken_over.clone().filter(|_| same)?,
        })
    });
    Ok(DesiredState::New(NewRevision {
        name,
        number,
        taken_over,
    }))
}

fn renewal_due(revision: &Revision, now: Timestamp) -> bool {
    revision
        .renewal
        .as_deref()
        .and_then(|text| text.parse::<Timestamp>().ok())
        .is_some_and(|due| due <= now)
}

/// Returns the names of the archived revisions beyond the number that is kept, oldest first.
pub(crate) fn superfluous(history: &History) -> &[String] {
    let count = history.archived.len().saturating_sub(ARCHIVED_KEPT);
    history.archived.get(..count).unwrap_or_default()
}

/// Returns `spec.progressDeadlineMinutes` if it is positive.
pub(crate) fn deadline(extension: &ClusterExtension) -> Option<i32> {
    extension
        .spec
        .progress_deadline_minutes
        .filter(|minutes| *minutes > 0)
}
