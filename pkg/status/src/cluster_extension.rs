//! From what one reconcile of a ClusterExtension found and did to its whole status.
//!
//! Invariants: the status depends on nothing but the arguments; every condition carries the generation it speaks of; a condition
//! that still says the same keeps its transition time. Texts are those clients of upstream match on.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::{BundleMetadata, ClusterExtensionInstallStatus, ClusterExtensionStatus, RevisionStatus};

use crate::condition::{self, NewCondition};

const INSTALLED: &str = "Installed";
const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const RETRYING: &str = "Retrying";
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
    status.conditions = Some(conditions.list);
    status
}

/// Whether writing `new` over `old` would tell a reader anything; transition times alone do not.
#[must_use]
pub fn same(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> bool {
    let none = Vec::new();
    old.install == new.install
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

fn report_progress(
    conditions: &mut Conditions<'_>,
    progress: &Progress,
    installed: Option<&RevisionView>,
    rolling_out: &[RevisionView],
) {
    match progress {
        Progress::Retrying(message) | Progress::Removing(message) => {
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
        conditions.put(type_, "True", "Deprecated", &messages.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: Some(1),
            last_transition_time: time("2026-01-01T00:00:00Z"),
        }
    }

    fn revision(name: &str, version: &str, conditions: Vec<Condition>) -> RevisionView {
        RevisionView {
            name: name.into(),
            bundle: format!("argocd-operator.v{version}"),
            version: version.into(),
            release: None,
            image: format!("registry.example/argocd:{version}"),
            conditions,
        }
    }

    fn rolled_out(name: &str, version: &str) -> RevisionView {
        let text = format!("Revision {version} has rolled out.");
        revision(
            name,
            version,
            vec![
                condition("Progressing", "True", "Succeeded", &text),
                condition(
                    "Available",
                    "True",
                    "ProbesSucceeded",
                    "Objects are available and pass all probes.",
                ),
                condition(
                    "Succeeded",
                    "True",
                    "Succeeded",
                    "Revision succeeded rolling out.",
                ),
            ],
        )
    }

    fn told(old: &ClusterExtensionStatus, outcome: &Outcome) -> ClusterExtensionStatus {
        extension(old, outcome, 7, &time("2026-02-02T00:00:00Z"))
    }

    /// `Type=Status/Reason message`, for all conditions.
    fn lines(status: &ClusterExtensionStatus) -> Vec<String> {
        let line = |c: &Condition| {
            assert_eq!(c.observed_generation, Some(7), "{c:?}");
            format!("{}={}/{} {}", c.type_, c.status, c.reason, c.message)
        };
        status.conditions.iter().flatten().map(line).collect()
    }

    fn has(status: &ClusterExtensionStatus, line: &str) {
        let lines = lines(status);
        assert!(lines.iter().any(|l| l == line), "{line} not in {lines:#?}");
    }

    fn known(installed: Option<RevisionView>, rolling_out: Vec<RevisionView>, progress: Progress) -> Outcome {
        Outcome {
            revisions: Revisions::Known {
                installed,
                rolling_out,
            },
            progress,
            deprecations: Some(Deprecations::default()),
        }
    }

    #[test]
    fn installed() {
        let outcome = known(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
        let status = told(&ClusterExtensionStatus::default(), &outcome);
        assert_eq!(
            lines(&status),
            [
                "Installed=True/Succeeded Installed bundle registry.example/argocd:1.0.0 successfully",
                "Available=True/ProbesSucceeded Objects are available and pass all probes.",
                "Progressing=True/Succeeded Revision 1.0.0 has rolled out.",
                "Deprecated=False/NotDeprecated not deprecated",
                "PackageDeprecated=False/NotDeprecated package not deprecated",
                "ChannelDeprecated=False/NotDeprecated channel not deprecated",
                "BundleDeprecated=False/NotDeprecated bundle not deprecated",
            ]
        );
        let bundle = status.install.unwrap().bundle;
        assert_eq!(
            (bundle.name.as_str(), bundle.version.as_str()),
            ("argocd-operator.v1.0.0", "1.0.0")
        );
        let active = status.active_revisions.unwrap();
        assert_eq!(
            active,
            [RevisionStatus {
                name: "a-1".into(),
                conditions: None
            }]
        );
    }

    #[test]
    fn first_revision_just_made() {
        let outcome = known(None, vec![revision("a-1", "1.0.0", vec![])], Progress::Mirrored);
        let status = told(&ClusterExtensionStatus::default(), &outcome);
        has(&status, "Installed=False/Absent No bundle installed");
        has(
            &status,
            "Progressing=True/RollingOut Revision 1.0.0 is rolling out.",
        );
        has(&status, "BundleDeprecated=Unknown/Absent no bundle installed yet");
        assert_eq!(status.install, None);
    }

    #[test]
    fn a_revision_that_retries_makes_the_installation_a_failure() {
        let retrying = vec![condition("Progressing", "True", "Retrying", "collision")];
        let outcome = known(None, vec![revision("a-1", "1.0.0", retrying)], Progress::Mirrored);
        let status = told(&ClusterExtensionStatus::default(), &outcome);
        has(&status, "Installed=False/Failed No bundle installed");
        has(&status, "Progressing=True/Retrying collision");
    }

    #[test]
    fn an_upgrade_on_its_way_shows_both_revisions() {
        let rolling = vec![
            condition(
                "Progressing",
                "True",
                "RollingOut",
                "Revision 1.0.1 is rolling out.",
            ),
            condition(
                "Available",
                "False",
                "ProbeFailure",
                "Object Deployment.apps/v1 n/d: not ready",
            ),
        ];
        let outcome = known(
            Some(rolled_out("a-1", "1.0.0")),
            vec![revision("a-2", "1.0.1", rolling.clone())],
            Progress::Mirrored,
        );
        let status = told(&ClusterExtensionStatus::default(), &outcome);
        has(
            &status,
            "Progressing=True/RollingOut Revision 1.0.1 is rolling out.",
        );
        // Available is about what is installed.
        has(
            &status,
            "Available=True/ProbesSucceeded Objects are available and pass all probes.",
        );
        let active = status.active_revisions.unwrap();
        assert_eq!(
            active[0],
            RevisionStatus {
                name: "a-1".into(),
                conditions: None
            }
        );
        let both = vec![rolling[1].clone(), rolling[0].clone()];
        assert_eq!(
            active[1],
            RevisionStatus {
                name: "a-2".into(),
                conditions: Some(both)
            }
        );
    }

    #[test]
    fn what_is_in_the_way() {
        for (progress, line) in [
            (
                Progress::Retrying("no bundles found".into()),
                "Progressing=True/Retrying no bundles found",
            ),
            (Progress::Blocked("bad".into()), "Progressing=False/Blocked bad"),
            (
                Progress::InvalidConfiguration("f".into()),
                "Progressing=False/InvalidConfiguration f",
            ),
            (Progress::Removing("a-1".into()), "Progressing=True/Retrying a-1"),
        ] {
            let outcome = known(None, vec![], progress);
            let status = told(&ClusterExtensionStatus::default(), &outcome);
            has(&status, line);
            has(&status, "Installed=False/Failed No bundle installed");
        }
    }

    #[test]
    fn unreadable_revisions() {
        let outcome = Outcome {
            revisions: Revisions::Unreadable("boom".into()),
            progress: Progress::Mirrored,
            deprecations: None,
        };
        let old = told(
            &ClusterExtensionStatus::default(),
            &known(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored),
        );
        let status = told(&old, &outcome);
        has(&status, "Installed=Unknown/Failed boom");
        has(
            &status,
            "Progressing=True/Retrying retrying to get installed bundle",
        );
        assert_eq!(status.install, None);
    }

    #[test]
    fn deprecations() {
        let mut outcome = known(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
        outcome.deprecations = Some(Deprecations {
            package: vec!["package gone".into()],
            channels: vec!["alpha gone".into(), "beta gone".into()],
            bundles: vec!["bundle gone".into()],
        });
        let status = told(&ClusterExtensionStatus::default(), &outcome);
        has(
            &status,
            "Deprecated=True/Deprecated package gone\nalpha gone\nbeta gone\nbundle gone",
        );
        has(&status, "PackageDeprecated=True/Deprecated package gone");
        has(&status, "ChannelDeprecated=True/Deprecated alpha gone\nbeta gone");
        has(&status, "BundleDeprecated=True/Deprecated bundle gone");

        outcome.deprecations = None;
        let unknown = "deprecation status unknown: catalog data unavailable";
        let status = told(&status, &outcome);
        for type_ in [
            "Deprecated",
            "PackageDeprecated",
            "ChannelDeprecated",
            "BundleDeprecated",
        ] {
            has(
                &status,
                &format!("{type_}=Unknown/DeprecationStatusUnknown {unknown}"),
            );
        }
        let outcome = Outcome {
            deprecations: None,
            ..known(None, vec![], Progress::Blocked("x".into()))
        };
        has(
            &told(&status, &outcome),
            "BundleDeprecated=Unknown/Absent no bundle installed yet",
        );
    }

    #[test]
    fn availability_goes_with_the_installation() {
        let old = told(
            &ClusterExtensionStatus::default(),
            &known(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored),
        );
        let status = told(&old, &known(None, vec![], Progress::Retrying("x".into())));
        assert!(!lines(&status).iter().any(|line| line.starts_with("Available")));
    }

    #[test]
    fn saying_the_same_again_is_no_change() {
        let outcome = known(Some(rolled_out("a-1", "1.0.0")), vec![], Progress::Mirrored);
        let first = told(&ClusterExtensionStatus::default(), &outcome);
        let later = extension(&first, &outcome, 7, &time("2026-03-03T00:00:00Z"));
        assert!(same(&first, &later));
        assert_eq!(first, later, "nothing flipped, so no time moved");
        let next = extension(&first, &outcome, 8, &time("2026-03-03T00:00:00Z"));
        assert!(!same(&first, &next), "a new generation is news");
    }
}
