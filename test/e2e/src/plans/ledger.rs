//! The ledger: state of revisions and objects while the writes are read in order, and the checks of each write.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use olm_api::condition::{find, reasons::ObjectSet as Reason, types::ObjectSet as Type};
use olm_api::{ClusterExtension, ClusterObjectSet, LifecycleState, keys};
use olm_harness::audit::OPERATOR_CONTROLLER;
use serde_json::Value;

use super::revision::{Key, Revision, Secrets};
use super::{Verdict, Write};

const OLM: &str = "olm.operatorframework.io";
/// Groups and plurals of events, which the controllers write for themselves.
const BOOKKEEPING: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

/// State after the writes so far.
pub(super) struct Ledger<'a> {
    secrets: Secrets<'a>,
    /// Kinds by group and plural, from the bodies of all writes.
    kinds: BTreeMap<(&'a str, &'a str), &'a str>,
    extensions: BTreeMap<String, ClusterExtension>,
    /// Digests of pending plans that the status has shown, by extension.
    shown: BTreeMap<String, BTreeSet<String>>,
    revisions: Vec<(Revision, ClusterObjectSet)>,
    /// Index of the revision that wrote an object last.
    writer: BTreeMap<Key, usize>,
    /// Objects that anybody deleted, and CRDs that stayed with their custom resources.
    gone: BTreeSet<Key>,
    verdict: Verdict,
}

impl<'a> Ledger<'a> {
    /// Returns a ledger with the facts that do not depend on the order of writes: kinds of resources, and the content of
    /// immutable Secrets.
    pub(super) fn new(writes: &'a [Write]) -> Self {
        let (mut secrets, mut kinds) = (Secrets::new(), BTreeMap::new());
        for write in writes {
            let kind = write.body["kind"]
                .as_str()
                .filter(|kind| *kind != "DeleteOptions");
            if let Some(kind) = kind.filter(|_| write.subresource.is_empty()) {
                kinds.insert((write.group.as_str(), write.resource.as_str()), kind);
            }
            if write.resource == "secrets" && write.body["data"].is_object() {
                secrets.insert((write.namespace.clone(), write.name.clone()), &write.body);
            }
        }
        Self {
            secrets,
            kinds,
            extensions: BTreeMap::new(),
            shown: BTreeMap::new(),
            revisions: Vec::new(),
            writer: BTreeMap::new(),
            gone: BTreeSet::new(),
            verdict: Verdict::default(),
        }
    }

    /// Adds the next write.
    pub(super) fn add(&mut self, write: &Write) {
        match (write.group.as_str(), write.resource.as_str()) {
            (OLM, "clusterobjectsets") => self.revision(write),
            (OLM, "clusterextensions") => self.extension(write),
            _ if write.user != OPERATOR_CONTROLLER => self.by_others(write),
            ("", "secrets") if self.is_store(write) => {}
            (OLM, _) => {}
            kind if BOOKKEEPING.contains(&kind) => self.event(write),
            _ => self.object(write),
        }
    }

    /// Records an extension and the digest of its pending plan.
    fn extension(&mut self, write: &Write) {
        let Ok(extension) = serde_json::from_value::<ClusterExtension>(write.answer.clone()) else {
            return;
        };
        let status = extension.status.as_ref();
        if let Some(plan) = status.and_then(|status| status.pending_plan.as_ref()) {
            self.shown
                .entry(extension.name_any())
                .or_default()
                .insert(plan.digest.clone());
        }
        self.extensions.insert(extension.name_any(), extension);
    }

    /// Records a write of a revision: its creation, a change of its state, or its deletion.
    fn revision(&mut self, write: &Write) {
        if write.verb == "delete" {
            for (revision, _) in self
                .revisions
                .iter_mut()
                .filter(|(revision, _)| revision.name == write.name)
            {
                revision.deleting = true;
            }
            return;
        }
        let Ok(set) = serde_json::from_value::<ClusterObjectSet>(write.answer.clone()) else {
            return;
        };
        let uid = set.uid().unwrap_or_default();
        let known = self
            .revisions
            .iter_mut()
            .find(|(revision, _)| revision.uid == uid);
        let Some((revision, recorded)) = known else {
            self.created(set);
            return;
        };
        revision.archived |= set.spec.lifecycle_state == LifecycleState::Archived;
        let progressing =
            find(set.conditions(), Type::Progressing).map(|condition| condition.reason.as_str());
        revision.rolled_out |= progressing == Some(Reason::Succeeded.as_str());
        revision.torn_down |= progressing == Some(Reason::Archived.as_str());
        *recorded = set;
    }

