//! From what one reconcile of a ClusterExtension found and did to its whole status.
//!
//! Invariants: the status depends on nothing but the arguments; every condition carries the generation it speaks of; a condition
//! that still says the same keeps its transition time. Texts are those clients of upstream match on.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::{BundleMetadata, ClusterExtensionInstallStatus, ClusterExtensionStatus, RevisionStatus};
use olm_text::cut;

use crate::catalogs::{self, Catalogs};
use crate::condition::{self, NewCondition};
use crate::summary::{self, State, Summary};
use crate::unwatched::WATCH_FAILING;
use crate::upgrade::{self, Upgrade};

const INSTALLED: &str = "Installed";
const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const RETRYING: &str = "Retrying";
const SUCCEEDED: &str = "Succeeded";
/// Longest message of a catalog about one deprecation, in bytes.
const DEPRECATION_LIMIT: usize = 1024;
/// What follows when an extension is ready although no version can be chosen.
const UNSOUGHT: &str = " Other versions cannot be looked for at the moment: Progressing says why.";
/// What follows when an extension is ready and former content of a catalog stands in.
const FORMER: &str =
    " Other versions are looked for in former content of a catalog: CatalogsDegraded says why.";
const UNKNOWN_CATALOG: &str = "deprecation status unknown: catalog data unavailable";

/// Everything one reconcile learnt, ready to be told.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What is on the cluster.
    pub revisions: Revisions,
    /// How far the reconcile itself came.
    pub progress: Progress,
    /// What the catalogs say about the package; `None` when no catalog could be asked.
    pub deprecations: Option<Deprecations>,
    /// Whether the spec holds a successor back.
    pub upgrade: Upgrade,
    /// Catalogs whose present content was not read; `None` if the catalogs were not looked at.
    pub catalogs: Option<Catalogs>,
}

/// The extension's revisions, as far as they count.
#[derive(Clone, Debug)]
pub enum Revisions {
    /// They were read.
    Known {
        /// The newest one that has rolled out.
        installed: Option<RevisionView>,
        /// Those that have not, oldest first.
        rolling_out: Vec<RevisionView>,
    },
    /// They could not be read; the text says why.
    Unreadable(String),
}

/// A revision as the status shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionView {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Name of the bundle it brings.
    pub bundle: String,
    /// Version of the bundle.
    pub version: String,
    /// Release of the bundle, where the bundle has one.
    pub release: Option<String>,
    /// Image reference of the bundle.
    pub image: String,
    /// The catalog it came from, where that is known.
    pub catalog: Option<String>,
    /// The catalog that the extension was installed from before, when this revision moved it to another.
    pub moved_from: Option<String>,
    /// Its own conditions, to be mirrored.
    pub conditions: Vec<Condition>,
}

/// How far the reconcile itself came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All steps succeeded; the revisions tell the rest.
    Mirrored,
    /// Something is in the way, the controller tries again by itself.
    Retrying(String),
    /// Which bundle is wanted cannot be told at the moment: the catalogs are away, or have none that fits. Tried again.
    Unresolved(String),
    /// Only a change of the extension or of its bundle helps.
    Blocked(String),
    /// `spec.config` does not fit the bundle.
    InvalidConfiguration(String),
    /// The extension is being deleted; the text says what is still there.
    Removing(String),
}

/// The deprecation messages that concern this extension, in the catalog's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecations {
    /// Of the package.
    pub package: Vec<String>,
    /// Of the channels the extension names.
    pub channels: Vec<String>,
    /// Of the installed bundle.
    pub bundles: Vec<String>,
}

