//! Registrations of the API services that a bundle's deployments serve, and the rights that such a server needs.
//!
//! The values are those of OLM Classic, so a bundle that it installed works unchanged. The kinds, their limits and the
//! delegated authentication are described in Kubernetes' "Configure the Aggregation Layer".

use std::collections::BTreeMap;

use olm_text::object::text;
use serde_json::{Value, json};

use super::certificates::{self, Target};
use super::{Context, names};
use crate::RenderError;
use crate::model::ApiService;

/// Priority of the group among all groups, as OLM Classic sets it.
const GROUP_PRIORITY: i32 = 2000;
/// Priority of the version among versions of its group, as OLM Classic sets it.
const VERSION_PRIORITY: i32 = 20;
/// Role that lets a server read how the API server authenticates to it; it exists in `kube-system` of every cluster.
const AUTHENTICATION_READER: &str = "extension-apiserver-authentication-reader";
/// `ClusterRole` that lets a server ask the API server who a client is and what it may do.
const AUTH_DELEGATOR: &str = "system:auth-delegator";

/// Renders one `APIService` for each group and version.
pub(super) fn registrations(context: &Context<'_>) -> Result<Vec<Value>, RenderError> {
    let by_name: BTreeMap<String, &ApiService> = context
        .bundle
        .csv
        .api_services
        .iter()
        .map(|service| (service.name(), service))
        .collect();
    let mut out = Vec::with_capacity(by_name.len());
    for (name, service) in by_name {
        let mut object = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": {
                "group": service.group, "version": service.version,
                "groupPriorityMinimum": GROUP_PRIORITY, "versionPriority": VERSION_PRIORITY,
                "service": {
                    "namespace": context.namespace, "name": names::service_name(&service.deployment),
                    "port": service.port(),
                },
            },
            "status": {},
        });
        certificates::inject(context, &service.deployment, &mut object, Target::ApiService)?;
        out.push(object);
    }
    Ok(out)
}

/// Renders the two bindings that every aggregated API server needs to authenticate and authorize its clients, for each
/// deployment that serves API services.
pub(super) fn bindings(context: &Context<'_>) -> Vec<Value> {
    let csv = &context.bundle.csv;
    let is_server = |name: &str| csv.api_services.iter().any(|service| service.deployment == name);
    let servers: BTreeMap<&str, &Value> = csv
        .deployments
        .iter()
        .filter(|deployment| is_server(&deployment.name))
        .map(|deployment| (deployment.name.as_str(), &deployment.spec))
        .collect();
    servers
        .into_iter()
        .flat_map(|(name, spec)| {
            // Both objects live outside the install namespace, so its name keeps them apart from those of other servers.
            let base = format!("{}.{}", names::service_name(name), context.namespace);
            let account = match text(spec, "/template/spec/serviceAccountName") {
                "" => "default",
                account => account,
            };
            let subjects =
                json!([{"kind": "ServiceAccount", "name": account, "namespace": context.namespace}]);
            let role = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
            [
                json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                    "metadata": {"name": format!("{base}-auth-reader"), "namespace": "kube-system"},
                    "subjects": subjects, "roleRef": role("Role", AUTHENTICATION_READER),
                }),
                json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                    "metadata": {"name": format!("{base}-auth-delegator")},
                    "subjects": subjects, "roleRef": role("ClusterRole", AUTH_DELEGATOR),
                }),
            ]
        })
        .collect()
}
