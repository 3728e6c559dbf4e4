//! Steps about the service account of an extension's installation.

use cucumber::when;
use serde_json::json;

use crate::world::OlmWorld;

/// Grants exactly the rights that the bundles of the features need, to the group of the namespace's service
/// accounts.
#[when("the installer is granted its permissions")]
async fn grant(world: &mut OlmWorld) -> anyhow::Result<()> {
    let name = format!("installer-{}", world.id);
    let all = ["create", "delete", "get", "patch", "update"];
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let rbac = "rbac.authorization.k8s.io";
    let cluster = world.cluster();
    cluster
        .apply(&json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [
                rule("", &["configmaps", "serviceaccounts"], &all),
                rule("apps", &["deployments"], &all),
                rule(rbac, &["clusterroles", "clusterrolebindings"], &all),
                rule("", &["configmaps", "namespaces"], &["get", "list", "watch"]),
                rule("olm.operatorframework.io", &["clusterobjectsets/finalizers"], &["update"]),
            ],
        }))
        .await?;
    cluster
        .apply(&json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": rbac, "kind": "Group",
                "name": format!("system:serviceaccounts:{}", world.namespace())}],
        }))
        .await
}
