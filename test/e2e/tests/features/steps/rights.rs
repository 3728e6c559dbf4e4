//! Steps about the service account that an extension is installed with.

use cucumber::when;
use serde_json::json;

use crate::world::OlmWorld;

/// What the bundles of the features take, and no more; bound to the accounts of the namespace as a group.
#[when("the installer is granted its rights")]
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
