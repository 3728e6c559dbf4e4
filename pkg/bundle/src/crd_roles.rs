//! `ClusterRole`s for the custom resources of CRDs, aggregated to Kubernetes' own `view`, `edit` and `admin`. They are no
//! part of rendering: operator-controller adds them to the objects of a bundle.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use olm_text::head;
use olm_text::object::{ObjectId, metadata_name, text};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Roles of each CRD: suffix of the name, which is also the role of Kubernetes, and the verbs on its custom resources, as in OLM
/// Classic. Kubernetes' `edit` includes `view`, and `admin` both.
const ROLES: [(&str, &[&str]); 3] = [
    ("view", &["get", "list", "watch"]),
    ("edit", &["create", "update", "patch", "delete"]),
    ("admin", &["*"]),
];
/// Maximum length of the name of a role.
const MAX_NAME: usize = 253;
/// Number of hexadecimal digits that tell shortened names apart.
const DIGITS: usize = 16;

/// Returns three `ClusterRole`s for each CRD among `objects`: `CRD-view`, `CRD-edit` and `CRD-admin`. Roles of the bundle itself take
/// precedence over those of the same name.
#[must_use]
pub fn crd_roles(objects: &[Value]) -> Vec<Value> {
    let own: BTreeSet<&str> = objects
        .iter()
        .filter(|object| text(object, "/kind") == "ClusterRole")
        .map(metadata_name)
        .collect();
    roles(objects)
        .filter(|role| !own.contains(metadata_name(role)))
        .collect()
}

/// Returns the objects without the roles that [`crd_roles`] makes for the CRDs among them. Labels and annotations do not count:
/// operator-controller adds its own.
#[must_use]
pub fn without_crd_roles(objects: Vec<Value>) -> Vec<Value> {
    let made: BTreeMap<String, Value> = roles(&objects)
        .map(|mut role| (metadata_name(&role).to_owned(), role["rules"].take()))
        .collect();
    let is_made = |object: &Value| {
        text(object, "/kind") == "ClusterRole" && made.get(metadata_name(object)) == object.get("rules")
    };
    objects.into_iter().filter(|object| !is_made(object)).collect()
}

/// Makes the roles of all CRDs among `objects`.
fn roles(objects: &[Value]) -> impl Iterator<Item = Value> {
    let crds = objects.iter().filter(|object| ObjectId::of(object).is_crd());
    crds.flat_map(|crd| ROLES.map(|(level, verbs)| role(crd, level, verbs)))
}

fn role(crd: &Value, level: &str, verbs: &[&str]) -> Value {
    let name = metadata_name(crd);
    let mut rules = vec![json!({
        "apiGroups": [text(crd, "/spec/group")],
        "resources": [text(crd, "/spec/names/plural")],
        "verbs": verbs,
    })];
    if level == "view" {
        rules.push(json!({
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": [name],
            "verbs": ["get"],
        }));
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": name_of(name, level),
            "labels": {format!("rbac.authorization.k8s.io/aggregate-to-{level}"): "true"},
        },
        "rules": rules,
    })
}

/// Returns `CRD-LEVEL`. A name that would be too long is cut and gets a hash of the whole.
fn name_of(crd: &str, level: &str) -> String {
    let whole = format!("{crd}-{level}");
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let hash = HEXLOWER.encode(&Sha256::digest(crd.as_bytes()));
    let end = format!("-{}-{level}", head(&hash, DIGITS));
    format!("{}{end}", head(crd, MAX_NAME.saturating_sub(end.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(name: &str) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": "example.com", "names": {"plural": "kites", "kind": "Kite"}}})
    }

    #[test]
    fn made_roles_are_told_from_others() {
        let crd = crd("kites.example.com");
        let mut own = role(&crd, "edit", &["get"]);
        own["metadata"]["labels"] = json!({"owner": "x"});
        let bundle = vec![crd.clone(), own];
        let mut all = bundle.clone();
        all.extend(crd_roles(&[crd]));
        for object in &mut all {
            object["metadata"]["annotations"] = json!({"revision": "1"});
        }
        let left: Vec<String> = without_crd_roles(all)
            .iter()
            .map(|object| metadata_name(object).to_owned())
            .collect();
        assert_eq!(left, ["kites.example.com", "kites.example.com-edit"]);
        assert_eq!(without_crd_roles(bundle.clone()), bundle);
    }

    #[test]
    fn each_crd_gets_three_roles() {
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
        let roles = crd_roles(&[other, crd("kites.example.com")]);
        let names: Vec<&str> = roles.iter().map(metadata_name).collect();
        assert_eq!(
            names,
            [
                "kites.example.com-view",
                "kites.example.com-edit",
                "kites.example.com-admin"
            ]
        );
        assert_eq!(
            roles[0],
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "kites.example.com-view",
                    "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
                "rules": [
                    {"apiGroups": ["example.com"], "resources": ["kites"], "verbs": ["get", "list", "watch"]},
                    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                        "resourceNames": ["kites.example.com"], "verbs": ["get"]}]})
        );
        assert_eq!(roles[2]["rules"][0]["verbs"], json!(["*"]));
    }

    #[test]
    fn roles_of_the_bundle_take_precedence() {
        let own = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "kites.example.com-edit"}});
        let roles = crd_roles(&[own, crd("kites.example.com")]);
        assert_eq!(roles.len(), 2);
        assert!(
            roles
                .iter()
                .all(|role| metadata_name(role) != "kites.example.com-edit")
        );
    }

    #[test]
    fn long_names_are_bounded_and_distinct() {
        let long = |end: &str| format!("{}.{end}", "k".repeat(250 - end.len()));
        let names: BTreeSet<String> = ["a", "b"]
            .iter()
            .flat_map(|end| ROLES.map(|(level, _)| name_of(&long(end), level)))
            .collect();
        assert_eq!(names.len(), 6);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME));
        assert!(names.iter().any(|name| name.ends_with("-admin")));
    }
}