/// The status of an extension of `generation` at `now`, given the status it had.
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
    };
    match &outcome.revisions {
        Revisions::Unreadable(why) => {
            conditions.put(INSTALLED, "Unknown", "Failed", why);
            conditions.put(PROGRESSING, "True", RETRYING, "retrying to get installed bundle");
        }
        Revisions::Known {
            installed,
            rolling_out,
        } => {
            report_installed(&mut conditions, installed.as_ref(), rolling_out);
            status.install = installed.as_ref().map(install_status);
            status.active_revisions = active(installed.as_ref(), rolling_out);
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
    report_deprecations(&mut conditions, outcome.deprecations.as_ref(), has_bundle);
    upgrade::put(&mut conditions.list, &outcome.upgrade, generation, now);
    catalogs::put(&mut conditions.list, outcome.catalogs.as_ref(), generation, now);
    let unsought = matches!(outcome.progress, Progress::Unresolved(_)) && at_rest(old, generation);
    let told = summarise(&conditions.list, &outcome.revisions, unsought);
    summary::put(&mut conditions.list, Some(&told), generation, now);
    status.conditions = Some(conditions.list);
    status
}

/// Whether `old` says that this generation of the spec has been carried out: whatever the catalogs say since, or do not say, what
/// is there is what was asked for.
fn at_rest(old: &ClusterExtensionStatus, generation: i64) -> bool {
    let conditions = old.conditions.as_deref().unwrap_or_default();
    let ready = summary::find(conditions, summary::READY);
    ready.is_some_and(|ready| ready.observed_generation == Some(generation))
        && summary::find(conditions, summary::RECONCILING).is_none()
        && summary::find(conditions, summary::STALLED).is_none()
}

/// What tools read, from the conditions that people read: there is only one truth. `unsought`: the extension is at rest, and only
/// looking for another version does not succeed.
fn summarise(conditions: &[Condition], revisions: &Revisions, unsought: bool) -> Summary {
    let find = |type_: &str| summary::find(conditions, type_);
    let Some(progressing) = find(PROGRESSING) else {
        return Summary {
            state: State::Working,
            reason: "Absent".to_owned(),
            message: "Nothing has been done yet".to_owned(),
        };
    };
    let (installed, rolling_out) = match revisions {
        Revisions::Unreadable(_) => {
            return Summary::of(State::Unknown, find(INSTALLED).unwrap_or(progressing));
        }
        Revisions::Known {
            installed,
            rolling_out,
        } => (installed.as_ref(), rolling_out),
    };
    match (progressing.status.as_str(), installed, find(AVAILABLE)) {
        ("False", _, _) => Summary::of(State::Stalled, progressing),
        ("True", Some(installed), Some(available))
            if rolling_out.is_empty()
                && (unsought
                    || progressing.reason == "Succeeded"
                    // It did roll out once, and says so again only because its workload is not ready.
                    || (progressing.reason == "RollingOut" && available.status != "True")) =>
        {
            if available.status != "True" {
                return Summary::of(State::Impaired, available);
            }
            let mut message = ready(installed);
            if unsought {
                message.push_str(UNSOUGHT);
            } else if find(catalogs::TYPE).is_some_and(|told| told.reason == catalogs::FORMER_CONTENT) {
                message.push_str(FORMER);
            }
            Summary {
                state: State::Ready,
                reason: SUCCEEDED.to_owned(),
                message,
            }
        }
        _ => {
            let mut summary = Summary::of(State::Working, progressing);
            if let Some(text) = rolling_out.last().and_then(moved) {
                summary.message.push(' ');
                summary.message.push_str(&text);
            }
            summary
        }
    }
}

fn ready(installed: &RevisionView) -> String {
    let mut text = format!("Version {} is installed and available", installed.version);
    if let Some(catalog) = &installed.catalog {
        text.push_str(", from catalog \"");
        text.push_str(catalog);
        text.push('"');
    }
    text.push('.');
    if let Some(moved) = moved(installed) {
        text.push(' ');
        text.push_str(&moved);
    }
    text
}

/// That the revision takes the extension to another catalog, and why that may be.
fn moved(revision: &RevisionView) -> Option<String> {
    let (from, to) = (revision.moved_from.as_ref()?, revision.catalog.as_ref()?);
    Some(format!(
        "It moved to catalog \"{to}\" because catalog \"{from}\", which it was installed from, was gone, disabled or \
         no longer selected."
    ))
}

/// Whether writing `new` over `old` would tell a reader anything; transition times alone do not.
#[must_use]
pub fn same(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> bool {
    let none = Vec::new();
    old.install == new.install
        && old.observed_generation == new.observed_generation
        && same_revisions(old.active_revisions.as_deref(), new.active_revisions.as_deref())
        && same_conditions(
            old.conditions.as_ref().unwrap_or(&none),
            new.conditions.as_ref().unwrap_or(&none),
        )
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
    fn put(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let new = NewCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: self.generation,
        };
        condition::set(&mut self.list, new, self.now);
    }

    /// Shows `source` as the extension's own condition, under the extension's generation.
    fn mirror(&mut self, source: &Condition) {
        self.put(&source.type_, &source.status, &source.reason, &source.message);
    }
}

fn find<'a>(revision: &'a RevisionView, type_: &str) -> Option<&'a Condition> {
    revision.conditions.iter().find(|c| c.type_ == type_)
}

fn report_installed(
    conditions: &mut Conditions<'_>,
    installed: Option<&RevisionView>,
    rolling_out: &[RevisionView],
) {
    if let Some(revision) = installed {
        let message = format!("Installed bundle {} successfully", revision.image);
        return conditions.put(INSTALLED, "True", "Succeeded", &message);
    }
    let retrying = |newest: &RevisionView| find(newest, PROGRESSING).is_some_and(|c| c.reason == RETRYING);
    let reason = match rolling_out.last() {
        Some(newest) if !retrying(newest) => "Absent",
        _ => "Failed",
    };
    conditions.put(INSTALLED, "False", reason, "No bundle installed");
}

