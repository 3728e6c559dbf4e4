//! Objects of a revision, inline or in Secrets. The only place that reads them.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use olm_api::names::Segment;
use olm_api::{ClusterObjectSet, ObjectSourceRef};
use serde_json::Value;

use crate::plan::{UNPACKED_LIMIT, unpack_sized};

/// Maximum number of Secrets with objects that a caller reads or writes at once. Each can have a megabyte.
pub const SECRETS_AT_ONCE: usize = 4;

/// Namespace and name of a Secret with objects of a revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretPlace {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl SecretPlace {
    /// Returns the Secret that `reference` names; `system_namespace` is the namespace of a reference without one.
    #[must_use]
    pub fn of(reference: &ObjectSourceRef, system_namespace: &str) -> Self {
        let named = reference.namespace.as_deref().filter(|named| !named.is_empty());
        Self {
            namespace: named.unwrap_or(system_namespace).to_owned(),
            name: reference.name.clone(),
        }
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Reason why a Secret does not give an object.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// The Secret does not exist, so nothing will ever bring the object back.
    #[error("getting Secret {0}: secrets \"{name}\" not found", name = .0.name)]
    Gone(SecretPlace),
    /// The Secret has no such key.
    #[error("key \"{key}\" not found in Secret {place}")]
    NoKey {
        /// Key.
        key: String,
        /// Secret.
        place: SecretPlace,
    },
    /// The object is too large.
    #[error("key \"{key}\" of Secret {place} exceeds maximum size ({UNPACKED_LIMIT} bytes)")]
    TooLarge {
        /// Key.
        key: String,
        /// Secret.
        place: SecretPlace,
    },
    /// The content is no object.
    #[error("key \"{key}\" of Secret {place} holds no object: {error}")]
    NoObject {
        /// Key.
        key: String,
        /// Secret.
        place: SecretPlace,
        /// Fault of the content.
        error: std::io::Error,
    },
}

/// Returns the Secrets that a revision references, each once, in the order of its objects.
#[must_use]
pub fn places(set: &ClusterObjectSet, system_namespace: &str) -> Vec<SecretPlace> {
    let entries = set.spec.phases.iter().flatten().flat_map(|phase| &phase.objects);
    let references = entries.filter_map(|entry| entry.ref_.as_ref());
    let mut seen = BTreeSet::new();
    references
        .map(|reference| SecretPlace::of(reference, system_namespace))
        .filter(|place| seen.insert(place.clone()))
        .collect()
}

/// Reads a Secret. A Secret whose name no API server accepts does not exist.
///
/// # Errors
/// The API server's error.
pub async fn secret(client: &Client, place: &SecretPlace) -> kube::Result<Option<Secret>> {
    let (Ok(namespace), Ok(name)) = (Segment::new(&place.namespace), Segment::new(&place.name)) else {
        return Ok(None);
    };
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    api.get_opt(&name).await
}

/// Returns the object that `reference` names in its Secret; `None` for a Secret that does not exist.
///
/// # Errors
/// The reason why there is no object.
pub fn object(
    reference: &ObjectSourceRef,
    place: &SecretPlace,
    secret: Option<&Secret>,
) -> Result<Value, Unresolved> {
    sized_object(reference, place, secret).map(|(object, _)| object)
}

/// Returns the object that `reference` names like [`object`], and its unpacked size in bytes.
///
/// # Errors
/// The reason why there is no object.
pub fn sized_object(
    reference: &ObjectSourceRef,
    place: &SecretPlace,
    secret: Option<&Secret>,
) -> Result<(Value, usize), Unresolved> {
    let (key, place) = (reference.key.clone(), place.clone());
    let Some(secret) = secret else {
        return Err(Unresolved::Gone(place));
    };
    let Some(stored) = secret.data.as_ref().and_then(|data| data.get(&key)) else {
        return Err(Unresolved::NoKey { key, place });
    };
    match unpack_sized(&stored.0) {
        Ok(Some(sized)) => Ok(sized),
        Ok(None) => Err(Unresolved::TooLarge { key, place }),
        Err(error) => Err(Unresolved::NoObject { key, place, error }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn each_secret_is_named_once_in_order() {
        let reference = |name: &str, key: &str| json!({"ref": {"name": name, "key": key}});
        let set: ClusterObjectSet = serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "metadata": {"name": "x-1"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "phases": [
                {"name": "a", "objects": [reference("t", "one"), {"object": {"kind": "ConfigMap"}}]},
                {"name": "b", "objects": [reference("s", "two"), reference("t", "one"),
                    {"ref": {"name": "s", "namespace": "other", "key": "one"}}]}]},
        }))
        .unwrap();
        let places: Vec<String> = places(&set, "olm").iter().map(ToString::to_string).collect();
        assert_eq!(places, ["olm/t", "olm/s", "other/s"]);
    }

    #[test]
    fn objects_that_are_not_there_say_why() {
        let reference: ObjectSourceRef = serde_json::from_value(json!({"name": "s", "key": "one"})).unwrap();
        let place = SecretPlace::of(&reference, "olm");
        let why = |secret: Option<&Secret>| object(&reference, &place, secret).unwrap_err().to_string();
        assert_eq!(why(None), "getting Secret olm/s: secrets \"s\" not found");
        let mut secret = Secret::default();
        assert_eq!(why(Some(&secret)), "key \"one\" not found in Secret olm/s");
        let mut store = |text: &str| {
            let bytes = k8s_openapi::ByteString(text.as_bytes().to_vec());
            secret.data = Some(BTreeMap::from([("one".to_owned(), bytes)]));
            sized_object(&reference, &place, Some(&secret))
        };
        let text = r#"{"kind": "ConfigMap"}"#;
        assert_eq!(store(text).unwrap(), (json!({"kind": "ConfigMap"}), text.len()));
        let fault = store("{").unwrap_err().to_string();
        assert!(
            fault.starts_with("key \"one\" of Secret olm/s holds no object: "),
            "{fault}"
        );
    }
}
