//! Invariants: rules that every accepted change obeys, whatever was delayed, lost or repeated before.
//!
//! Each submodule checks some of the rules on one change and the state before it. [`Invariants`] keeps this state.

mod deletions;
mod removal;
mod revisions;
mod rollout;
mod status;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use olm_api::keys;
use serde_json::Value;

use crate::object::{self, GROUP};
use crate::{Actor, Change, ObjectKey, Violation};

/// Name and rule of every invariant, as docs/proof.md lists them.
pub const INVARIANTS: [(&str, &str); 21] = [
    (
        "one-controller",
        "An object has at most one controller among its owners.",
    ),
    (
        "nothing-foreign-written",
        "No controller changes an object that exists and belongs to somebody else.",
    ),
    (
        "nothing-foreign-deleted",
        "No controller deletes an object that belongs to somebody else.",
    ),
    (
        "guarded-deletion",
        "Every deletion of an installed object or of a Secret names the uid and the resource version that were read.",
    ),
    (
        "newest-stays",
        "An object of the newest revision that has succeeded is absent only by the hands of others.",
    ),
    (
        "crd-with-resources",
        "No CustomResourceDefinition that holds custom resources is deleted unless its extension asks for it.",
    ),
    (
        "block-holds",
        "While an extension is being deleted with Block and its CRDs hold custom resources, no object of its newest revision that has \
         succeeded is deleted.",
    ),
    (
        "no-downgrade",
        "No revision has a lower version than the installed one, except with SelfCertified or as a rollback.",
    ),
    (
        "numbers-grow",
        "The number of a new revision is above all earlier numbers of its extension, unless the extension is being deleted.",
    ),
    (
        "archived-stays",
        "An archived revision never becomes active again.",
    ),
    (
        "ready-is-current",
        "No write makes or keeps Ready true for a generation older than the object's.",
    ),
    (
        "generations-go-forward",
        "The observed generation of a condition and of a status never falls.",
    ),
    (
        "no-secrets",
        "No content of a Secret is in a status, an event or a revision; in runs of faults on a real API server, nor in a log.",
    ),
    (
        "nothing-left",
        "No object of an extension outlives its extension, except what deletion keeps by rule.",
    ),
    (
        "needed-first",
        "What a workload needs is in an earlier phase of its revision: CRDs, accounts and their rights.",
    ),
    (
        "phases-in-order",
        "A revision applies an object only after every object of its earlier phases, and after its CRDs are established.",
    ),
    (
        "success-is-real",
        "A revision succeeds only while its objects exist and its Deployments are available, apart from what others changed.",
    ),
    (
        "soak-is-over",
        "A revision with a soak succeeds only after it was available for that time.",
    ),
    (
        "teardown-in-order",
        "A revision deletes its objects in the reverse order of its phases.",
    ),
    ("extension-last", "An extension goes only after its revisions."),
    (
        "finalizers-of-others",
        "No controller removes a finalizer of others.",
    ),
];

/// Names of the invariants about several objects at once. They need the exact order of all changes.
const OVER_OBJECTS: [&str; 5] = [
    "block-holds",
    "phases-in-order",
    "success-is-real",
    "teardown-in-order",
    "extension-last",
];

/// Facts about a run that the invariants depend on.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Contents of Secrets that must not appear in a status, an event or a revision.
    pub secrets: Vec<String>,
    /// Default of `spec.deletion.customResources` in the controllers under test: true for `Delete`, false for `Keep`.
    pub deletes_custom_resources: bool,
    /// True if changes of all kinds arrive in exactly the order in which the API server accepted them. Watches of several kinds
    /// give no such order; without it, the invariants about several objects are not checked.
    pub exact_order: bool,
    /// True to check only the rules that upstream's controllers also promise.
    pub common_only: bool,
}

/// State of a cluster, and checks of the invariants. The caller passes every accepted change to [`Invariants::observe`] in order.
#[derive(Clone, Debug, Default)]
pub struct Invariants {
    settings: Settings,
    /// Objects on the cluster.
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    /// Highest number of a revision so far, by uid of the extension.
    numbers: BTreeMap<String, i64>,
    /// Uids of all revisions that were ever archived.
    archived: BTreeSet<String>,
    /// Uids of revisions that somebody other than a controller deletes. Their objects may go.
    given_up: BTreeSet<String>,
    /// Uids of extensions whose deletion was requested with the policy `Block`, and that have kept it since.
    blocked: BTreeSet<String>,
    /// Objects of each revision with the index of their phase, by uid of the revision. A cache: the content of a revision never
    /// changes.
    contents: BTreeMap<String, Arc<BTreeMap<ObjectKey, usize>>>,
    /// Objects that each revision has applied, by uid of the revision.
    applied: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Objects that each revision controlled when it was archived or deleted and has not deleted since, by uid of the revision.
    leaving: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Objects that others changed or deleted after the last write by a controller.
    meddled: BTreeSet<ObjectKey>,
}

impl Invariants {
    /// Returns invariants over an empty cluster.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Adds an object that exists before the first change.
    pub fn existing(&mut self, key: ObjectKey, object: Arc<Value>) {
        self.objects.insert(key, object);
    }

