//! Compares the newest revision with the resolved bundle and the spec.

use jiff::Timestamp;
use kube::ResourceExt as _;
use olm_api::ClusterExtension;
use olm_api::names::{LABEL_VALUE_MAX, fits_label};
use olm_image::CanonicalRef;
use olm_text::name::CatalogName;

use super::history::{History, Revision};
use super::identity::{CertificateProvider, RenderInputs, config};
use super::resolve::Refusal;

/// Number of archived revisions that are kept, the newest ones.
const ARCHIVED_KEPT: usize = 5;
/// Number for which the name of an extension must have room before its first revision. A revision each hour reaches it after eleven
/// years.
const NUMBER_WITH_ROOM: i64 = 99_999;

/// Revision that the extension needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredState {
    /// The newest revision, whose objects are the wanted ones.
    Current(CurrentRevision),
    /// A revision that does not exist yet.
    New(NewRevision),
}

impl DesiredState {
    /// Returns true for a revision with other inputs than the newest one.
    pub fn is_other(&self) -> bool {
        matches!(self, Self::New(new) if !new.renewal)
    }
}

/// The newest revision and its differences from the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentRevision {
    /// Name of the revision.
    pub name: String,
    /// Uid of the revision.
    pub uid: Option<String>,
    /// True if `spec.progressDeadlineMinutes` differs; the field of a revision may change.
    pub deadline_differs: bool,
    /// True if `spec.rollout.soak` differs while the revision rolls out; the field of a revision may change.
    pub soak_differs: bool,
    /// Catalog of the revision, if the extension leaves it for another.
    pub moves_from: Option<CatalogName>,
}

/// A revision to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRevision {
    /// Name of the revision.
    pub name: String,
    /// Number of the revision.
    pub number: i64,
    /// Revision from a Helm release of the same bundle. If it has the rendered objects, it becomes the wanted revision.
    pub taken_over: Option<TakenOver>,
    /// True if the newest revision has the same inputs, and only its certificates are due for renewal.
    pub renewal: bool,
}

/// Settings of the spec that a revision follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings<'a> {
    /// `spec.progressDeadlineMinutes`.
    pub deadline_minutes: Option<i32>,
    /// `spec.rollout.soak`.
    pub soak: Option<&'a str>,
}

impl<'a> Settings<'a> {
    /// Returns the settings of the extension. A deadline that is not positive counts as none.
    pub fn of(extension: &'a ClusterExtension) -> Self {
        let rollout = extension.spec.rollout.as_ref();
        let deadline = extension.spec.progress_deadline_minutes;
        Self {
            deadline_minutes: deadline.filter(|minutes| *minutes > 0),
            soak: rollout.and_then(|rollout| rollout.soak.as_deref()),
        }
    }

    /// Returns the adjustment that `revision` needs.
    pub fn adjust(&self, revision: &Revision) -> CurrentRevision {
        CurrentRevision {
            name: revision.name.clone(),
            uid: revision.uid.clone(),
            deadline_differs: revision.deadline_minutes != self.deadline_minutes,
            // A rollback does not soak: its content has been available before.
            soak_differs: !revision.succeeded
                && revision.rollback.is_none()
                && revision.soak.as_deref() != self.soak,
            moves_from: None,
        }
    }
}

/// A revision that was taken over from a Helm release and not yet compared with its bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenOver {
    /// Name of the revision.
    pub name: String,
    /// Uid of the revision.
    pub uid: Option<String>,
    /// Digest of its objects.
    pub objects: String,
}

/// Returns the newest revision if `inputs` render to its objects, else the name and number of a new revision.
///
/// Errors: [`Refusal`] if the name of the extension is too long for the names of its revisions.
pub fn desired_state(
    extension: &str,
    settings: Settings<'_>,
    inputs: &RenderInputs<'_>,
    moved_from: Option<&CatalogName>,
    history: &History,
    now: Timestamp,
) -> Result<DesiredState, Refusal> {
    let mut renewal = false;
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
        let same = newest.identity.as_deref() == Some(wanted.as_str());
        renewal = same && renewal_due(newest, now);
        if same && !renewal {
            return Ok(DesiredState::Current(CurrentRevision {
                moves_from: moved_from
                    .filter(|from| newest.bundle.catalog.as_ref() == Some(*from))
                    .cloned(),
                ..settings.adjust(newest)
            }));
        }
    }
    let taken_over = history.newest().and_then(|newest| {
        let same = newest.identity.is_none() && newest.bundle.same_bundle(inputs.bundle);
        Some(TakenOver {
            name: newest.name.clone(),
            uid: newest.uid.clone(),
            objects: newest.taken_over.clone().filter(|_| same)?,
        })
    });
    Ok(DesiredState::New(NewRevision {
        taken_over,
        renewal,
        ..next_revision(extension, history)?
    }))
}

