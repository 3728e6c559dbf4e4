//! Overview of an extension, what people see first: its state in a word, what is installed, what is held back, and what needs somebody.

use olm_api::ClusterExtension;
use olm_api::condition::types::Extension as Type;
use olm_api::condition::{find, find_true, is_true};
use olm_version::BundleVersion;

/// Conditions that somebody has to look at while they are true, the most urgent first.
const URGENT: [Type; 6] = [
    Type::Stalled,
    Type::RolledBack,
    Type::WatchFailing,
    Type::CatalogsDegraded,
    Type::EndOfSupport,
    Type::Deprecated,
];

/// How good a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mood {
    /// As it should be.
    Good,
    /// Neither good nor bad.
    Plain,
    /// On its way, or in doubt.
    Waiting,
    /// Wrong.
    Bad,
}

/// State of an object in one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWord {
    /// The word: `Ready`, `Deleting`, `Pending`, or the reason of a condition.
    pub word: String,
    /// How good it is.
    pub mood: Mood,
}

/// Remark about an extension for somebody who can act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Type of the condition, or `Paused` or `AwaitingApproval`.
    pub about: String,
    /// What is the case, and what helps.
    pub message: String,
}

/// Overview of an extension: what people see first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// Name of the extension.
    pub name: String,
    /// Package that it asks for; empty without a catalog source.
    pub package: String,
    /// Installed version; empty without one.
    pub version: BundleVersion,
    /// Name of the installed bundle; empty without one.
    pub bundle: String,
    /// Catalog of the installed bundle; empty if unknown.
    pub catalog: String,
    /// Install namespace: that of the spec, or the one that was created with the extension; empty if there is none yet.
    pub namespace: String,
    /// Its state.
    pub state: StateWord,
    /// Successors that the spec holds back; empty if it holds none back.
    pub held_back: String,
    /// What needs somebody, the most urgent first.
    pub remarks: Vec<Remark>,
}

impl Overview {
    /// Reads the object as the API server has it.
    #[must_use]
    pub fn new(extension: &ClusterExtension) -> Self {
        let status = extension.status.as_ref();
        let install = status.and_then(|status| status.install.as_ref());
        let bundle = install.map(|install| &install.bundle);
        let source = extension.spec.source.catalog.as_ref();
        let created = install.and_then(|install| install.namespace.as_deref());
        let held = find_true(extension.conditions(), Type::UpgradeAvailable);
        Self {
            name: extension.metadata.name.clone().unwrap_or_default(),
            package: source
                .map(|source| source.package_name.clone())
                .unwrap_or_default(),
            version: bundle
                .map(|bundle| BundleVersion::recorded(bundle.version.as_str(), bundle.release.clone()))
                .unwrap_or_default(),
            bundle: bundle.map(|bundle| bundle.name.clone()).unwrap_or_default(),
            catalog: install
                .and_then(|install| install.catalog.clone())
                .unwrap_or_default(),
            namespace: extension
                .spec
                .namespace
                .as_deref()
                .or(created)
                .unwrap_or_default()
                .to_owned(),
            state: StateWord::new(extension),
            held_back: held.map(|held| held.message.clone()).unwrap_or_default(),
            remarks: remarks(extension),
        }
    }
}

impl StateWord {
    /// Returns the state of an extension.
    #[must_use]
    pub fn new(extension: &ClusterExtension) -> Self {
        let conditions = extension.conditions();
        let state = |mood, word: &str| Self {
            word: word.to_owned(),
            mood,
        };
        let observed = extension
            .status
            .as_ref()
            .and_then(|status| status.observed_generation);
        if extension.metadata.deletion_timestamp.is_some() {
            return state(Mood::Waiting, "Deleting");
        }
        if observed.is_some() && observed != extension.metadata.generation {
            return state(Mood::Waiting, "Pending");
        }
        if is_true(conditions, Type::Ready) {
            return state(Mood::Good, Type::Ready.as_str());
        }
        if let Some(stalled) = find_true(conditions, Type::Stalled) {
            return state(Mood::Bad, &stalled.reason);
        }
        let ready = find(conditions, Type::Ready).or_else(|| find(conditions, Type::Progressing));
        state(
            Mood::Waiting,
            ready.map_or("Pending", |condition| condition.reason.as_str()),
        )
    }
}

