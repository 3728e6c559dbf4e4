//! Comparison of a cluster at rest with the goals of its extensions, which `model` computes.

mod live;

use std::collections::BTreeSet;
use std::sync::Arc;

use olm_api::{ClusterExtension, CustomResourcePolicy, keys};
use serde_json::Value;

use self::live::{compare_owners, find, is_rolling_out, same, shown};
use crate::content::{Content, WIDGET};
use crate::model::{self, CatalogsInUse, Chosen, Goal, goal, is_paused};
use crate::scenario::Scenario;
use crate::user::Action;

/// Number of archived revisions that an extension keeps.
const ARCHIVED: u64 = 5;

/// Specs and catalogs after the steps of a scenario so far, and every goal that an extension may have reached.
pub(crate) struct Expected {
    content: Arc<Content>,
    catalogs: CatalogsInUse,
    /// Existing extensions, with the goals that they may have reached.
    pub(crate) extensions: Vec<(ClusterExtension, Vec<Goal>)>,
    /// Names of the extensions that were deleted with their custom resources.
    swept: BTreeSet<String>,
    /// Objects that users deleted while an extension was paused, so that they stay absent.
    absent: Vec<Value>,
    /// Objects that users applied and have not deleted, so that they stay whoever leaves.
    applied: Vec<Value>,
    /// Revisions that users deleted.
    revisions: Vec<Value>,
    /// True if the run has neither a fault nor a deposed leader. Either can delay a pause, so that the controllers restore an
    /// object that a user deleted after the pause.
    pub(crate) faultless: bool,
}

impl Expected {
    pub(crate) fn new(content: Arc<Content>) -> Self {
        let catalogs = [("first", crate::content::FULL), ("second", crate::content::OLD)];
        Self {
            content,
            catalogs: catalogs.into(),
            extensions: Vec::new(),
            swept: BTreeSet::new(),
            absent: Vec::new(),
            applied: Vec::new(),
            revisions: Vec::new(),
            faultless: false,
        }
    }

