//! Status of a ClusterExtension, computed from the outcome of one reconcile.
//!
//! Invariants: the status depends on the arguments only; every condition carries the observed generation; a
//! condition whose status is unchanged keeps its transition time. Clients of upstream match on the messages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::condition::{Status, find, reasons::Extension as Reason, types::Extension as Type};
use olm_api::{
    BundleMetadata, ClusterExtensionInstallStatus, ClusterExtensionStatus, PendingPlan, RevisionStatus,
    RolloutStatus,
};
use olm_resolve::SupportAnswer;
use olm_text::cut;
use olm_text::name::{BundleName, CatalogName, ImageText};
use olm_version::BundleVersion;

use crate::catalogs::{self, UnreadCatalogs};
use crate::condition::{self, NewCondition};
use crate::rolled_back::{self, RolledBack};
use crate::summary::{self, State, Summary};
use crate::support;
use crate::upgrade::{self, Upgrade};

/// Maximum length of a catalog's deprecation message, in bytes.
const DEPRECATION_LIMIT: usize = 1024;
/// Appended to the message of `Ready` while the extension is ready and no version can be resolved.
const UNRESOLVED_NOTE: &str = " Other versions cannot be resolved at the moment; see Progressing.";
/// Appended to the message of `Ready` while the former content of a catalog is in use.
const FORMER_CONTENT_NOTE: &str =
    " Other versions are resolved from former content of a catalog; see CatalogsDegraded.";
const NO_CATALOG_DATA: &str = "deprecation status unknown: catalog data unavailable";

/// Outcome of a reconcile, from which the status is computed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// State of the revisions on the cluster.
    pub revisions: Revisions,
    /// Progress of the reconcile itself.
    pub progress: Progress,
    /// Deprecations of the package; `None` if no catalog was readable.
    pub deprecations: Option<Deprecations>,
    /// Upgrades that the spec holds back.
    pub upgrade: Upgrade,
    /// Support of the installed version; `None` if the catalog that counts was not read.
    pub support: Option<SupportAnswer>,
    /// Catalogs whose present content was not read; `None` if the reconcile did not read catalogs.
    pub catalogs: Option<UnreadCatalogs>,
    /// Change that waits for its approval, for a window or for the installed operator.
    pub pending: Option<PendingPlan>,
    /// State of the windows; `None` without windows.
    pub windows: Option<RolloutStatus>,
    /// Rollback that holds, if any.
    pub rolled_back: Option<RolledBack>,
}

/// The extension's active revisions.
#[derive(Clone, Debug)]
pub enum Revisions {
    /// The revisions were read.
    Known {
        /// The newest revision that has rolled out.
        installed: Option<RevisionView>,
        /// The revisions that have not rolled out, oldest first.
        rolling_out: Vec<RevisionView>,
    },
    /// The revisions could not be read; holds the error.
    Unreadable(String),
}

/// A revision as the status shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionView {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Name of the bundle of the revision.
    pub bundle: BundleName,
    /// Version of the bundle.
    pub version: BundleVersion,
    /// Image reference of the bundle.
    pub image: ImageText,
    /// The catalog of the bundle, if known.
    pub catalog: Option<CatalogName>,
    /// The previous catalog of the extension, if this revision moved it to another one.
    pub moved_from: Option<CatalogName>,
    /// Install namespace that the revision itself has.
    pub install_namespace: Option<String>,
    /// Conditions of the revision, to be mirrored.
    pub conditions: Vec<Condition>,
}

/// Progress of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Every step succeeded; the conditions of the revisions decide.
    Mirrored,
    /// A transient error; the controller retries.
    Retrying(String),
    /// The resolution chose no bundle: the catalogs are unavailable or have none that fits. The controller retries.
    Unresolved(String),
    /// A terminal error until the extension or its bundle changes.
    Blocked(String),
    /// `spec.config` does not fit the bundle.
    InvalidConfiguration(String),
    /// The extension is being deleted; the text names what remains.
    Removing(String),
    /// The pending plan waits for its approval.
    AwaitingApproval(String),
    /// The pending plan waits for a window.
    AwaitingWindow(String),
    /// The installed operator holds the pending plan.
    HeldByOperator(String),
    /// The extension is paused: only its revisions were read.
    Paused(String),
    /// A failed upgrade was rolled back, and is not tried again before something changes.
    RolledBack(String),
}