    /// Records a new revision and makes the plan of its rollout.
    fn created(&mut self, set: ClusterObjectSet) {
        let mut revision = Revision::new(&set, &self.secrets);
        if !revision.extension.is_empty() {
            let of_extension =
                |(other, _): &&(Revision, ClusterObjectSet)| other.is_sibling(&revision) && other.is_active();
            let newest = self
                .revisions
                .iter()
                .filter(of_extension)
                .max_by_key(|(_, set)| set.spec.revision);
            let newest = newest.map(|(revision, set)| (revision, set));
            revision.make_plan(&set, self.extensions.get(&revision.extension), newest);
            self.verdict.rollouts += 1;
        }
        self.revisions.push((revision, set));
    }

    /// Checks an event about an approved plan, which names the digest of the plan and the revision.
    fn event(&mut self, write: &Write) {
        if write.body["reason"] != "Approved" {
            return;
        }
        let note = write.body["note"].as_str().unwrap_or_default();
        let digest = note
            .split_whitespace()
            .find(|word| word.starts_with("sha256:"))
            .unwrap_or_default();
        let name = note.rsplit(' ').next().unwrap_or_default();
        let found = self
            .revisions
            .iter()
            .rev()
            .find(|(revision, _)| revision.name == name);
        let planned = found.and_then(|(revision, _)| revision.plan.as_ref());
        let shown = found.and_then(|(revision, _)| self.shown.get(&revision.extension));
        if planned.is_none_or(|plan| plan.digest != digest) {
            self.verdict.outside.push(format!(
                "revision {name}: plan {digest} was approved, and the plan of the revision is {:?}",
                planned.map(|plan| &plan.digest)
            ));
        } else if shown.is_none_or(|shown| !shown.contains(digest)) {
            self.verdict.outside.push(format!(
                "revision {name}: the approved plan {digest} was never shown"
            ));
        } else {
            self.verdict.approved += 1;
        }
    }

    /// Returns true for a Secret of the controller itself: one in its namespace that no revision installs.
    fn is_store(&self, write: &Write) -> bool {
        let key = self.key(write);
        let held = self
            .revisions
            .iter()
            .any(|(revision, _)| revision.objects.contains_key(&key));
        write.namespace == olm_harness::controllers::SYSTEM_NAMESPACE && !held
    }

    fn key(&self, write: &Write) -> Key {
        let kind = self.kinds.get(&(write.group.as_str(), write.resource.as_str()));
        [
            write.group.clone(),
            kind.map_or(write.resource.as_str(), |kind| *kind).to_owned(),
            write.namespace.clone(),
            write.name.clone(),
        ]
    }