fn remarks(extension: &ClusterExtension) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut remark = |about: &str, message: String| {
        remarks.push(Remark {
            about: about.to_owned(),
            message,
        });
    };
    let rollout = extension.spec.rollout.as_ref();
    if rollout.and_then(|rollout| rollout.paused) == Some(true) {
        remark(
            "Paused",
            "The extension is paused: nothing is resolved, applied or repaired.".to_owned(),
        );
    }
    let status = extension.status.as_ref();
    if let Some(plan) = status.and_then(|status| status.pending_plan.as_ref())
        && plan.required_by.is_some()
    {
        let approved = rollout.and_then(|rollout| rollout.approved_plan.as_ref());
        if approved != Some(&plan.digest) {
            let name = extension.metadata.name.as_deref().unwrap_or_default();
            let to = &plan.bundle.version;
            remark(
                "AwaitingApproval",
                format!("The plan for version {to} waits for an approval: kubectl olm approve {name}"),
            );
        }
    }
    for type_ in URGENT {
        if let Some(found) = find_true(extension.conditions(), type_) {
            remark(type_.as_str(), found.message.clone());
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(change: impl FnOnce(&mut Value)) -> Overview {
        let mut extension = json!({"metadata": {"name": "kite", "generation": 2}, "spec": {
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}}},
            "status": {"observedGeneration": 2, "conditions": []}});
        change(&mut extension);
        Overview::new(&serde_json::from_value(extension).unwrap())
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": format!("{type_} says"),
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn the_state_is_a_word() {
        let state = |conditions: Value| {
            let state = read(|extension| extension["status"]["conditions"] = conditions).state;
            (state.word, state.mood)
        };
        assert_eq!(
            state(json!([condition("Ready", "True", "Succeeded")])),
            ("Ready".to_owned(), Mood::Good)
        );
        let stalled = json!([
            condition("Ready", "False", "Blocked"),
            condition("Stalled", "True", "Blocked")
        ]);
        assert_eq!(state(stalled), ("Blocked".to_owned(), Mood::Bad));
        assert_eq!(
            state(json!([condition("Progressing", "True", "RollingOut")])),
            ("RollingOut".to_owned(), Mood::Waiting)
        );
        assert_eq!(state(json!([])), ("Pending".to_owned(), Mood::Waiting));
        let old = read(|extension| {
            extension["metadata"]["generation"] = json!(3);
            extension["status"]["conditions"] = json!([condition("Ready", "True", "Succeeded")]);
        });
        assert_eq!(old.state.word, "Pending");
        let deleted = read(|extension| {
            extension["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        assert_eq!(deleted.state.word, "Deleting");
    }

    #[test]
    fn what_is_installed_comes_from_the_status() {
        let overview = read(|extension| {
            extension["status"]["install"] = json!({"bundle": {"name": "kite.v1", "version": "1.0.0", "release": "2"},
                "catalog": "birds", "namespace": "kite-system"});
            extension["status"]["conditions"] =
                json!([condition("UpgradeAvailable", "True", "HeldByVersion")]);
        });
        assert_eq!(overview.package, "kite");
        assert_eq!(
            overview.version,
            BundleVersion::recorded("1.0.0", Some("2".to_owned()))
        );
        assert_eq!(
            (overview.bundle.as_str(), overview.catalog.as_str()),
            ("kite.v1", "birds")
        );
        assert_eq!(overview.namespace, "kite-system");
        assert_eq!(overview.held_back, "UpgradeAvailable says");
        assert!(overview.remarks.is_empty());
    }

    #[test]
    fn somebody_is_needed_in_the_order_of_urgency() {
        let about = |overview: Overview| -> Vec<String> {
            overview.remarks.into_iter().map(|remark| remark.about).collect()
        };
        let plan = json!({"digest": "sha256:aa", "bundle": {"name": "kite.v2", "version": "2.0.0"},
            "objects": {"created": 0, "changed": 1, "deleted": 0}, "requiredBy": ["Manual"]});
        let waiting = |extension: &mut Value| {
            extension["spec"]["rollout"] = json!({"paused": true});
            extension["status"]["pendingPlan"] = plan.clone();
            extension["status"]["conditions"] = json!([
                condition("Deprecated", "True", "Deprecated"),
                condition("Stalled", "True", "Blocked"),
                condition("EndOfSupport", "False", "Supported")
            ]);
        };
        assert_eq!(
            about(read(waiting)),
            ["Paused", "AwaitingApproval", "Stalled", "Deprecated"]
        );
        let approved = read(|extension| {
            waiting(extension);
            extension["spec"]["rollout"] = json!({"approvedPlan": "sha256:aa"});
        });
        assert_eq!(about(approved), ["Stalled", "Deprecated"]);
    }
}
