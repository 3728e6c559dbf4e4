//! The objects of a revision: inline, or read from the Secrets it refers to.
//!
//! They are kept while the revision rolls out, and dropped when it has: from then on they are needed only when something changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use olm_api::names::{self, Segment};
use olm_api::{ClusterObjectSet, CollisionProtection, ObjectSourceRef, ObservedPhase, keys};
use olm_applier::engine::RevisionPhase;
use olm_applier::plan::{self, Phase};
use olm_runtime::client::is_absent;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Context, decide};

/// All that is known of the content of a revision.
pub(super) struct Prepared {
    /// In order, ready to be applied.
    pub(super) phases: Arc<Vec<RevisionPhase>>,
    /// A digest of each phase.
    pub(super) digests: Vec<ObservedPhase>,
    /// What is wrong with the objects.
    pub(super) invalid: Option<String>,
    /// Objects that no API server can hold under their names.
    pub(super) refused: Option<String>,
}

/// What could be gathered.
pub(super) enum Gathered {
    /// All objects.
    Objects(Arc<Prepared>),
    /// Secrets that may still change, as `namespace/name`.
    Mutable(Vec<String>),
    /// Some object could not be had; the text says which and why.
    Missing(String),
    /// A Secret could not be made to go with the revision; the text says which and why.
    Unowned(String),
}

/// The content of revisions that are not at rest, by uid, with the state it is of.
#[derive(Default)]
pub(super) struct Contents(Mutex<HashMap<String, (u64, Arc<Prepared>)>>);

impl Contents {
    fn get(&self, uid: &str, state: u64) -> Option<Arc<Prepared>> {
        let contents = self.0.lock();
        let (of, content) = contents.get(uid)?;
        (*of == state).then(|| content.clone())
    }

    fn keep(&self, uid: String, state: u64, content: Arc<Prepared>) {
        self.0.lock().insert(uid, (state, content));
    }