/// Refuses an extension without revisions whose name is too long for them, before anything is read for it.
///
/// Errors: [`Refusal`] of [`next_revision`].
pub fn check_name(extension: &str, history: &History) -> Result<(), Refusal> {
    if history.highest == 0 {
        next_revision(extension, history)?;
    }
    Ok(())
}

/// A renewal of the certificates of the newest revision, which changes nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Renewal<'a> {
    /// The newest revision.
    pub of: &'a Revision,
    /// Image of the newest revision, by digest.
    pub image: &'a CanonicalRef,
    /// The revision to create.
    pub new: NewRevision,
}

/// Returns the renewal that is due, whatever bundle is resolved. `None` if none is due, or if the spec has another configuration than the
/// newest revision: that configuration is not recorded, and the present one may be what waits.
///
/// Errors: [`Refusal`] of [`next_revision`].
pub fn renewal<'a>(
    extension: &ClusterExtension,
    history: &'a History,
    now: Timestamp,
) -> Result<Option<Renewal<'a>>, Refusal> {
    let Some(newest) = history.newest().filter(|newest| renewal_due(newest, now)) else {
        return Ok(None);
    };
    let Some(image) = &newest.image else {
        return Ok(None);
    };
    let config = config(extension);
    let inputs = RenderInputs {
        bundle: &newest.bundle,
        canonical_image: image,
        namespace: extension.spec.namespace.as_deref().or(history.chosen_namespace()),
        config: config.as_ref(),
        namespaces: newest.namespaces.as_deref(),
        // Only certificates of operator-controller have a time of renewal.
        provider: CertificateProvider::Own,
    };
    if newest.identity.as_deref() != Some(inputs.identity().as_str()) {
        return Ok(None);
    }
    let new = NewRevision {
        renewal: true,
        ..next_revision(&extension.name_any(), history)?
    };
    Ok(Some(Renewal {
        of: newest,
        image,
        new,
    }))
}

/// Returns the name and the number of the next revision.
///
/// Errors: [`Refusal`] if the name of the extension is too long for the name of the revision. Without any revision, the name must
/// also be short enough for [`NUMBER_WITH_ROOM`]: an extension that is installed cannot be renamed.
pub fn next_revision(extension: &str, history: &History) -> Result<NewRevision, Refusal> {
    let number = history.highest.saturating_add(1);
    let name = format!("{extension}-{number}");
    let longest = match history.highest {
        0 => format!("{extension}-{NUMBER_WITH_ROOM}"),
        _ => name.clone(),
    };
    // The name of a revision is the value of a label.
    if !fits_label(&longest) {
        return Err(Refusal {
            message: format!(
                "the name of ClusterExtension \"{extension}\" is too long: its revision \"{longest}\" would have more than \
                 {LABEL_VALUE_MAX} characters; create it again with a shorter name"
            ),
            terminal: true,
        });
    }
    Ok(NewRevision {
        name,
        number,
        taken_over: None,
        renewal: false,
    })
}

/// Returns true if the certificates of the revision are due for renewal.
pub fn renewal_due(revision: &Revision, now: Timestamp) -> bool {
    revision
        .renewal
        .as_deref()
        .and_then(|text| text.parse::<Timestamp>().ok())
        .is_some_and(|due| due <= now)
}

/// Returns the archived revisions beyond the number that is kept, oldest first.
pub fn superfluous(history: &History) -> &[Revision] {
    let count = history.archived.len().saturating_sub(ARCHIVED_KEPT);
    history.archived.get(..count).unwrap_or_default()
}