impl Progress {
    /// Returns true if the next step waits for an approval, a window or the installed operator.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(
            self,
            Self::AwaitingApproval(_) | Self::AwaitingWindow(_) | Self::HeldByOperator(_)
        )
    }
}

/// Deprecation messages that concern this extension, in the catalog's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecations {
    /// Messages about the package.
    pub package: Vec<String>,
    /// Messages about the channels that the spec names.
    pub channels: Vec<String>,
    /// Messages about the installed bundle.
    pub bundles: Vec<String>,
}

/// Returns the status of an extension of `generation` at `now`, given its `old` status.
#[must_use]
pub fn extension(
    old: &ClusterExtensionStatus,
    outcome: &Outcome,
    generation: i64,
    now: &Time,
) -> ClusterExtensionStatus {
    let mut conditions = Conditions {
        list: old.conditions.clone().unwrap_or_default(),
        generation,
        now,
    };
    let mut status = ClusterExtensionStatus {
        observed_generation: Some(generation),
        conditions: None,
        install: None,
        active_revisions: None,
        pending_plan: outcome.pending.clone(),
        rollout: outcome.windows.clone(),
        upgrade: None,
    };
    match &outcome.revisions {
        Revisions::Unreadable(error) => {
            conditions.put(Type::Installed, Status::Unknown, Reason::Failed, error);
            if matches!(outcome.progress, Progress::Paused(_)) {
                report_progress(&mut conditions, &outcome.progress, None, &[]);
            } else {
                conditions.put(
                    Type::Progressing,
                    Status::True,
                    Reason::Retrying,
                    "retrying to get installed bundle",
                );
            }
        }
        Revisions::Known {
            installed,
            rolling_out,
        } => {
            report_installed(&mut conditions, installed.as_ref(), rolling_out);
            status.install = installed.as_ref().map(install_status);
            status.active_revisions = active(installed.as_ref(), rolling_out);
            if matches!(outcome.progress, Progress::Removing(_)) && status.active_revisions.is_none() {
                // They are being deleted. That there were some tells the removal that no release of Helm is left to take over.
                status.active_revisions.clone_from(&old.active_revisions);
            }
            mirror_available(&mut conditions, installed.as_ref());
            mirror_watches(&mut conditions, installed.as_ref(), rolling_out);
            report_progress(
                &mut conditions,
                &outcome.progress,
                installed.as_ref(),
                rolling_out,
            );
        }
    }
    let has_bundle = matches!(
        &outcome.revisions,
        Revisions::Known {
            installed: Some(_),
            ..
        }
    );
    let paused = matches!(outcome.progress, Progress::Paused(_));
    // A paused extension reads no catalog: what the catalogs said last stays, under the generation of that time.
    if !paused || find(&conditions.list, Type::Deprecated).is_none() {
        report_deprecations(&mut conditions, outcome.deprecations.as_ref(), has_bundle);
    }
    if paused {
        status.upgrade.clone_from(&old.upgrade);
    } else {
        status.upgrade = upgrade::available(&outcome.upgrade, outcome.pending.as_ref());
        upgrade::put(&mut conditions.list, &outcome.upgrade, generation, now);
        support::put(&mut conditions.list, outcome.support.as_ref(), generation, now);
        catalogs::put(&mut conditions.list, outcome.catalogs.as_ref(), generation, now);
        rolled_back::put(
            &mut conditions.list,
            outcome.rolled_back.as_ref(),
            generation,
            now,
        );
    }
    let rest = Rest::of(outcome, old, generation);
    let summary = summarise(&conditions.list, &outcome.revisions, rest.as_ref());
    summary::put(&mut conditions.list, Some(&summary), generation, now);
    status.conditions = Some(conditions.list);
    status
}

/// Returns true if `old` reports this generation of the spec as carried out. Later failures to read catalogs do not
/// undo that.
fn at_rest(old: &ClusterExtensionStatus, generation: i64) -> bool {
    let conditions = old.conditions();
    let ready = find(conditions, summary::READY);
    ready.is_some_and(|ready| ready.observed_generation == Some(generation))
        && find(conditions, summary::RECONCILING).is_none()
        && find(conditions, summary::STALLED).is_none()
}

/// Reason for which an extension is at rest although its last reconcile did not end at the desired revision.
enum Rest {
    /// The resolution of other versions fails, and nothing else.
    Unresolved,
    /// The spec says that another bundle waits; the text names its version and the condition with the next step.
    Waiting(String),
}

