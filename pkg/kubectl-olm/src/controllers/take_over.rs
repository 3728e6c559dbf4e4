//! Takes over Deployments that another tool applied.
//!
//! A forced server-side apply takes over only the fields that it sets. Fields that the manifests lack stay with the other
//! tool: upstream's volumes of Secrets, for example, without which no new pod starts. The tool's entries of
//! `metadata.managedFields` are therefore given to this program before the apply, as `kubectl apply --server-side` does after a
//! client-side apply. The apply then removes the fields that the manifests lack.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use olm_text::object::{ObjectId, text};
use serde_json::{Map, Value, json};

use super::title;
use crate::commands::common::progress;
use crate::source::{Cluster, FIELD_MANAGER, Kinds, SourceError};

/// Attempts to write an object that others write, too.
const ATTEMPTS: usize = 5;
/// Field manager of `kubectl apply` without `--server-side`.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// Takes over the fields of other tools in the Deployments among `objects`.
///
/// # Errors
/// The cluster cannot be read or refuses the write.
pub(crate) async fn take_over(
    cluster: &Cluster,
    objects: &[Value],
    kinds: &Kinds,
    dry_run: bool,
) -> Result<(), SourceError> {
    let deployments = objects
        .iter()
        .filter(|object| ObjectId::of(object).kind == "Deployment");
    for deployment in deployments {
        let managers = one(cluster, deployment, kinds, dry_run).await?;
        if !managers.is_empty() {
            let verb = if dry_run { "would be" } else { "are" };
            progress(&format!(
                "{}: the fields of {} {verb} taken over; those that the manifests lack {verb} removed",
                title(deployment),
                managers.join(", ")
            ));
        }
    }
    Ok(())
}

/// Takes over one object. Returns the names of the other tools.
async fn one(
    cluster: &Cluster,
    object: &Value,
    kinds: &Kinds,
    dry_run: bool,
) -> Result<Vec<String>, SourceError> {
    let mut attempts = 1;
    loop {
        let Some(present) = cluster.present(object, kinds).await? else {
            return Ok(Vec::new());
        };
        let entries = present.metadata.managed_fields.unwrap_or_default();
        let Some(taken) = Taken::of(entries, text(object, "/apiVersion")) else {
            return Ok(Vec::new());
        };
        if dry_run {
            return Ok(taken.managers);
        }
        // Others may write the object at the same time; their entries must not be lost.
        let patch = json!({"metadata": {"uid": present.metadata.uid,
            "resourceVersion": present.metadata.resource_version, "managedFields": taken.entries}});
        match cluster.merge(object, &patch, kinds, false).await {
            Err(error) if error.conflict().is_some() && attempts < ATTEMPTS => attempts += 1,
            written => return written.map(|_| taken.managers),
        }
    }
}

/// `metadata.managedFields` after the change.
#[derive(Debug)]
struct Taken {
    /// All entries.
    entries: Vec<ManagedFieldsEntry>,
    /// Names of the tools whose entries are gone.
    managers: Vec<String>,
}

impl Taken {
    /// Gives the entries of other tools to this program; none if there are no such entries.
    fn of(entries: Vec<ManagedFieldsEntry>, api_version: &str) -> Option<Self> {
        let (taken, mut entries): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .partition(|entry| is_of_object(entry, api_version) && applied_all(entry));
        let first = taken.first()?.clone();
        let own = entries.iter().position(|entry| {
            is_of_object(entry, api_version) && is_own(entry) && entry.operation.as_deref() == Some("Apply")
        });
        let mut own = match own {
            Some(at) => entries.remove(at),
            None => ManagedFieldsEntry {
                manager: Some(FIELD_MANAGER.to_owned()),
                operation: Some("Apply".to_owned()),
                fields_v1: None,
                ..first
            },
        };
        let mut fields = Map::new();
        for entry in taken.iter().chain([&own]) {
            if let Some(FieldsV1(Value::Object(more))) = &entry.fields_v1 {
                add(&mut fields, more);
            }
        }
        own.fields_v1 = Some(FieldsV1(Value::Object(fields)));
        entries.push(own);
        let managers: BTreeSet<String> = taken.into_iter().filter_map(|entry| entry.manager).collect();
        Some(Self {
            entries,
            managers: managers.into_iter().collect(),
        })
    }
}

