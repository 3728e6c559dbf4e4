//! Finds the field manager that approved a plan.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

/// Path of `spec.rollout.approvedPlan` in `fieldsV1`.
const FIELD: &str = "/f:spec/f:rollout/f:approvedPlan";

/// Manager that set `spec.rollout.approvedPlan`, with the time of its last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approver {
    /// Name of the field manager.
    pub manager: String,
    /// Time of its last write to the extension; RFC 3339.
    pub at: Option<String>,
}

/// Returns the managers of the field, in the order of the list; several may have applied the same value.
pub fn approvers(fields: &[ManagedFieldsEntry]) -> Vec<Approver> {
    let owns = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        entry.subresource.as_deref().unwrap_or_default().is_empty()
            && fields.is_some_and(|fields| fields.0.pointer(FIELD).is_some())
    };
    let of = |entry: &ManagedFieldsEntry| Approver {
        manager: entry.manager.clone().unwrap_or_else(|| "unknown".to_owned()),
        at: entry.time.as_ref().map(|time| time.0.to_string()),
    };
    fields.iter().filter(owns).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_managers_of_the_field_are_named() {
        let fields: Vec<ManagedFieldsEntry> = serde_json::from_value(json!([
            {"manager": "flux", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
             "fieldsV1": {"f:spec": {"f:rollout": {"f:approval": {}}}}},
            {"manager": "kubectl-olm", "operation": "Update", "time": "2026-01-02T00:00:00Z",
             "fieldsV1": {"f:spec": {"f:rollout": {"f:approvedPlan": {}}}}},
        ]))
        .unwrap();
        assert_eq!(
            approvers(&fields),
            [Approver {
                manager: "kubectl-olm".to_owned(),
                at: Some("2026-01-02T00:00:00Z".to_owned()),
            }]
        );
        assert_eq!(approvers(&[]), []);
    }
}