impl Rest {
    fn of(outcome: &Outcome, old: &ClusterExtensionStatus, generation: i64) -> Option<Self> {
        let Revisions::Known {
            installed: Some(installed),
            ..
        } = &outcome.revisions
        else {
            return None;
        };
        match (&outcome.progress, &outcome.pending) {
            (Progress::Unresolved(_), _) if at_rest(old, generation) => Some(Self::Unresolved),
            // A changed configuration of the installed bundle is not carried out yet.
            (progress, Some(pending)) if progress.is_waiting() && pending.bundle != metadata(installed) => {
                Some(Self::Waiting(format!(
                    " Version {} waits; see Progressing.",
                    pending.bundle.version
                )))
            }
            _ => None,
        }
    }
}

/// Derives the summary for generic tools from the other conditions.
fn summarise(conditions: &[Condition], revisions: &Revisions, rest: Option<&Rest>) -> Summary {
    let Some(progressing) = find(conditions, Type::Progressing) else {
        return Summary {
            state: State::Reconciling,
            reason: Reason::Absent.into(),
            message: "Nothing has been done yet".to_owned(),
        };
    };
    let (installed, rolling_out) = match revisions {
        Revisions::Unreadable(_) => {
            return match find(conditions, Type::Installed) {
                Some(installed) if progressing.status != Status::False => {
                    Summary::of(State::Unknown, installed)
                }
                // A paused extension reads nothing more.
                _ => Summary::of(State::Stalled, progressing),
            };
        }
        Revisions::Known {
            installed,
            rolling_out,
        } => (installed.as_ref(), rolling_out),
    };
    match (
        Status::read(&progressing.status),
        installed,
        find(conditions, Type::Available),
    ) {
        (Status::False, _, _) => Summary::of(State::Stalled, progressing),
        (Status::True, Some(installed), Some(available))
            if rolling_out.is_empty()
                && (rest.is_some()
                    || progressing.reason == Reason::Succeeded
                    // The revision rolled out before and reports it again because its workload is not ready.
                    || (progressing.reason == Reason::RollingOut && available.status != Status::True)) =>
        {
            if available.status != Status::True {
                return Summary::of(State::Unavailable, available);
            }
            let mut message = ready_message(installed);
            match rest {
                Some(Rest::Unresolved) => message.push_str(UNRESOLVED_NOTE),
                Some(Rest::Waiting(note)) => message.push_str(note),
                None => {}
            }
            if find(conditions, Type::RolledBack).is_some() {
                message.push_str(rolled_back::NOTE);
            }
            if !matches!(rest, Some(Rest::Unresolved))
                && find(conditions, Type::CatalogsDegraded)
                    .is_some_and(|condition| condition.reason == catalogs::FORMER_CONTENT)
            {
                message.push_str(FORMER_CONTENT_NOTE);
            }
            Summary {
                state: State::Ready,
                reason: Reason::Succeeded.into(),
                message,
            }
        }
        _ => {
            let mut summary = Summary::of(State::Reconciling, progressing);
            if let Some(text) = rolling_out.last().and_then(move_note) {
                summary.message.push(' ');
                summary.message.push_str(&text);
            }
            summary
        }
    }
}

fn ready_message(installed: &RevisionView) -> String {
    let mut text = format!("Version {} is installed and available", installed.version);
    if let Some(catalog) = &installed.catalog {
        text.push_str(", from catalog \"");
        text.push_str(catalog);
        text.push('"');
    }
    text.push('.');
    if let Some(note) = move_note(installed) {
        text.push(' ');
        text.push_str(&note);
    }
    text
}

/// Sentence about the move of the extension to another catalog and its reason.
fn move_note(revision: &RevisionView) -> Option<String> {
    let (from, to) = (revision.moved_from.as_ref()?, revision.catalog.as_ref()?);
    Some(format!(
        "It moved to catalog \"{to}\" because catalog \"{from}\" of the installed bundle was deleted, disabled or \
         no longer selected."
    ))
}

/// Returns true if the statuses differ in nothing but transition times.
#[must_use]
pub fn same(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> bool {
    old.install == new.install
        && old.pending_plan == new.pending_plan
        && old.rollout == new.rollout
        && old.upgrade == new.upgrade
        && old.observed_generation == new.observed_generation
        && same_revisions(old.active_revisions.as_deref(), new.active_revisions.as_deref())
        && same_conditions(old.conditions(), new.conditions())
}

fn same_revisions(a: Option<&[RevisionStatus]>, b: Option<&[RevisionStatus]>) -> bool {
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    let none = Vec::new();
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            a.name == b.name
                && same_conditions(
                    a.conditions.as_ref().unwrap_or(&none),
                    b.conditions.as_ref().unwrap_or(&none),
                )
        })
}

