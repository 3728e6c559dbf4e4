//! Steps about the service account of an extension's installation.

use cucumber::{then, when};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Api;
use kube::api::PostParams;
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

/// Asks the API server for the rights of a user in the scenario's namespace.
#[then(regex = r#"^user "([^"]+)" may (not )?(\w+) "([^"]+)"$"#)]
async fn may(world: &mut OlmWorld, user: String, not: String, verb: String, resource: String) {
    let (user, resource) = (world.expand(&user), world.expand(&resource));
    let (plural, group) = resource.split_once('.').unwrap_or((&resource, ""));
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {"user": user,
        "resourceAttributes": {"namespace": world.namespace(), "group": group, "resource": plural, "verb": verb}}}))
    .expect("a review");
    let api: Api<SubjectAccessReview> = Api::all(world.cluster().client());
    let wanted = not.is_empty();
    // The controller manager aggregates roles after a moment.
    world
        .eventually(
            &format!("the rights of {user} to {verb} {resource}"),
            async || {
                let answer = api.create(&PostParams::default(), &review).await?;
                let allowed = answer.status.is_some_and(|status| status.allowed);
                anyhow::ensure!(allowed == wanted, "allowed: {allowed}");
                Ok(())
            },
        )
        .await;
}
