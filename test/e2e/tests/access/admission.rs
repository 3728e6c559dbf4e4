//! Optional admission policies, as the real API server enforces them.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use olm_e2e::cluster::Cluster;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{ControlPlane, eventually, install_crds};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_mins(1);
const CONTROLLER: &str = "system:serviceaccount:olmv1-system:operator-controller-controller-manager";
/// The policy that requires a service account.
const POLICY: &str = "clusterextension-serviceaccount-required";
/// Group with write access to the kinds by RBAC.
const WRITERS: &str = "writers";

fn kind(kind: &str, plural: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk("olm.operatorframework.io", "v1", kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

fn extensions(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &kind("ClusterExtension", "clusterextensions"))
}

fn sets(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &kind("ClusterObjectSet", "clusterobjectsets"))
}

fn extension(name: &str, account: &Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name},
        "spec": {"namespace": "installed", "serviceAccount": account,
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}},
    }))?)
}

fn set(name: &str) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "metadata": {"name": name},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "phases": []},
    }))?)
}

/// Returns the message of a policy's refusal, or an error for any other response.
fn refusal<T: std::fmt::Debug>(answer: kube::Result<T>) -> Result<String> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(status.message.clone()),
        other => anyhow::bail!("not refused: {other:?}"),
    }
}

async fn merge(api: &Api<DynamicObject>, name: &str, change: Value) -> kube::Result<DynamicObject> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change))
        .await
}

async fn start() -> Result<(ControlPlane, Cluster)> {
    let control_plane = ControlPlane::start().await?;
    let cluster = Cluster::new(control_plane.client());
    install_crds(&control_plane.client()).await?;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": WRITERS},
            "rules": [{"apiGroups": ["olm.operatorframework.io"], "resources": ["*"], "verbs": ["*"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": WRITERS},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": WRITERS},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": WRITERS},
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CONTROLLER},
            ],
        }),
    ] {
        cluster.apply(&object).await?;
    }
    Ok((control_plane, cluster))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_users_leave_out_the_service_account() -> Result<()> {
    let (control_plane, cluster) = start().await?;
    let user =
        async |name: &str| anyhow::Ok(extensions(control_plane.client_for(name, Some(WRITERS)).await?));
    let (jane, ops) = (user("jane").await?, user("ops").await?);
    let administrator = extensions(control_plane.client());
    let controller = extensions(control_plane.client_for(CONTROLLER, None).await?);
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client());
    let params = PostParams::default();
    let with_account = json!({"name": "installer"});
    jane.create(&params, &extension("before", &Value::Null)?).await?;

    cluster
        .apply_file("config/optional/require-service-account/policy.yaml", &[])
        .await?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let text = eventually(TIMEOUT, "the policy to be in force", async || {
        refusal(jane.create(&dry, &extension("refused", &Value::Null)?).await)
    })
    .await?;
    let expected = "spec.serviceAccount.name is required: name the ServiceAccount in namespace \"installed\" whose rights limit \
                    the installation; only users and groups that ValidatingAdmissionPolicy \
                    clusterextension-serviceaccount-required lists may leave it out, and \"jane\" is not listed";
    ensure!(text.contains(expected), "{text}");

    // A spec with an account passes, as long as the account stays.
    jane.create(&params, &extension("limited", &with_account)?)
        .await?;
    let selects = json!({"spec": {"source": {"catalog": {"version": "1.0.0"}}}});
    merge(&jane, "limited", selects.clone()).await?;
    let without = json!({"spec": {"serviceAccount": null}});
    ensure!(refusal(merge(&jane, "limited", without.clone()).await)?.contains(expected));

    // Objects from before the policy: metadata and status are writable, the spec is not. The schema refuses an empty
    // name, so that null is the only way to omit it.
    merge(&jane, "before", json!({"metadata": {"labels": {"a": "b"}}})).await?;
    ensure!(refusal(merge(&jane, "before", selects.clone()).await)?.contains(expected));
    let with_finalizer = json!({"metadata": {"finalizers": ["olm.operatorframework.io/test"]}});
    merge(&controller, "before", with_finalizer).await?;
    let status = json!({"status": {"conditions": []}});
    controller
        .patch_status("before", &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    merge(&controller, "before", json!({"metadata": {"finalizers": null}})).await?;

    // The policy lists the group from the start, the user later.
    administrator
        .create(&params, &extension("free", &Value::Null)?)
        .await?;
    ensure!(
        refusal(ops.create(&params, &extension("operated", &Value::Null)?).await)?
            .contains("\"ops\" is not listed")
    );
    let users = json!({"spec": {"variables": [{"name": "users", "expression": "['somebody', 'ops']"}]}});
    policies
        .patch(POLICY, &PatchParams::default(), &Patch::Strategic(&users))
        .await?;
    eventually(TIMEOUT, "a listed user to be admitted", async || {
        Ok(ops.create(&dry, &extension("operated", &Value::Null)?).await?)
    })
    .await?;
    merge(&ops, "limited", without).await?;
    ensure!(refusal(jane.create(&dry, &extension("refused", &Value::Null)?).await)?.contains(expected));

    // A policy that is created anew knows its list: a parameter would be lost until the API server restarts.
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(control_plane.client());
    bindings.delete(POLICY, &DeleteParams::default()).await?;
    policies.delete(POLICY, &DeleteParams::default()).await?;
    eventually(TIMEOUT, "the policy to be gone", async || {
        Ok(jane.create(&dry, &extension("admitted", &Value::Null)?).await?)
    })
    .await?;
    cluster
        .apply_file("config/optional/require-service-account/policy.yaml", &[])
        .await?;
    eventually(TIMEOUT, "the policy to be in force again", async || {
        refusal(jane.create(&dry, &extension("refused", &Value::Null)?).await)
    })
    .await?;
    administrator
        .create(&dry, &extension("admitted", &Value::Null)?)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_controller_writes_revisions() -> Result<()> {
    let (control_plane, cluster) = start().await?;
    let jane = sets(control_plane.client_for("jane", Some(WRITERS)).await?);
    let controller = sets(control_plane.client_for(CONTROLLER, None).await?);
    cluster
        .apply_file("config/optional/protect-revisions/policy.yaml", &[])
        .await?;
    let params = PostParams::default();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let text = eventually(TIMEOUT, "the policy to be in force", async || {
        refusal(jane.create(&dry, &set("x-1")?).await)
    })
    .await?;
    let expected = "ClusterObjectSets are written by operator-controller, and \"jane\" is not listed in \
                    ValidatingAdmissionPolicy clusterobjectset-writers; change the ClusterExtension instead";
    ensure!(text.contains(expected), "{text}");

    controller.create(&params, &set("x-1")?).await?;
    for change in [
        json!({"spec": {"lifecycleState": "Archived"}}),
        json!({"metadata": {"annotations": {"olm.operatorframework.io/service-account-name": "other"}}}),
        json!({"metadata": {"labels": {"olm.operatorframework.io/owner-name": "other"}}}),
    ] {
        let answer = merge(&jane, "x-1", change.clone()).await;
        ensure!(refusal(answer)?.contains(expected), "{change}");
        merge(&controller, "x-1", change).await?;
    }
    // The garbage collector and administrators with a stuck object need these changes.
    merge(
        &jane,
        "x-1",
        json!({"metadata": {"finalizers": null, "ownerReferences": null}}),
    )
    .await?;
    jane.delete("x-1", &DeleteParams::default()).await?;
    Ok(())
}