fn same_conditions(a: &[Condition], b: &[Condition]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| condition::same_ignoring_time(a, b))
}

struct Conditions<'a> {
    list: Vec<Condition>,
    generation: i64,
    now: &'a Time,
}

impl Conditions<'_> {
    fn put(&mut self, type_: Type, status: Status, reason: Reason, message: &str) {
        self.set(type_.into(), status, reason.into(), message);
    }

    fn set(&mut self, type_: String, status: Status, reason: String, message: &str) {
        let new = NewCondition {
            type_,
            status,
            reason,
            message: message.to_owned(),
            observed_generation: self.generation,
        };
        condition::set(&mut self.list, new, self.now);
    }

    /// Copies `source` to the extension, under the extension's generation.
    fn mirror(&mut self, source: &Condition) {
        self.set(
            source.type_.clone(),
            Status::read(&source.status),
            source.reason.clone(),
            &source.message,
        );
    }
}

fn of_revision(revision: &RevisionView, type_: Type) -> Option<&Condition> {
    find(&revision.conditions, type_)
}

fn report_installed(
    conditions: &mut Conditions<'_>,
    installed: Option<&RevisionView>,
    rolling_out: &[RevisionView],
) {
    if let Some(revision) = installed {
        let message = format!("Installed bundle {} successfully", revision.image);
        return conditions.put(Type::Installed, Status::True, Reason::Succeeded, &message);
    }
    let retrying = |newest: &RevisionView| {
        of_revision(newest, Type::Progressing).is_some_and(|c| c.reason == Reason::Retrying)
    };
    let reason = match rolling_out.last() {
        Some(newest) if !retrying(newest) => Reason::Absent,
        _ => Reason::Failed,
    };
    conditions.put(Type::Installed, Status::False, reason, "No bundle installed");
}

fn install_status(revision: &RevisionView) -> ClusterExtensionInstallStatus {
    ClusterExtensionInstallStatus {
        bundle: metadata(revision),
        catalog: revision.catalog.as_ref().map(ToString::to_string),
        moved_from: revision.moved_from.as_ref().map(ToString::to_string),
        namespace: revision.install_namespace.clone(),
        warning: None,
    }
}

fn metadata(revision: &RevisionView) -> BundleMetadata {
    BundleMetadata {
        name: revision.bundle.to_string(),
        version: revision.version.to_string(),
        release: revision.version.release().map(str::to_owned),
    }
}

/// Lists the installed revision by name only, then the revisions that roll out, with their conditions.
fn active(installed: Option<&RevisionView>, rolling_out: &[RevisionView]) -> Option<Vec<RevisionStatus>> {
    let mut list: Vec<RevisionStatus> = Vec::new();
    if let Some(revision) = installed {
        list.push(RevisionStatus {
            name: revision.name.clone(),
            conditions: None,
        });
    }
    for revision in rolling_out {
        let progress: Vec<Condition> = [Type::Available, Type::Progressing]
            .into_iter()
            .filter_map(|type_| of_revision(revision, type_).cloned())
            .collect();
        let conditions = (!progress.is_empty()).then_some(progress);
        list.push(RevisionStatus {
            name: revision.name.clone(),
            conditions,
        });
    }
    (!list.is_empty()).then_some(list)
}

fn mirror_available(conditions: &mut Conditions<'_>, installed: Option<&RevisionView>) {
    match installed {
        Some(revision) => {
            if let Some(source) = of_revision(revision, Type::Available) {
                conditions.mirror(source);
            }
        }
        // Without an installed bundle availability is undefined, and an old condition would mislead.
        None => conditions.list.retain(|c| c.type_ != Type::Available),
    }
}

/// Mirrors `WatchFailing` from the newest revision that has it: revisions share most of their objects.
fn mirror_watches(
    conditions: &mut Conditions<'_>,
    installed: Option<&RevisionView>,
    rolling_out: &[RevisionView],
) {
    let mut newest_first = rolling_out.iter().rev().chain(installed);
    match newest_first.find_map(|revision| of_revision(revision, Type::WatchFailing)) {
        Some(source) => conditions.mirror(source),
        None => conditions.list.retain(|c| c.type_ != Type::WatchFailing),
    }
}