    /// Takes the actions of a step into account. The step may come before the controllers were done with the one before.
    pub(crate) fn follow(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Apply(object) | Action::Merge(object)
                    if object["kind"] == "ClusterExtension" && object["spec"].is_object() =>
                {
                    if let Ok(extension) = serde_json::from_value::<ClusterExtension>(object.clone()) {
                        self.apply(extension);
                    }
                }
                Action::Delete(object) if object["kind"] == "ClusterExtension" => {
                    self.delete(object["metadata"]["name"].as_str().unwrap_or_default());
                }
                Action::Delete(object) if object["kind"] == "ClusterCatalog" => {
                    self.catalogs
                        .retain(|name, _| object["metadata"]["name"] != *name);
                }
                Action::Serve(name, digest) => {
                    self.catalogs.insert(name, digest);
                }
                Action::Delete(object) if object["kind"] == "ClusterObjectSet" => {
                    self.revisions.push(object.clone());
                }
                Action::Delete(object) => {
                    self.applied.retain(|known| !same(known, object));
                    if self.extensions.iter().any(|(known, _)| is_paused(known)) {
                        self.absent.push(object.clone());
                    }
                }
                Action::Apply(object) => self.applied.push(object.clone()),
                Action::Merge(_) => {}
            }
            if !self.extensions.iter().any(|(known, _)| is_paused(known)) {
                self.absent.clear();
            }
            self.settle();
        }
    }

    /// Leaves out objects that users applied in vain.
    pub(crate) fn forget(&mut self, refused: &[Value]) {
        self.applied
            .retain(|known| !refused.iter().any(|object| same(known, object)));
    }

    /// Removes an extension, and notes if its custom resources go with it.
    fn delete(&mut self, name: &str) {
        let all = self
            .extensions
            .extract_if(.., |(known, _)| known.metadata.name.as_deref() == Some(name));
        for (extension, _) in all {
            let deletion = extension.spec.deletion.as_ref();
            let policy = deletion.and_then(|deletion| deletion.custom_resources);
            if policy == Some(CustomResourcePolicy::Delete) {
                self.applied.retain(|object| object["kind"] != WIDGET);
                self.swept.insert(name.to_owned());
            }
        }
    }

    /// Adds an extension or replaces its spec.
    fn apply(&mut self, extension: ClusterExtension) {
        let name = extension.metadata.name.clone();
        let known = self
            .extensions
            .iter_mut()
            .find(|(known, _)| known.metadata.name == name);
        if let Some((known, _)) = known {
            *known = extension;
            return;
        }
        let nothing = Goal {
            bundle: None,
            complete: false,
            stuck: false,
        };
        self.extensions.push((extension, vec![nothing]));
    }

    /// Computes the goals that follow from the goals so far, and keeps the earlier ones.
    fn settle(&mut self) {
        for (extension, goals) in &mut self.extensions {
            let mut next: Vec<Goal> = goals
                .iter()
                .map(|from| goal(&self.content, extension, &self.catalogs, from.bundle.clone()))
                .collect();
            // The cluster may still be in an earlier state when the next step comes.
            for goal in goals.drain(..) {
                if !next.contains(&goal) {
                    next.push(Goal {
                        complete: false,
                        ..goal
                    });
                }
            }
            next.dedup();
            *goals = next;
        }
    }

    /// Returns the goal of an extension that starts from an installed bundle.
    pub(crate) fn goal(&self, extension: &ClusterExtension, from: Option<Chosen>) -> Goal {
        goal(&self.content, extension, &self.catalogs, from)
    }

    /// Returns the goals at the end: those that follow from every goal on the way.
    fn last(&self, extension: &ClusterExtension, goals: &[Goal]) -> Vec<Goal> {
        let mut out: Vec<Goal> = Vec::new();
        for from in goals {
            let goal = goal(&self.content, extension, &self.catalogs, from.bundle.clone());
            if !out.contains(&goal) {
                out.push(goal);
            }
        }
        out
    }

    /// Returns a sentence for each difference between the cluster and the nearest goal of each extension. There is none if every
    /// extension has reached one of its goals.
    pub(crate) fn differences(&self, objects: &[Arc<Value>]) -> Vec<String> {
        let mut out = Vec::new();
        let names: BTreeSet<&str> = self
            .extensions
            .iter()
            .filter_map(|(extension, _)| extension.metadata.name.as_deref())
            .collect();
        self.compare_remains(objects, &mut out);
        for object in objects {
            if let Some(owner) = object["metadata"]["labels"][keys::OWNER_NAME_LABEL].as_str()
                && !names.contains(owner)
                && object["metadata"]["labels"][keys::KEPT_FROM_LABEL].is_null()
            {
                out.push(format!(
                    "{} is left of extension {owner:?}, which is gone",
                    shown(object)
                ));
            }
        }
        for object in &self.applied {
            if !objects.iter().any(|live| same(object, live)) {
                out.push(format!("{} of others is gone", shown(object)));
            }
        }
        let present = |kind: &str, name: &str| find(objects, kind, name).is_some();
        if !present("ConfigMap", "foreign") || !present("ServiceAccount", "installer") {
            out.push("an object of others is gone".to_owned());
        }
        for object in objects
            .iter()
            .filter(|object| object["kind"] == "ClusterExtension")
        {
            if !names.contains(object["metadata"]["name"].as_str().unwrap_or_default()) {
                out.push(format!("{} is still there", shown(object)));
            }
        }
        for (extension, goals) in &self.extensions {
            let goals = self.last(extension, goals);
            let mut best: Option<Vec<String>> = None;
            for goal in &goals {
                let found = self.differences_to(extension, goal, objects);
                if best.as_ref().is_none_or(|best| found.len() < best.len()) {
                    best = Some(found);
                }
            }
            out.extend(best.unwrap_or_default());
        }
        out
    }

    /// Adds a sentence for each object that must not exist, whatever goals the extensions have.
    fn compare_remains(&self, objects: &[Arc<Value>], out: &mut Vec<String>) {
        for object in objects {
            let labels = &object["metadata"]["labels"];
            let kept = labels[keys::KEPT_FROM_LABEL].as_str();
            if kept.is_some_and(|kept| self.swept.contains(kept)) {
                out.push(format!(
                    "{} was kept, and its extension says otherwise",
                    shown(object)
                ));
            }
            if kept.is_some() && object["kind"] == "CustomResourceDefinition" && !holds(object, objects) {
                out.push(format!(
                    "{} was kept, and holds no custom resource",
                    shown(object)
                ));
            }
            if self.faultless && self.absent.iter().any(|absent| same(absent, object)) {
                out.push(format!(
                    "{} came back while its extension is paused",
                    shown(object)
                ));
            }
            let revision = labels[keys::REVISION_NAME_LABEL].as_str();
            if object["type"] == keys::OBJECT_DATA_SECRET_TYPE
                && revision.is_none_or(|name| find(objects, "ClusterObjectSet", name).is_none())
            {
                out.push(format!("{} belongs to no revision", shown(object)));
            }
        }
    }

    /// Returns a sentence for each difference between an extension with its objects and one goal.
    pub(crate) fn differences_to(
        &self,
        extension: &ClusterExtension,
        goal: &Goal,
        objects: &[Arc<Value>],
    ) -> Vec<String> {
        let mut out = Vec::new();
        let name = extension.metadata.name.as_deref().unwrap_or_default();
        let Some(live) = find(objects, "ClusterExtension", name) else {
            return vec![format!("ClusterExtension {name:?} is missing")];
        };
        let installed = live["status"]["install"]["bundle"]["name"].as_str();
        let wanted = goal.bundle.as_ref().map(|bundle| bundle.installed.name.as_str());
        if installed != wanted {
            out.push(format!(
                "ClusterExtension {name:?} says that {installed:?} is installed, not {wanted:?}"
            ));
        }
        let generation = &live["metadata"]["generation"];
        let conditions = live["status"]["conditions"].as_array();
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Ready");
        let is_ready = ready
            .is_some_and(|ready| ready["status"] == "True" && ready["observedGeneration"] == *generation);
        if is_ready != goal.complete {
            out.push(format!(
                "ClusterExtension {name:?} is {}ready",
                if is_ready { "" } else { "not " }
            ));
        }
        // A paused extension resolves nothing, so its conditions keep an older generation.
        let resolved = conditions.into_iter().flatten().filter(|_| !is_paused(extension));
        for condition in resolved {
            if condition["observedGeneration"] != *generation {
                out.push(format!(
                    "ClusterExtension {name:?} has condition {} of generation {}, not {generation}",
                    condition["type"], condition["observedGeneration"]
                ));
            }
        }
        // A fault can delay a rollout, so that a pause stops it before its end. Then objects of two versions exist.
        let halted = !self.faultless && is_paused(extension) && is_rolling_out(name, objects);
        if !goal.stuck && !halted {
            self.compare_objects(extension, goal.bundle.as_ref(), objects, &mut out);
        }
        out
    }

    /// Adds a sentence for each difference between the objects of an extension and those of its bundle, and for superfluous or
    /// missing revisions.
    fn compare_objects(
        &self,
        extension: &ClusterExtension,
        bundle: Option<&Chosen>,
        objects: &[Arc<Value>],
        out: &mut Vec<String>,
    ) {
        let name = extension.metadata.name.as_deref().unwrap_or_default();
        let wanted = match bundle.map(|bundle| model::objects(&self.content, extension, bundle)) {
            None => Vec::new(),
            Some(Ok(wanted)) => wanted,
            Some(Err(error)) => {
                out.push(format!("M(spec) cannot be computed: {error:#}"));
                return;
            }
        };
        let there = |object: &&Value| !self.absent.iter().any(|absent| same(object, absent));
        for object in wanted.iter().filter(there) {
            match objects.iter().find(|live| same(object, live)) {
                None => out.push(format!("{} is missing", shown(object))),
                Some(live) => {
                    if let Some(path) = model::difference(object, live) {
                        out.push(format!("{} differs from its bundle in {path}", shown(object)));
                    }
                    if live["metadata"]["labels"][keys::OWNER_NAME_LABEL] != name {
                        out.push(format!("{} does not belong to extension {name:?}", shown(object)));
                    }
                }
            }
        }
        let ours = objects.iter().filter(|live| {
            live["metadata"]["labels"][keys::OWNER_NAME_LABEL] == name
                && live["metadata"]["labels"][keys::KEPT_FROM_LABEL].is_null()
                && live["kind"] != "ClusterObjectSet"
                && live["type"] != keys::OBJECT_DATA_SECRET_TYPE
        });
        for live in ours {
            if !wanted.iter().any(|object| same(object, live)) {
                out.push(format!(
                    "{} belongs to extension {name:?} and shall not exist",
                    shown(live)
                ));
            }
        }
        compare_owners(name, &wanted, objects, out);
        let (archived, active): (Vec<_>, Vec<_>) = objects
            .iter()
            .filter(|object| {
                object["kind"] == "ClusterObjectSet"
                    && object["metadata"]["labels"][keys::OWNER_NAME_LABEL] == name
            })
            .partition(|object| object["spec"]["lifecycleState"] == "Archived");
        let newest = active
            .iter()
            .filter_map(|revision| revision["spec"]["revision"].as_u64());
        let gone = self.revisions.iter().filter(|deleted| {
            let of = deleted["metadata"]["name"]
                .as_str()
                .and_then(|name| name.rsplit_once('-'));
            of.is_some_and(|(of, _)| of == name) && !objects.iter().any(|live| same(deleted, live))
        });
        let others = (active.len() + gone.count()) as u64;
        let former = newest.max().map_or(0, |newest| newest.saturating_sub(others));
        if archived.len() as u64 != former.min(ARCHIVED) {
            out.push(format!(
                "extension {name:?} has {} archived revisions of {former}",
                archived.len()
            ));
        }
        if active.len() != usize::from(bundle.is_some()) {
            let names: Vec<String> = active.iter().map(|active| shown(active)).collect();
            out.push(format!(
                "extension {name:?} has {} active revisions: {}",
                active.len(),
                names.join(", ")
            ));
        }
    }
}

/// Returns true if a custom resource of the CRD exists.
fn holds(crd: &Value, objects: &[Arc<Value>]) -> bool {
    let (group, kind) = (&crd["spec"]["group"], &crd["spec"]["names"]["kind"]);
    objects.iter().any(|object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let own = version.rsplit_once('/').map_or("", |(group, _)| group);
        *group == own && object["kind"] == *kind
    })
}

/// Returns the expectation after all steps of a scenario.
pub(crate) fn of(content: &Arc<Content>, scenario: &Scenario) -> Expected {
    let mut expected = Expected::new(Arc::clone(content));
    let before = scenario.helm.iter().cloned().map(Action::Apply);
    expected.follow(&before.collect::<Vec<_>>());
    for (_, actions) in &scenario.steps {
        expected.follow(actions);
    }
    expected
}
