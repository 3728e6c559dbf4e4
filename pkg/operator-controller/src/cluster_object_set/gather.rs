//! Reads the objects of a revision: inline, or from the Secrets that it references.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::Api;
use olm_api::names::{self, Segment};
use olm_api::{ClusterObjectSet, CollisionProtection, ObjectSourceRef, keys};
use olm_applier::engine::{PreparedObject, RevisionPhase};
use olm_applier::plan::{self, Phase};
use serde_json::Value;

use super::content::Prepared;
use super::context::Context;
use super::decide::{self, Goal};
use super::error::limited;

/// Result of reading the objects that a revision holds inline or in Secrets.
pub(super) enum Gathered {
    /// The objects are applied and no watch has reported a change, so nothing was read.
    Unchanged,
    /// Every object was read.
    Objects {
        /// The validated objects, ready to be applied.
        content: Arc<Prepared>,
        /// Secrets of this revision that a crash left without an owner.
        unowned: Vec<SecretKey>,
    },
    /// Referenced Secrets that are not immutable, as `namespace/name`.
    Mutable(Vec<String>),
    /// Some object cannot be read; the text names the object and the cause.
    Missing(String),
}

/// Identity of a Secret on the cluster.
pub(super) struct SecretKey {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Option<String>,
}

/// Objects with their collision protection.
struct Content {
    phases: Vec<Phase>,
    protections: Vec<Vec<CollisionProtection>>,
}

impl Content {
    fn prepare(self, set: &ClusterObjectSet) -> Prepared {
        let (owner_name, number) = (decide::owner_name(set), set.spec.revision);
        let digests = decide::digests(&self.phases);
        let invalid = decide::invalid(&set.name_any(), number, &self.phases);
        let objects = self.phases.iter().flat_map(|phase| &phase.objects);
        let refused = match &invalid {
            Some(_) => None,
            None => names::check_all(objects).err().map(|fault| fault.to_string()),
        };
        let pairs = self.phases.into_iter().zip(self.protections);
        let phases = pairs
            .map(|(phase, rules)| RevisionPhase {
                name: phase.name,
                objects: phase
                    .objects
                    .into_iter()
                    .zip(rules)
                    .map(|(object, rule)| PreparedObject::new(object, rule, owner_name, number))
                    .collect(),
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
    /// Reads the objects. For a teardown, objects whose Secret is gone are left out: their owner reference
    /// leaves them to the garbage collector. Any other fault makes a teardown wait too, since an unread object would stay
    /// forever.
    pub(super) async fn gather(&self, set: &ClusterObjectSet, goal: Goal) -> Gathered {
        let uid = set.uid().unwrap_or_default();
        let state = decide::state(set);
        let lenient = goal != Goal::Applied;
        if !lenient && decide::is_held(set) && self.engine.idle(&uid, state) {
            return Gathered::Unchanged;
        }
        if let Some(content) = self.contents.get(&uid, state) {
            return Gathered::Objects {
                content,
                unowned: Vec::new(),
            };
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
        let content = Arc::new(content.prepare(set));
        let unowned = if lenient {
            Vec::new()
        } else {
            unowned(set, &secrets)
        };
        Gathered::Objects { content, unowned }
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

    /// Reads each referenced Secret once.
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

    /// Reads a Secret. A Secret whose name no API server accepts does not exist.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, String> {
        let (Ok(place), Ok(segment)) = (Segment::new(namespace), Segment::new(name)) else {
            return Ok(None);
        };
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &place);
        let answer = limited("reading a Secret of", name, api.get_opt(&segment)).await;
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

/// Returns the Secrets that carry the name of the revision but not its owner as theirs.
fn unowned(set: &ClusterObjectSet, secrets: &Secrets) -> Vec<SecretKey> {
    let (name, uid) = (set.name_any(), set.uid().unwrap_or_default());
    let present = secrets
        .iter()
        .filter_map(|(key, secret)| Some((key, secret.as_ref().ok()?.as_ref()?)));
    present
        .filter(|(_, secret)| secret.labels().get(keys::REVISION_NAME_LABEL) == Some(&name))
        .filter(|(_, secret)| !secret.owner_references().iter().any(|owner| owner.uid == uid))
        .map(|((namespace, name), secret)| SecretKey {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: secret.uid(),
        })
        .collect()
}
