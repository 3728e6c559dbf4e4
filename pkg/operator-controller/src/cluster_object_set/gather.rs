//! Reads the objects of a revision: inline, or from the Secrets that it references.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use olm_api::names;
use olm_api::{ClusterObjectSet, CollisionProtection, ObjectSourceRef, keys};
use olm_applier::content::{self, SECRETS_AT_ONCE, SecretPlace, Unresolved};
use olm_applier::engine::{PreparedObject, RevisionPhase};
use olm_applier::plan::Phase;
use olm_decide::object_set::{self as decide, Goal};
use serde_json::Value;

use super::content::Prepared;
use super::context::Context;
use super::error::limited;

/// Maximum unpacked size of all objects of a revision that Secrets hold, in bytes.
///
/// A revision can refer a thousand times to a key that unpacks to 10 MiB, and the decoded objects need several times their size. The limit is
/// above what a bundle can have.
const CONTENT_LIMIT: usize = 128 * 1024 * 1024;

/// Result of reading the objects that a revision holds inline or in Secrets.
pub(super) enum Gathered {
    /// The objects are applied and no watch has reported a change, so nothing was read.
    Unchanged,
    /// Every object was read.
    Objects {
        /// The validated objects, ready to be applied.
        content: Arc<Prepared>,
        /// Secrets of this revision that have no owner yet.
        unowned: Vec<SecretKey>,
    },
    /// Referenced Secrets that are not immutable, as `namespace/name`.
    Mutable(Vec<String>),
    /// Some object cannot be read; the text names the object and the cause.
    Missing(String),
}

/// A Secret on the cluster, in the state in which it was read.
pub(super) struct SecretKey {
    pub(super) place: SecretPlace,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
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

type Secrets = BTreeMap<SecretPlace, Result<Option<Secret>, String>>;

/// Reason why an object cannot be had.
enum Missing {
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
            .map(|(place, _)| place.to_string())
            .collect();
        if !mutable.is_empty() && !lenient {
            return Gathered::Mutable(mutable);
        }
        let mut content = Content {
            phases: Vec::new(),
            protections: Vec::new(),
        };
        let mut size = 0;
        for phase in set.spec.phases.iter().flatten() {
            let (mut objects, mut rules) = (Vec::new(), Vec::new());
            for entry in &phase.objects {
                let found = match (&entry.object, &entry.ref_) {
                    (Some(object), _) => Ok(object.clone()),
                    (None, Some(reference)) => self.resolve(reference, &secrets, &mut size),
                    (None, None) => Err(Missing::Failed("neither object nor ref is set".to_owned())),
                };
                match found {
                    Ok(object) => {
                        objects.push(object);
                        let rule = entry.collision_protection.or(phase.collision_protection);
                        rules.push(rule.unwrap_or(set.spec.collision_protection));
                    }
                    Err(Missing::Gone(_)) if lenient => {}
                    Err(Missing::Gone(why) | Missing::Failed(why)) => {
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

    /// Reads each referenced Secret once.
    async fn secrets(&self, set: &ClusterObjectSet) -> Secrets {
        let read = async |place: SecretPlace| {
            let call = content::secret(&self.client, &place);
            let answer = limited("reading a Secret of", &place.name, call).await;
            (place, answer.map_err(|error| error.why()))
        };
        let reads: Vec<_> = content::places(set, &self.system_namespace)
            .into_iter()
            .map(|place| read(place).boxed())
            .collect();
        stream::iter(reads).buffered(SECRETS_AT_ONCE).collect().await
    }

    /// Returns the object of a reference, and adds its size to `total`.
    fn resolve(
        &self,
        reference: &ObjectSourceRef,
        secrets: &Secrets,
        total: &mut usize,
    ) -> Result<Value, Missing> {
        let place = SecretPlace::of(reference, &self.system_namespace);
        let secret = match secrets.get(&place) {
            Some(Err(why)) => return Err(Missing::Failed(format!("getting Secret {place}: {why}"))),
            Some(Ok(secret)) => secret.as_ref(),
            None => None,
        };
        let found = content::sized_object(reference, &place, secret);
        let (object, size) = found.map_err(|why| match why {
            Unresolved::Gone(_) => Missing::Gone(why.to_string()),
            _ => Missing::Failed(why.to_string()),
        })?;
        *total = total.saturating_add(size);
        if *total > CONTENT_LIMIT {
            return Err(Missing::Failed(format!(
                "the objects of the revision exceed their maximum total size ({CONTENT_LIMIT} bytes)"
            )));
        }
        Ok(object)
    }
}

/// Returns the Secrets that carry the name of the revision and have no owner yet but the extension of the revision.
fn unowned(set: &ClusterObjectSet, secrets: &Secrets) -> Vec<SecretKey> {
    let present = secrets
        .iter()
        .filter_map(|(key, secret)| Some((key, secret.as_ref().ok()?.as_ref()?)));
    present
        .filter(|(_, secret)| is_unowned(set, secret))
        .map(|(place, secret)| SecretKey {
            place: place.clone(),
            uid: secret.uid(),
            resource_version: secret.resource_version(),
        })
        .collect()
}

/// Returns true if the Secret is one of this revision and has no owner but the extension.
///
/// A Secret of a new extension of the same name can have the same name and the same content. A process that no longer leads must not give
/// it to a revision that is gone: the garbage collector would delete it.
fn is_unowned(set: &ClusterObjectSet, secret: &Secret) -> bool {
    let owns_both = |owner: &OwnerReference| set.owner_references().iter().any(|of| of.uid == owner.uid);
    secret.labels().get(keys::REVISION_NAME_LABEL) == Some(&set.name_any())
        && secret.owner_references().iter().all(owns_both)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_of_another_owner_stays_there() {
        let owner = |kind: &str, uid: &str| json!({"apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": "x", "uid": uid});
        let set: ClusterObjectSet = serde_json::from_value(json!({
            "metadata": {"name": "x-1", "uid": "revision", "ownerReferences": [owner("ClusterExtension", "extension")]},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}}))
        .unwrap();
        let takes = |revision: &str, owners: &[Value]| {
            let labels = json!({keys::REVISION_NAME_LABEL: revision});
            let metadata = json!({"name": "x-1-aa", "labels": labels, "ownerReferences": owners});
            is_unowned(
                &set,
                &serde_json::from_value(json!({ "metadata": metadata })).unwrap(),
            )
        };
        assert!(takes("x-1", &[owner("ClusterExtension", "extension")]));
        assert!(
            takes("x-1", &[]),
            "an earlier release of the controller set no owner"
        );
        for (revision, others) in [
            ("x-2", vec![]),
            ("x-1", vec![owner("ClusterObjectSet", "revision")]),
            ("x-1", vec![owner("ClusterObjectSet", "new revision")]),
            ("x-1", vec![owner("ClusterExtension", "new extension")]),
        ] {
            assert!(!takes(revision, &others), "{revision} {others:?}");
        }
    }
}
