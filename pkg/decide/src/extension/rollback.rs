//! Decides if the extension goes forward, back or stays, from its revisions and the answers of the catalogs. The rule itself is
//! [`olm_rollout::direction`].

use olm_api::rollback::{CatalogContent, Rollback, RolloutAttempt, RolloutFailure};
use olm_api::{ClusterExtension, ClusterExtensionSpec, RolloutConfig};
use olm_image::CanonicalRef;
use olm_plan::{names_digest, spec_digest};
use olm_rollout::{Direction, Newest, Situation};
use olm_status::cluster_extension::Progress;
use olm_status::rolled_back::RolledBack;
use olm_status::upgrade::Upgrade;
use olm_text::cut;

use super::catalogs::CatalogLookups;
use super::history::{BundleRef, History, Revision};
use super::resolve::{Refusal, Resolved};

/// Longest message of a failure in the record of a rollback, in bytes.
const MESSAGE_LIMIT: usize = 1024;
/// Most former revisions that a message names.
const NAMED: usize = 10;

fn rollout(extension: &ClusterExtension) -> Option<&RolloutConfig> {
    extension.spec.rollout.as_ref()
}

/// Returns `spec.rollout.rollBackTo`.
pub fn request(extension: &ClusterExtension) -> Option<i64> {
    rollout(extension).and_then(|rollout| rollout.roll_back_to)
}

/// Returns the inputs of the rollout of the resolved bundle; `None` if a revision stands in for a catalog that cannot be read.
/// `image` is the image of the bundle by digest, if known; `namespaces` are those that the configuration selects by labels.
pub fn attempt(
    spec: &ClusterExtensionSpec,
    resolved: &Resolved,
    image: Option<&CanonicalRef>,
    namespaces: Option<&[String]>,
    lookups: &CatalogLookups,
) -> Option<RolloutAttempt> {
    resolved.deprecations.as_ref()?;
    let catalog = resolved.bundle.catalog.as_ref();
    Some(RolloutAttempt {
        spec: spec_digest(spec),
        bundle: resolved.bundle.name.to_string(),
        version: resolved.bundle.version.to_string(),
        image: image.map(ToString::to_string),
        namespaces: namespaces.map(names_digest),
        catalog: catalog.and_then(|name| {
            Some(CatalogContent {
                name: name.to_string(),
                digest: lookups.digest(name)?.to_owned(),
            })
        }),
    })
}

/// Returns true if the newest revision replaces a failed one, so that the inputs decide if its bundle is tried again.
pub fn holds_failure(history: &History) -> bool {
    let rollback = history.newest().and_then(|newest| newest.rollback.as_ref());
    rollback.is_some_and(|rollback| rollback.failure.is_some())
}

/// Decides the direction; `next` has the inputs of the resolved bundle.
pub fn direction(
    extension: &ClusterExtension,
    history: &History,
    next: Option<&RolloutAttempt>,
) -> Direction {
    let installed = history.installed.as_ref();
    let newest = history.newest().map(|newest| Newest {
        number: newest.number,
        failed: newest.failure().is_some(),
        same_objects: installed
            .is_some_and(|installed| installed.identity.is_some() && installed.identity == newest.identity),
        rollback: newest.rollback.as_ref(),
    });
    olm_rollout::direction(&Situation {
        request: request(extension),
        on_failure: rollout(extension)
            .and_then(|rollout| rollout.on_failure)
            .unwrap_or_default(),
        newest,
        installed: installed.map(|installed| installed.number),
        next,
    })
}

/// Returns the former revision with this number.
///
/// Errors: [`Refusal`] that names the revisions that exist.
pub fn former(history: &History, number: i64) -> Result<&Revision, Refusal> {
    let all: Vec<&Revision> = history.all().collect();
    if let Some(found) = all.iter().find(|revision| revision.number == number) {
        return Ok(found);
    }
    let mut named: Vec<String> = all
        .iter()
        .rev()
        .take(NAMED)
        .map(|revision| format!("{} (version {})", revision.number, revision.bundle.version))
        .collect();
    if named.is_empty() {
        named.push("none".to_owned());
    }
    Err(Refusal {
        message: format!(
            "spec.rollout.rollBackTo names revision {number}, which does not exist; revisions that exist: {}. Set the field to one of \
             them, or remove it to follow the source",
            named.join(", ")
        ),
        terminal: true,
    })
}

