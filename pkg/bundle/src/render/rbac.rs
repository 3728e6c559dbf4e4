//! Service accounts, roles and bindings.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Context;
use super::names;
use crate::model::{Permission, Rule};

const GROUP: &str = "rbac.authorization.k8s.io";

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
pub(super) fn namespaced(context: &Context<'_>) -> Vec<Value> {
    if context.all_namespaces() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for target in &context.targets {
        for permission in &context.bundle.csv.permissions {
            let name = names::rbac(context.bundle.csv_name(), permission);
            let metadata = json!({"name": name, "namespace": target});
            out.push(
                json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": metadata,
                            "rules": rules(permission)}),
            );
            out.push(
                json!({"apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": metadata,
                            "subjects": [subject(context, permission)],
                            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name}}),
            );
        }
    }
    out
}

/// Renders cluster roles and bindings; if all namespaces are targets, also for the namespaced permissions.
pub(super) fn cluster(context: &Context<'_>) -> Vec<Value> {
    let csv = &context.bundle.csv;
    let mut permissions = csv.cluster_permissions.clone();
    if context.all_namespaces() {
        permissions.extend(csv.permissions.iter().cloned().map(promoted));
    }
    let mut out = Vec::new();
    for permission in &permissions {
        let name = names::rbac(&csv.name, permission);
        out.push(
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
                        "rules": rules(permission)}),
        );
        out.push(
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
                        "metadata": {"name": name}, "subjects": [subject(context, permission)],
                        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}}),
        );
    }
    out
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