    /// Records the objects that somebody else deletes.
    fn by_others(&mut self, write: &Write) {
        if write.verb == "delete" && write.subresource.is_empty() {
            let key = self.key(write);
            self.gone.insert(key);
        }
        if write.verb == "deletecollection" {
            // The deletion of a namespace deletes its objects.
            for item in write.answer["items"].as_array().into_iter().flatten() {
                let mut key = self.key(write);
                item["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut key[3]);
                self.gone.insert(key);
            }
        }
    }

    /// Checks a write of operator-controller to an object that is not bookkeeping.
    fn object(&mut self, write: &Write) {
        self.verdict.writes += 1;
        let key = self.key(write);
        let fault = match write.verb.as_str() {
            "patch" if write.body["kind"].is_string() => self.apply(&key, write),
            "patch" => self.metadata(&key, write),
            "delete" => self.delete(&key),
            verb => Some(format!("{verb} is no verb of a plan")),
        };
        if let Some(fault) = fault {
            let shown = format!("{} {} {}/{}", write.verb, key[1], key[2], key[3]);
            self.verdict
                .outside
                .push(format!("{} {shown}: {fault}", write.received));
        }
    }

    /// Checks a server-side apply. Returns the violation, if any.
    fn apply(&mut self, key: &Key, write: &Write) -> Option<String> {
        let uid = controller_of(write)
            .and_then(|owner| owner["uid"].as_str())
            .unwrap_or_default();
        let Some(index) = self
            .revisions
            .iter()
            .position(|(revision, _)| revision.uid == uid)
        else {
            return Some("no revision owns it".to_owned());
        };
        let (revision, set) = &self.revisions[index];
        let Some(differences) = revision.differences(key, &write.body) else {
            return Some(format!("revision {} does not hold it", revision.name));
        };
        if let Some(field) = differences.first() {
            return Some(format!(
                "field {} is not as planned by revision {}",
                field.path, revision.name
            ));
        }
        let later = self.writer.get(key).and_then(|last| self.revisions.get(*last));
        let is_later = |(other, newer): &&(Revision, ClusterObjectSet)| {
            other.is_sibling(revision) && other.is_active() && newer.spec.revision > set.spec.revision
        };
        if let Some((newer, _)) = later.filter(is_later) {
            return Some(format!(
                "revision {} has it already, and {} wrote it",
                newer.name, revision.name
            ));
        }
        self.gone.remove(key);
        self.writer.insert(key.clone(), index);
        let (revision, _) = &mut self.revisions[index];
        if !revision.applied.insert(key.clone()) {
            self.verdict.repairs += 1;
        }
        None
    }

    /// Checks a change of metadata alone: a teardown releases or keeps an object, or a revision adopts a kept CRD or an object of a Helm
    /// release. Returns the violation, if any.
    fn metadata(&mut self, key: &Key, write: &Write) -> Option<String> {
        let fields = write
            .body
            .as_object()
            .is_some_and(|body| body.keys().all(|field| field == "metadata"));
        if !fields {
            return Some("it is no change of metadata".to_owned());
        }
        let kept_from = write
            .body
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(keys::KEPT_FROM_LABEL));
        let mut holders = self
            .revisions
            .iter()
            .filter(|(revision, _)| revision.objects.contains_key(key));
        let controller = controller_of(write);
        let controls = |revision: &Revision| controller.is_some_and(|owner| owner["uid"] == revision.uid);
        match kept_from {
            None if controller.is_some() => {
                // The extension is no owner any more, and the revision stays the controller.
                let adopts =
                    holders.any(|(revision, _)| controls(revision) && revision.applied.contains(key));
                (!adopts).then(|| "no revision adopts it".to_owned())
            }
            Some(Value::Null) if holders.any(|(revision, _)| revision.applied.contains(key)) => None,
            Some(Value::Null) => Some("no revision adopts it".to_owned()),
            _ if !holders.any(|(revision, _)| !revision.is_active()) => {
                Some("no teardown releases it".to_owned())
            }
            label => {
                if label.is_some() {
                    self.gone.insert(key.clone());
                }
                None
            }
        }
    }

    /// Checks a deletion. Returns the violation, if any.
    fn delete(&mut self, key: &Key) -> Option<String> {
        let doomed = |index: usize| {
            let (revision, set) = &self.revisions[index];
            let promised = |(later, newer): &(Revision, ClusterObjectSet)| {
                later.is_sibling(revision)
                    && newer.spec.revision > set.spec.revision
                    && later.doomed().any(|doomed| doomed == *key)
            };
            revision.deleting || (revision.archived && self.revisions.iter().any(promised))
        };
        let allowed = match self.writer.get(key) {
            Some(index) => doomed(*index),
            None => (0..self.revisions.len())
                .filter(|index| self.revisions[*index].0.objects.contains_key(key))
                .any(doomed),
        };
        if !allowed {
            return Some(
                "no plan deletes it, and neither its revision nor its extension is deleted".to_owned(),
            );
        }
        self.gone.insert(key.clone());
        None
    }

    /// Returns the verdict, with the parts of plans that were not carried out.
    pub(super) fn verdict(mut self) -> Verdict {
        let Verdict { undone, .. } = &mut self.verdict;
        for (revision, set) in self.revisions.iter().filter(|(revision, _)| revision.rolled_out) {
            let missing = revision.promised().filter(|key| !revision.applied.contains(key));
            undone.extend(missing.map(|key| described(revision, "write", &key)));
            let siblings = |number: fn(i64, i64) -> bool| {
                let of_extension = move |(other, of): &&(Revision, ClusterObjectSet)| {
                    other.is_sibling(revision) && number(of.spec.revision, set.spec.revision)
                };
                self.revisions.iter().filter(of_extension)
            };
            for key in revision.doomed() {
                let again =
                    siblings(|other, own| other > own).any(|(later, _)| later.objects.contains_key(&key));
                let mut holders =
                    siblings(|other, own| other < own).filter(|(older, _)| older.objects.contains_key(&key));
                if !again && holders.all(|(older, _)| older.torn_down) && !self.gone.contains(&key) {
                    undone.push(described(revision, "delete", &key));
                }
            }
        }
        self.verdict
    }
}

/// Returns the controller among the owners that the write gives to its object.
fn controller_of(write: &Write) -> Option<&Value> {
    let owners = write.body.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

fn described(revision: &Revision, verb: &str, key: &Key) -> String {
    format!(
        "revision {}: {verb} {} {}/{}",
        revision.name, key[1], key[2], key[3]
    )
}
