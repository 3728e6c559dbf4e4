//! Rules that hold at every accepted change, whatever was delayed, lost or repeated before it.

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

/// Name and sentence of every invariant.
pub const INVARIANTS: [(&str, &str); 20] = [
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
        "No content of a Secret is in a status, an event or a revision.",
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

/// Invariants over several objects at once, which need the order of all changes.
const OVER_OBJECTS: [&str; 4] = [
    "phases-in-order",
    "success-is-real",
    "teardown-in-order",
    "extension-last",
];

/// Facts about a run that the invariants need.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Texts of Secrets that may appear in no status and no event.
    pub secrets: Vec<String>,
    /// Default of `spec.deletion.customResources`: true for `Delete`.
    pub deletes_custom_resources: bool,
    /// True if changes come in exactly the order in which the API server accepted them, whatever their kind. Watches of several kinds
    /// give no such order, and rules on several objects at once are left out.
    pub exact_order: bool,
    /// Leaves out what upstream does not promise.
    pub common_only: bool,
}

/// The state of a cluster, and the invariants over its changes. Feed it every accepted change in order.
#[derive(Clone, Debug, Default)]
pub struct Invariants {
    settings: Settings,
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    /// Highest number of a revision by uid of the extension.
    numbers: BTreeMap<String, i64>,
    /// Uids of archived revisions.
    archived: BTreeSet<String>,
    /// Uids of revisions that somebody else than a controller deletes, and their objects with them.
    given_up: BTreeSet<String>,
    /// Objects by uid of their revision, each with the index of its phase. The content of a revision cannot change.
    contents: BTreeMap<String, Arc<BTreeMap<ObjectKey, usize>>>,
    /// Objects that a revision has applied, by its uid.
    applied: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Objects that a revision controlled when it was archived or deleted, by its uid.
    leaving: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Objects that others changed or deleted after the last write of a controller.
    meddled: BTreeSet<ObjectKey>,
}

impl Invariants {
    /// Starts with an empty cluster.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Adds an object that exists at the start.
    pub fn existing(&mut self, key: ObjectKey, object: Arc<Value>) {
        self.objects.insert(key, object);
    }

    /// Adds the next change and returns what it violates.
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
        self.note_meddling(change);
        match &change.after {
            Some(after) => self.objects.insert(change.object.clone(), Arc::clone(after)),
            None => self.objects.remove(&change.object),
        };
        found.retained(&self.settings)
    }

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

    /// Returns the objects that outlived their extension. Call it when the cluster is at rest.
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

    /// Returns the object as the changes so far left it.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        self.objects
            .iter()
            .filter(move |(key, _)| key.group == GROUP && key.kind == kind)
    }

    /// Returns the objects of a revision.
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

    /// Returns the revision that controls the object.
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

/// Violations of one change.
#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
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

    fn retained(mut self, settings: &Settings) -> Vec<Violation> {
        const OURS: [&str; 6] = [
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

/// Returns true for an owner of a kind of OLM.
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