    /// Checks the next change, applies it to the state, and returns its violations.
    pub fn observe(&mut self, change: &Change) -> Vec<Violation> {
        let mut found = Found::default();
        if matches!(change.actor, Actor::Controller(_)) {
            writes::check(self, change, &mut found);
            deletions::check(self, change, &mut found);
            status::check(self, change, &mut found);
        }
        revisions::check(self, change, &mut found);
        rollout::check(self, change, &mut found);
        removal::check(self, change, &mut found);
        deletions::note_block(self, change);
        self.note_meddling(change);
        match &change.after {
            Some(after) => self.objects.insert(change.object.clone(), Arc::clone(after)),
            None => self.objects.remove(&change.object),
        };
        found.retained(&self.settings)
    }

    /// Records whether others or a controller changed the object last. A change of a status or of metadata by others does not
    /// count.
    fn note_meddling(&mut self, change: &Change) {
        let generation = |object: &Option<Arc<Value>>| {
            object
                .as_ref()
                .map(|object| object["metadata"]["generation"].clone())
        };
        if matches!(change.actor, Actor::Controller(_)) {
            self.meddled.remove(&change.object);
        } else if generation(&change.before) != generation(&change.after) {
            self.meddled.insert(change.object.clone());
        }
    }

    /// Returns a violation for each object that outlived its extension. The cluster must be at rest.
    #[must_use]
    pub fn finish(&self) -> Vec<Violation> {
        let mut found = Found::default();
        let names: BTreeSet<&str> = self
            .of_kind("ClusterExtension")
            .map(|(key, _)| key.name.as_str())
            .collect();
        let uids: BTreeSet<&str> = self.objects.values().map(|object| object::uid(object)).collect();
        for (key, object) in &self.objects {
            let owner = object::label(object, keys::OWNER_NAME_LABEL);
            let orphan = owner.is_some_and(|owner| !names.contains(owner));
            let mut owners = object::owners(object).filter(|owner| is_olm(owner)).peekable();
            let disowned = owners.peek().is_some()
                && owners.all(|owner| owner["uid"].as_str().is_none_or(|uid| !uids.contains(uid)));
            let kept = object::label(object, keys::KEPT_FROM_LABEL).is_some();
            if (orphan || disowned) && !kept && !is_event(key) {
                found.add(
                    "nothing-left",
                    format!("{key} is left after its extension is gone"),
                );
            }
        }
        found.0
    }

    /// Returns an object in its state after the last change.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// Returns the objects of a kind of OLM.
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        self.objects
            .iter()
            .filter(move |(key, _)| key.group == GROUP && key.kind == kind)
    }

    /// Returns the objects of a revision, each with the index of its phase.
    fn contents_of(&mut self, revision: &Value) -> Arc<BTreeMap<ObjectKey, usize>> {
        let uid = object::uid(revision);
        if let Some(known) = self.contents.get(uid) {
            return Arc::clone(known);
        }
        let secret = |namespace: Option<&str>, name: &str| {
            self.objects
                .iter()
                .find(|(key, _)| {
                    key.kind == "Secret"
                        && key.name == name
                        && (namespace.is_none() || key.namespace.as_deref() == namespace)
                })
                .map(|(_, object)| object.as_ref())
        };
        let contents = Arc::new(object::contents(revision, secret));
        if revision["spec"]["phases"].is_array() {
            self.contents.insert(uid.to_owned(), Arc::clone(&contents));
        }
        contents
    }

    /// Returns the revision that controls the object, if it exists.
    fn revision_of(&self, object: &Value) -> Option<Arc<Value>> {
        let controller = object::owners(object).find(|owner| owner["controller"] == true)?;
        let mut revisions = self.of_kind("ClusterObjectSet").map(|(_, revision)| revision);
        revisions
            .find(|revision| controller["uid"] == object::uid(revision))
            .cloned()
    }

    /// Returns the newest revision of an extension that has succeeded.
    fn newest_succeeded(&self, extension: &str) -> Option<Arc<Value>> {
        self.of_kind("ClusterObjectSet")
            .map(|(_, revision)| revision)
            .filter(|revision| object::extension_uid(revision) == Some(extension))
            .filter(|revision| {
                object::condition(revision, "Succeeded")
                    .is_some_and(|condition| condition["status"] == "True")
            })
            .max_by_key(|revision| revision["spec"]["revision"].as_i64())
            .cloned()
    }
}

/// Violations by one change.
#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    /// Adds a violation of the invariant with this name.
    fn add(&mut self, invariant: &str, text: String) {
        debug_assert!(
            INVARIANTS.iter().any(|(name, _)| *name == invariant),
            "{invariant} is no invariant"
        );
        self.0.push(Violation {
            invariant: invariant.to_owned(),
            seed: String::new(),
            text,
        });
    }

    /// Returns the violations of the rules that the settings select.
    fn retained(mut self, settings: &Settings) -> Vec<Violation> {
        // Rules that upstream's controllers do not promise.
        const OURS: [&str; 7] = [
            "block-holds",
            "guarded-deletion",
            "ready-is-current",
            "crd-with-resources",
            "soak-is-over",
            "extension-last",
            "needed-first",
        ];
        self.0
            .retain(|violation| !settings.common_only || !OURS.contains(&violation.invariant.as_str()));
        self.0.retain(|violation| {
            settings.exact_order || !OVER_OBJECTS.contains(&violation.invariant.as_str())
        });
        self.0
    }
}

/// Returns true if the owner reference names a kind of OLM.
fn is_olm(owner: &Value) -> bool {
    owner["apiVersion"]
        .as_str()
        .is_some_and(|version| version.split('/').next() == Some(GROUP))
}

fn is_event(key: &ObjectKey) -> bool {
    key.kind == "Event"
}

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
