//! Service accounts, roles and bindings.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Context;
use super::names;
use crate::RenderError;
use crate::model::{Permission, Rule};

const GROUP: &str = "rbac.authorization.k8s.io";
/// Maximum memory of all roles and bindings, in bytes: each watched namespace gets a copy of the permissions.
const MAX_ROLES: usize = 64 << 20;

/// Roles and bindings so far, and their memory.
#[derive(Default)]
struct Roles {
    objects: Vec<Value>,
    memory: usize,
}

impl Roles {
    fn add(&mut self, object: Value) -> Result<(), RenderError> {
        self.memory = self.memory.saturating_add(olm_yaml::memory(&object));
        self.objects.push(object);
        if self.memory > MAX_ROLES {
            return Err(RenderError::Unsupported(format!(
                "the size of all roles and bindings, one copy per watched namespace, exceeds the limit of {MAX_ROLES} bytes"
            )));
        }
        Ok(())
    }
}

/// Renders a service account for every name used, except `default`, which every namespace has.
pub(super) fn service_accounts(context: &Context<'_>) -> Vec<Value> {
    let csv = &context.bundle.csv;
    let names: BTreeSet<&str> = csv
        .permissions
        .iter()
        .chain(&csv.cluster_permissions)
        .map(|permission| permission.service_account.as_str())
        .filter(|name| !name.is_empty() && *name != "default")
        .collect();
    names
        .into_iter()
        .map(|name| {
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                   "metadata": {"name": name, "namespace": context.namespace}})
        })
        .collect()
}

/// Renders roles and bindings in every target namespace; none if all namespaces are targets.
pub(super) fn namespaced(context: &Context<'_>) -> Result<Vec<Value>, RenderError> {
    if context.all_namespaces() {
        return Ok(Vec::new());
    }
    let mut out = Roles::default();
    for target in &context.targets {
        for permission in &context.bundle.csv.permissions {
            let name = names::rbac(context.bundle.csv_name(), permission);
            let metadata = json!({"name": name, "namespace": target});
            out.add(
                json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": metadata,
                            "rules": rules(permission)}),
            )?;
            out.add(
                json!({"apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": metadata,
                            "subjects": [subject(context, permission)],
                            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name}}),
            )?;
        }
    }
    Ok(out.objects)
}

/// Renders cluster roles and bindings; if all namespaces are targets, also for the namespaced permissions.
pub(super) fn cluster(context: &Context<'_>) -> Result<Vec<Value>, RenderError> {
    let csv = &context.bundle.csv;
    let mut permissions = csv.cluster_permissions.clone();
    if context.all_namespaces() {
        permissions.extend(csv.permissions.iter().cloned().map(promoted));
    }
    let mut out = Roles::default();
    for permission in &permissions {
        let name = names::rbac(&csv.name, permission);
        out.add(
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
                        "rules": rules(permission)}),
        )?;
        out.add(
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
                        "metadata": {"name": name}, "subjects": [subject(context, permission)],
                        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}}),
        )?;
    }
    Ok(out.objects)
}

/// Adds the right to list namespaces, which an operator that watches all of them needs.
fn promoted(mut permission: Permission) -> Permission {
    permission.rules.get_or_insert_default().push(Rule {
        verbs: Some(["get", "list", "watch"].map(ToOwned::to_owned).to_vec()),
        api_groups: vec![String::new()],
        resources: vec!["namespaces".to_owned()],
        ..Rule::default()
    });
    permission
}

fn subject(context: &Context<'_>, permission: &Permission) -> Value {
    json!({"kind": "ServiceAccount", "name": names::account(permission), "namespace": context.namespace})
}

fn rules(permission: &Permission) -> Value {
    let Some(rules) = &permission.rules else {
        return Value::Null;
    };
    rules
        .iter()
        .map(|rule| {
            let mut out = Map::new();
            out.insert("verbs".to_owned(), json!(rule.verbs));
            for (key, list) in rule.lists() {
                if !list.is_empty() {
                    out.insert(key.to_owned(), json!(list));
                }
            }
            Value::Object(out)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use crate::{RenderOptions, parse, render};

    /// A permission of 1 MiB fits one namespace, and not 100.
    #[test]
    fn copies_of_the_permissions_are_limited() {
        let names: Vec<String> = (0..8192).map(|at| format!("{at:0>128}")).collect();
        let rule =
            json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": names});
        let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "test.v1"}, "spec": {
                "installModes": [{"type": "MultiNamespace", "supported": true}],
                "install": {"strategy": "deployment", "spec": {"deployments": [],
                    "permissions": [{"serviceAccountName": "test", "rules": [rule]}]}}}});
        let annotations =
            json!({"annotations": {"operators.operatorframework.io.bundle.package.v1": "test"}});
        let files = [
            ("manifests/csv.yaml", csv),
            ("metadata/annotations.yaml", annotations),
        ];
        let files = files.map(|(path, object)| (path.to_owned(), object.to_string().into_bytes()));
        let bundle = parse(&BTreeMap::from(files)).unwrap();
        let rendered = |count: usize| {
            let namespaces: Vec<String> = (0..count).map(|at| format!("n{at}")).collect();
            let options = RenderOptions {
                config: Some(json!({"watchNamespaces": namespaces})),
                single_own_namespace: true,
                ..RenderOptions::new("test")
            };
            render(&bundle, &options).map_err(|error| error.to_string())
        };
        assert_eq!(rendered(2).unwrap().len(), 5);
        let error = rendered(100).unwrap_err();
        assert!(
            error.starts_with("unsupported bundle: the size of all roles"),
            "{error}"
        );
    }
}