fn install_status(revision: &RevisionView) -> ClusterExtensionInstallStatus {
    ClusterExtensionInstallStatus {
        bundle: BundleMetadata {
            name: revision.bundle.clone(),
            version: revision.version.clone(),
            release: revision.release.clone(),
        },
        catalog: revision.catalog.clone(),
        moved_from: revision.moved_from.clone(),
        warning: None,
    }
}

/// The installed revision by name alone, then what is rolling out with the conditions that tell how far it is.
fn active(installed: Option<&RevisionView>, rolling_out: &[RevisionView]) -> Option<Vec<RevisionStatus>> {
    let mut list: Vec<RevisionStatus> = Vec::new();
    if let Some(revision) = installed {
        list.push(RevisionStatus {
            name: revision.name.clone(),
            conditions: None,
        });
    }
    for revision in rolling_out {
        let told: Vec<Condition> = [AVAILABLE, PROGRESSING]
            .iter()
            .filter_map(|t| find(revision, t).cloned())
            .collect();
        let conditions = (!told.is_empty()).then_some(told);
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
            if let Some(source) = find(revision, AVAILABLE) {
                conditions.mirror(source);
            }
        }
        // What is not installed is neither available nor unavailable; an old answer would mislead.
        None => conditions.list.retain(|c| c.type_ != AVAILABLE),
    }
}

/// Shows which objects are not watched: of the newest revision that has any, as it shares most of them with the others.
fn mirror_watches(
    conditions: &mut Conditions<'_>,
    installed: Option<&RevisionView>,
    rolling_out: &[RevisionView],
) {
    let mut newest_first = rolling_out.iter().rev().chain(installed);
    match newest_first.find_map(|revision| find(revision, WATCH_FAILING)) {
        Some(source) => conditions.mirror(source),
        None => conditions.list.retain(|c| c.type_ != WATCH_FAILING),
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
            conditions.put(PROGRESSING, "True", RETRYING, message);
        }
        Progress::Blocked(message) => conditions.put(PROGRESSING, "False", "Blocked", message),
        Progress::InvalidConfiguration(message) => {
            conditions.put(PROGRESSING, "False", "InvalidConfiguration", message);
        }
        Progress::Mirrored => match rolling_out.last().or(installed) {
            None => {}
            Some(newest) => match find(newest, PROGRESSING) {
                Some(source) => conditions.mirror(source),
                // Just made: its own controller has not spoken yet.
                None => conditions.put(
                    PROGRESSING,
                    "True",
                    "RollingOut",
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
    let Some(known) = deprecations else {
        for type_ in ["Deprecated", "PackageDeprecated", "ChannelDeprecated"] {
            conditions.put(type_, "Unknown", "DeprecationStatusUnknown", UNKNOWN_CATALOG);
        }
        if has_bundle {
            conditions.put(
                "BundleDeprecated",
                "Unknown",
                "DeprecationStatusUnknown",
                UNKNOWN_CATALOG,
            );
        } else {
            conditions.put("BundleDeprecated", "Unknown", "Absent", "no bundle installed yet");
        }
        return;
    };
    let none = Vec::new();
    // Without an installed bundle there is nothing a bundle's deprecation could be about.
    let bundles = if has_bundle { &known.bundles } else { &none };
    let all: Vec<String> = known
        .package
        .iter()
        .chain(&known.channels)
        .chain(bundles)
        .cloned()
        .collect();
    deprecated(conditions, "Deprecated", &all, "not deprecated");
    deprecated(
        conditions,
        "PackageDeprecated",
        &known.package,
        "package not deprecated",
    );
    deprecated(
        conditions,
        "ChannelDeprecated",
        &known.channels,
        "channel not deprecated",
    );
    if has_bundle {
        deprecated(conditions, "BundleDeprecated", bundles, "bundle not deprecated");
    } else {
        conditions.put("BundleDeprecated", "Unknown", "Absent", "no bundle installed yet");
    }
}

fn deprecated(conditions: &mut Conditions<'_>, type_: &str, messages: &[String], not: &str) {
    if messages.is_empty() {
        conditions.put(type_, "False", "NotDeprecated", not);
    } else {
        let shown: Vec<_> = messages
            .iter()
            .map(|message| cut(message, DEPRECATION_LIMIT))
            .collect();
        conditions.put(type_, "True", "Deprecated", &shown.join("\n"));
    }
}

#[cfg(test)]
mod tests;