/// Returns true if the entry is about the object itself, in this version of its API.
fn is_of_object(entry: &ManagedFieldsEntry, api_version: &str) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
        && entry.api_version.as_deref() == Some(api_version)
}

fn is_own(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER)
}

/// Returns true if another tool wrote the whole Deployment: nobody can change the selector later. Those who change a part,
/// such as `kubectl set env`, keep their fields.
fn applied_all(entry: &ManagedFieldsEntry) -> bool {
    let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
    let wrote_selector = fields.is_some_and(|fields| fields.pointer("/f:spec/f:selector").is_some());
    !is_own(entry) && (wrote_selector || entry.manager.as_deref() == Some(CLIENT_SIDE_APPLY))
}

/// Adds a set of fields. The key `.` stands for the field itself in a set of fields below it; a field alone is an empty set.
fn add(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, below) in more {
        match fields.get_mut(key) {
            Some(Value::Object(present)) => {
                if let Value::Object(below) = below {
                    if present.is_empty() != below.is_empty() {
                        present.insert(".".to_owned(), json!({}));
                    }
                    add(present, below);
                }
            }
            _ => {
                fields.insert(key.clone(), below.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> ManagedFieldsEntry {
        serde_json::from_value(
            json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "subresource": subresource, "fieldsV1": fields}),
        )
        .unwrap()
    }

    fn names(entries: &[ManagedFieldsEntry]) -> Vec<&str> {
        entries
            .iter()
            .filter_map(|entry| entry.manager.as_deref())
            .collect()
    }

    /// Returns a set of fields with the selector and other fields of the spec.
    fn whole(more: &Value) -> Value {
        let mut spec = json!({"f:selector": {}});
        let more = more.as_object().unwrap().clone();
        spec.as_object_mut().unwrap().extend(more);
        json!({"f:spec": spec})
    }

    #[test]
    fn fields_of_tools_that_applied_the_deployment_are_taken_over() {
        let volumes = json!({"f:volumes": {"k:{\"name\":\"certs\"}": {".": {}, "f:name": {}}}});
        let environment = json!({"f:spec": {"f:env": {"k:{\"name\":\"HTTPS_PROXY\"}": {}}}});
        let entries = vec![
            entry("helm", "Update", "", &whole(&volumes)),
            entry(
                "kubectl-client-side-apply",
                "Update",
                "",
                &json!({"f:spec": {"f:replicas": {}}}),
            ),
            entry("kubectl-set", "Update", "", &environment),
            entry("kube-controller-manager", "Update", "status", &whole(&json!({}))),
        ];
        let taken = Taken::of(entries, "apps/v1").unwrap();
        assert_eq!(taken.managers, ["helm", "kubectl-client-side-apply"]);
        assert_eq!(
            names(&taken.entries),
            ["kubectl-set", "kube-controller-manager", FIELD_MANAGER]
        );
        let own = &taken.entries[2];
        assert_eq!(own.operation.as_deref(), Some("Apply"));
        let mut all = volumes;
        all["f:replicas"] = json!({});
        assert_eq!(own.fields_v1.as_ref().unwrap().0, whole(&all));
        assert_eq!(taken.entries[0].fields_v1.as_ref().unwrap().0, environment);
        assert!(
            Taken::of(taken.entries, "apps/v1").is_none(),
            "nothing is left to take over"
        );
    }

    #[test]
    fn the_entry_of_a_former_apply_grows() {
        let ours = |fields: &Value| entry(FIELD_MANAGER, "Apply", "", fields);
        let entries = vec![
            ours(&whole(&json!({"f:a": {}, "f:b": {"f:c": {}}}))),
            entry(
                "helm",
                "Apply",
                "",
                &whole(&json!({"f:a": {"f:d": {}}, "f:b": {}})),
            ),
        ];
        let taken = Taken::of(entries, "apps/v1").unwrap();
        let both = json!({"f:a": {".": {}, "f:d": {}}, "f:b": {".": {}, "f:c": {}}});
        assert_eq!(taken.entries, [ours(&whole(&both))]);
    }

    #[test]
    fn entries_of_another_version_of_the_api_stay() {
        let entries = vec![entry("helm", "Update", "", &whole(&json!({})))];
        assert!(Taken::of(entries, "apps/v2").is_none());
    }
}