fn report_progress(
    conditions: &mut Conditions<'_>,
    progress: &Progress,
    installed: Option<&RevisionView>,
    rolling_out: &[RevisionView],
) {
    match progress {
        Progress::Retrying(message) | Progress::Unresolved(message) | Progress::Removing(message) => {
            conditions.put(Type::Progressing, Status::True, Reason::Retrying, message);
        }
        Progress::Blocked(message) => {
            conditions.put(Type::Progressing, Status::False, Reason::Blocked, message);
        }
        Progress::InvalidConfiguration(message) => {
            conditions.put(
                Type::Progressing,
                Status::False,
                Reason::InvalidConfiguration,
                message,
            );
        }
        Progress::AwaitingApproval(message) => {
            conditions.put(Type::Progressing, Status::True, Reason::AwaitingApproval, message);
        }
        Progress::AwaitingWindow(message) => {
            conditions.put(Type::Progressing, Status::True, Reason::AwaitingWindow, message);
        }
        Progress::HeldByOperator(message) => {
            conditions.put(Type::Progressing, Status::True, Reason::HeldByOperator, message);
        }
        Progress::Paused(message) => {
            conditions.put(Type::Progressing, Status::False, Reason::Paused, message);
        }
        Progress::RolledBack(message) => {
            conditions.put(Type::Progressing, Status::False, Reason::RolledBack, message);
        }
        Progress::Mirrored => match rolling_out.last().or(installed) {
            None => {}
            Some(newest) => match of_revision(newest, Type::Progressing) {
                Some(source) if source.reason != Reason::Paused => conditions.mirror(source),
                // The revision is new and has no conditions yet, or it has just been resumed.
                _ => conditions.put(
                    Type::Progressing,
                    Status::True,
                    Reason::RollingOut,
                    &format!("Revision {} is rolling out.", newest.version),
                ),
            },
        },
    }
}

fn report_deprecations(
    conditions: &mut Conditions<'_>,
    deprecations: Option<&Deprecations>,
    has_bundle: bool,
) {
    let Some(deprecations) = deprecations else {
        for type_ in [Type::Deprecated, Type::PackageDeprecated, Type::ChannelDeprecated] {
            conditions.put(
                type_,
                Status::Unknown,
                Reason::DeprecationStatusUnknown,
                NO_CATALOG_DATA,
            );
        }
        if has_bundle {
            conditions.put(
                Type::BundleDeprecated,
                Status::Unknown,
                Reason::DeprecationStatusUnknown,
                NO_CATALOG_DATA,
            );
        } else {
            conditions.put(
                Type::BundleDeprecated,
                Status::Unknown,
                Reason::Absent,
                "no bundle installed yet",
            );
        }
        return;
    };
    let none = Vec::new();
    // Without an installed bundle no bundle deprecation applies.
    let bundles = if has_bundle { &deprecations.bundles } else { &none };
    let all: Vec<String> = deprecations
        .package
        .iter()
        .chain(&deprecations.channels)
        .chain(bundles)
        .cloned()
        .collect();
    report_deprecated(conditions, Type::Deprecated, &all, "not deprecated");
    report_deprecated(
        conditions,
        Type::PackageDeprecated,
        &deprecations.package,
        "package not deprecated",
    );
    report_deprecated(
        conditions,
        Type::ChannelDeprecated,
        &deprecations.channels,
        "channel not deprecated",
    );
    if has_bundle {
        report_deprecated(
            conditions,
            Type::BundleDeprecated,
            bundles,
            "bundle not deprecated",
        );
    } else {
        conditions.put(
            Type::BundleDeprecated,
            Status::Unknown,
            Reason::Absent,
            "no bundle installed yet",
        );
    }
}

fn report_deprecated(conditions: &mut Conditions<'_>, type_: Type, messages: &[String], none: &str) {
    if messages.is_empty() {
        conditions.put(type_, Status::False, Reason::NotDeprecated, none);
    } else {
        let shown: Vec<_> = messages
            .iter()
            .map(|message| cut(message, DEPRECATION_LIMIT))
            .collect();
        conditions.put(type_, Status::True, Reason::Deprecated, &shown.join("\n"));
    }
}

#[cfg(test)]
mod tests;