    /// Drops what is kept of the revision.
    pub(super) fn drop(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

/// The objects, with what is to be done when they exist already.
struct Content {
    phases: Vec<Phase>,
    protections: Vec<Vec<CollisionProtection>>,
}

impl Content {
    fn prepare(self, name: &str, number: i64) -> Prepared {
        let digests = decide::digests(&self.phases);
        let invalid = decide::invalid(name, number, &self.phases);
        let objects = self.phases.iter().flat_map(|phase| &phase.objects);
        let refused = match &invalid {
            Some(_) => None,
            None => names::check_all(objects).err().map(|fault| fault.to_string()),
        };
        let pairs = self.phases.into_iter().zip(self.protections);
        let phases = pairs
            .map(|(phase, rules)| RevisionPhase {
                name: phase.name,
                objects: phase.objects.into_iter().zip(rules).collect(),
            })
            .collect();
        Prepared {
            phases: Arc::new(phases),
            digests,
            invalid,
            refused,
        }
    }
}

type Secrets = BTreeMap<(String, String), Result<Option<Secret>, String>>;

/// Reason why an object cannot be had.
enum Unresolved {
    /// Its Secret is gone, so that nothing will ever bring the object back.
    Gone(String),
    /// Its Secret cannot be read, or holds no such object.
    Failed(String),
}

impl Context {
    /// Reads the objects. With `lenient`, for a teardown, an object whose Secret is gone is left out: its owner reference
    /// leaves the object to the garbage collector. Any other fault makes a teardown wait, too: an object that is merely not
    /// seen would stay for ever.
    pub(super) async fn gather(&self, set: &ClusterObjectSet, lenient: bool) -> Gathered {
        let uid = set.uid().unwrap_or_default();
        let state = decide::state(set);
        if let Some(known) = self.contents.get(&uid, state) {
            return Gathered::Objects(known);
        }
        let secrets = self.secrets(set).await;
        let mutable: Vec<String> = secrets
            .iter()
            .filter(|(_, s)| matches!(s, Ok(Some(secret)) if secret.immutable != Some(true)))
            .map(|((namespace, name), _)| format!("{namespace}/{name}"))
            .collect();
        if !mutable.is_empty() && !lenient {
            return Gathered::Mutable(mutable);
        }
        let mut content = Content {
            phases: Vec::new(),
            protections: Vec::new(),
        };
        for phase in set.spec.phases.iter().flatten() {
            let (mut objects, mut rules) = (Vec::new(), Vec::new());
            for entry in &phase.objects {
                let found = match (&entry.object, &entry.ref_) {
                    (Some(object), _) => Ok(object.clone()),
                    (None, Some(reference)) => self.resolve(reference, &secrets),
                    (None, None) => Err(Unresolved::Failed("neither object nor ref is set".to_owned())),
                };
                match found {
                    Ok(object) => {
                        objects.push(object);
                        let rule = entry.collision_protection.or(phase.collision_protection);
                        rules.push(rule.unwrap_or(set.spec.collision_protection));
                    }
                    Err(Unresolved::Gone(_)) if lenient => {}
                    Err(Unresolved::Gone(why) | Unresolved::Failed(why)) => {
                        return Gathered::Missing(format!(
                            "resolving ref in phase \"{}\": {why}",
                            phase.name
                        ));
                    }
                }
            }
            content.phases.push(Phase {
                name: phase.name.clone(),
                objects,
            });
            content.protections.push(rules);
        }
        let content = Arc::new(content.prepare(&set.name_any(), set.spec.revision));
        if !lenient {
            if let Err(why) = self.adopt_secrets(set, &secrets).await {
                return Gathered::Unowned(why);
            }
            self.contents.keep(uid, state, content.clone());
        }
        Gathered::Objects(content)
    }

    /// Makes the Secrets that were made for this revision go with it, where a crash came in between.
    async fn adopt_secrets(&self, set: &ClusterObjectSet, secrets: &Secrets) -> Result<(), String> {
        let name = set.name_any();
        let Some(owner) = set.controller_owner_ref(&()) else {
            return Ok(());
        };
        for ((namespace, secret_name), secret) in secrets {
            let Ok(Some(secret)) = secret else { continue };
            let labels = secret.labels();
            let made_for_us = labels.get(keys::REVISION_NAME_LABEL) == Some(&name);
            if !made_for_us || secret.owner_references().iter().any(|o| o.uid == owner.uid) {
                continue;
            }
            let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
            let patch = json!({"metadata": {"uid": secret.metadata.uid, "ownerReferences": [owner]}});
            let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
            let call = api.patch_metadata(secret_name, &params, &patch);
            match super::limited("making a Secret go with", &name, call).await {
                Ok(_) => {}
                Err(super::Error::Call { source, .. }) if is_absent(&source) => {}
                Err(error) => {
                    return Err(format!(
                        "making Secret {namespace}/{secret_name} go with the revision: {}",
                        error.why()
                    ));
                }
            }
        }
        Ok(())
    }

    fn place(&self, reference: &ObjectSourceRef) -> (String, String) {
        let namespace = reference
            .namespace
            .clone()
            .filter(|namespace| !namespace.is_empty());
        (
            namespace.unwrap_or_else(|| self.system_namespace.clone()),
            reference.name.clone(),
        )
    }

    /// Reads every Secret the revision refers to once.
    async fn secrets(&self, set: &ClusterObjectSet) -> Secrets {
        let mut secrets = Secrets::new();
        let entries = set.spec.phases.iter().flatten().flat_map(|phase| &phase.objects);
        for reference in entries.filter_map(|entry| entry.ref_.as_ref()) {
            let (namespace, name) = self.place(reference);
            let key = (namespace.clone(), name.clone());
            if secrets.contains_key(&key) {
                continue;
            }
            secrets.insert(key, self.secret(&namespace, &name).await);
        }
        secrets
    }

    /// Reads a Secret. One whose name no API server accepts is not there.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, String> {
        let (Ok(place), Ok(segment)) = (Segment::new(namespace), Segment::new(name)) else {
            return Ok(None);
        };
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &place);
        let answer = super::limited("reading a Secret of", name, api.get_opt(&segment)).await;
        answer.map_err(|error| error.why())
    }

    fn resolve(&self, reference: &ObjectSourceRef, secrets: &Secrets) -> Result<Value, Unresolved> {
        let place = self.place(reference);
        let (namespace, name) = (&place.0, &place.1);
        let secret = match secrets.get(&place) {
            Some(Ok(Some(secret))) => secret,
            Some(Err(why)) => {
                return Err(Unresolved::Failed(format!(
                    "getting Secret {namespace}/{name}: {why}"
                )));
            }
            _ => {
                return Err(Unresolved::Gone(format!(
                    "getting Secret {namespace}/{name}: secrets \"{name}\" not found"
                )));
            }
        };
        let key = &reference.key;
        let Some(stored) = secret.data.as_ref().and_then(|data| data.get(key)) else {
            return Err(Unresolved::Failed(format!(
                "key \"{key}\" not found in Secret {namespace}/{name}"
            )));
        };
        match plan::unpack(&stored.0) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(Unresolved::Failed(format!(
                "key \"{key}\" of Secret {namespace}/{name} exceeds maximum size ({} bytes)",
                plan::UNPACKED_LIMIT
            ))),
            Err(error) => Err(Unresolved::Failed(format!(
                "key \"{key}\" of Secret {namespace}/{name} holds no object: {error}"
            ))),
        }
    }
}
