//! The objects of a revision: inline, or read from the Secrets it refers to.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use olm_api::{ClusterObjectSet, CollisionProtection, ObjectSourceRef};
use olm_applier::engine::{RevisionPhase, chain};
use olm_applier::plan::{self, Phase};
use serde_json::Value;

use super::Context;

/// Largest size of an object that a Secret may unpack to, in bytes; see [`plan::unpack`].
const UNPACKED_LIMIT: u64 = 10 * 1024 * 1024;

/// What could be gathered.
pub(super) enum Gathered {
    /// All objects.
    Objects(Content),
    /// Secrets that may still change, as `namespace/name`.
    Mutable(Vec<String>),
    /// Some object could not be had; the text says which and why.
    Missing(String),
}

/// The objects, with and without what is needed to apply them.
pub(super) struct Content {
    pub(super) phases: Vec<Phase>,
    pub(super) protections: Vec<Vec<CollisionProtection>>,
}

impl Content {
    pub(super) fn into_revision(self) -> Vec<RevisionPhase> {
        let pairs = self.phases.into_iter().zip(self.protections);
        pairs
            .map(|(phase, rules)| RevisionPhase {
                name: phase.name,
                objects: phase.objects.into_iter().zip(rules).collect(),
            })
            .collect()
    }
}

type Secrets = BTreeMap<(String, String), Result<Option<Secret>, String>>;

impl Context {
    /// Reads the objects. With `lenient`, for a teardown, what cannot be had any more is left out: its owner reference leaves it to the
    /// garbage collector.
    pub(super) async fn gather(&self, set: &ClusterObjectSet, lenient: bool) -> Gathered {
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
                    (None, None) => Err("neither object nor ref is set".to_owned()),
                };
                match found {
                    Ok(object) => {
                        objects.push(object);
                        let rule = entry.collision_protection.or(phase.collision_protection);
                        rules.push(rule.unwrap_or(set.spec.collision_protection));
                    }
                    Err(_) if lenient => {}
                    Err(why) => {
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
        Gathered::Objects(content)
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
            let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
            let answer = super::limited("reading a Secret of", &name, api.get_opt(&name)).await;
            secrets.insert(
                key,
                answer.map_err(|error| match &error {
                    super::Error::Call { source, .. } => chain(source.as_ref()),
                    other => other.to_string(),
                }),
            );
        }
        secrets
    }

    fn resolve(&self, reference: &ObjectSourceRef, secrets: &Secrets) -> Result<Value, String> {
        let place = self.place(reference);
        let (namespace, name) = (&place.0, &place.1);
        let secret = match secrets.get(&place) {
            Some(Ok(Some(secret))) => secret,
            Some(Err(why)) => return Err(format!("getting Secret {namespace}/{name}: {why}")),
            _ => {
                return Err(format!(
                    "getting Secret {namespace}/{name}: secrets \"{name}\" not found"
                ));
            }
        };
        let key = &reference.key;
        let Some(stored) = secret.data.as_ref().and_then(|data| data.get(key)) else {
            return Err(format!("key \"{key}\" not found in Secret {namespace}/{name}"));
        };
        match plan::unpack(&stored.0) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(format!(
                "key \"{key}\" of Secret {namespace}/{name} exceeds maximum size ({UNPACKED_LIMIT} bytes)"
            )),
            Err(error) => Err(format!(
                "key \"{key}\" of Secret {namespace}/{name} holds no object: {error}"
            )),
        }
    }
}