/// Returns the record of a rollback to `former`.
pub fn record(
    spec: &ClusterExtensionSpec,
    history: &History,
    former: &Revision,
    automatic: bool,
) -> Rollback {
    let newest = history.newest();
    let failed = newest.filter(|_| automatic);
    Rollback {
        to: former.number,
        from: newest.map_or(0, |newest| newest.number),
        from_version: newest
            .map(|newest| newest.bundle.version.to_string())
            .unwrap_or_default(),
        failure: failed.map(|failed| RolloutFailure {
            // Revisions of former versions of the controller have no record.
            attempt: failed.attempt.clone().unwrap_or_else(|| RolloutAttempt {
                spec: spec_digest(spec),
                bundle: failed.bundle.name.to_string(),
                version: failed.bundle.version.to_string(),
                image: failed.image.as_ref().map(ToString::to_string),
                ..RolloutAttempt::default()
            }),
            message: cut(failed.failure().unwrap_or_default(), MESSAGE_LIMIT).into_owned(),
        }),
    }
}

/// Returns the record of a revision that renews the certificates of `newest` while it stays. A revision that the spec names itself has
/// no record; the next one needs one, since its number is another.
pub fn stays(newest: &Revision) -> Rollback {
    newest.rollback.clone().unwrap_or_else(|| Rollback {
        to: newest.number,
        from: newest.number,
        ..Rollback::default()
    })
}

/// Returns the rollback that holds, for the status.
pub fn view(direction: Direction, extension: &ClusterExtension, history: &History) -> Option<RolledBack> {
    let newest = history.newest()?;
    let version = &newest.bundle.version;
    match (direction, &newest.rollback) {
        (Direction::StayRequested | Direction::Restore { automatic: false, .. }, rollback) => {
            let to = request(extension)?;
            if newest.number != to && rollback.as_ref().is_none_or(|rollback| rollback.to != to) {
                return None;
            }
            let from = rollback
                .as_ref()
                .filter(|rollback| !rollback.from_version.is_empty());
            let from = from
                .map(|rollback| format!(" It was rolled back from version {}.", rollback.from_version))
                .unwrap_or_default();
            Some(RolledBack {
                automatic: false,
                message: format!(
                    "spec.rollout.rollBackTo holds the extension at the content of revision {to}, version {version}.{from} It \
                     follows its source again when the field is removed"
                ),
            })
        }
        (Direction::StayFailed | Direction::Restore { automatic: true, .. }, Some(rollback)) => {
            let failure = rollback.failure.as_ref()?;
            Some(RolledBack {
                automatic: true,
                message: format!(
                    "Version {from} (revision {number}) failed and was rolled back to version {version}. Version {from} is tried again \
                     when its catalog, its image, the selected namespaces or the spec change. Failure: {cause}",
                    from = rollback.from_version,
                    number = rollback.from,
                    cause = failure.message
                ),
            })
        }
        (Direction::Forward, _) | (Direction::StayFailed | Direction::Restore { .. }, None) => None,
    }
}

/// Returns the progress of a pass that ended as decided. A rollback that rolls out reports its own progress.
pub fn progress(rolled_back: Option<&RolledBack>, history: &History) -> Progress {
    let done = history.newest().is_some_and(|newest| newest.succeeded);
    match rolled_back.filter(|rolled_back| rolled_back.automatic && done) {
        Some(rolled_back) => Progress::RolledBack(rolled_back.message.clone()),
        None => Progress::Mirrored,
    }
}

/// Returns the upgrade for the status: the rollback holds the resolved bundle, unless that is the newest revision's own.
pub fn upgrade(
    rolled_back: Option<&RolledBack>,
    resolved: &BundleRef,
    history: &History,
    otherwise: Upgrade,
) -> Upgrade {
    let other = history
        .newest()
        .is_some_and(|newest| !newest.bundle.same_bundle(resolved));
    match rolled_back.filter(|_| other) {
        Some(rolled_back) => Upgrade::RolledBack(format!(
            "Version {} (bundle \"{}\") waits. {}",
            resolved.version, resolved.name, rolled_back.message
        )),
        None => otherwise,
    }
}

#[cfg(test)]
mod tests;
