//! Rollouts that are stuck: the status says why, in the words of the pods.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use olm_api::{ClusterObjectSet, keys};
use olm_harness::eventually;
use olm_operator_controller::ServiceAccountPolicy;
use serde_json::{Value, json};

use super::world::{LIMIT, NAMESPACE, World};

/// Time within which the status follows the pods. Generous, since the machine is shared; the target is two seconds.
const SOON: Duration = Duration::from_secs(10);

fn deployment(name: &str, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "manager", "image": image,
                "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}}}]}}}})
}

fn pods(world: &World) -> Api<Pod> {
    Api::namespaced(world.client.clone(), NAMESPACE)
}

/// Returns the pod of a Deployment once the stand-in has marked it.
async fn pod_of(world: &World, app: &str) -> Result<String> {
    eventually(LIMIT, &format!("a marked pod of {app}"), async || {
        let found = pods(world)
            .list(&ListParams::default().labels(&format!("app={app}")))
            .await?;
        let marked = found.items.iter().find(|pod| {
            let status = pod.status.as_ref();
            status.is_some_and(|status| status.container_statuses.is_some())
        });
        Ok(marked.context("none yet")?.name_any())
    })
    .await
}

/// Writes the state of the pod's container as a kubelet would.
async fn set_state(world: &World, pod: &str, state: &Value, last: &Value, restarts: i32) -> Result<()> {
    // The stand-in leaves a pod alone whose condition Ready has its reason.
    let status = json!({"containerStatuses": [{"name": "manager", "image": "i", "imageID": "", "ready": false,
        "restartCount": restarts, "state": state, "lastState": last}]});
    let (params, patch) = (PatchParams::default(), json!({ "status": status }));
    pods(world)
        .patch_status(pod, &params, &Patch::Merge(&patch))
        .await?;
    Ok(())
}

/// Waits until `Progressing` and `Ready` of the revision have exactly this message. Returns how long that took.
async fn says(world: &World, set: &str, message: &str) -> Result<Duration> {
    let start = Instant::now();
    eventually(LIMIT, message, async || {
        let conditions = conditions(&world.sets().get(set).await?);
        for type_ in ["Progressing", "Ready"] {
            let found = conditions.iter().find(|(found, _)| found == type_);
            match found {
                Some((_, said)) if said == message => {}
                other => bail!("{type_}: {other:?}"),
            }
        }
        Ok(())
    })
    .await?;
    Ok(start.elapsed())
}

fn conditions(set: &ClusterObjectSet) -> Vec<(String, String)> {
    let conditions = set.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.map(|c| (c.type_.clone(), c.message.clone())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_says_why_a_rollout_is_stuck() -> Result<()> {
    let world = World::start().await?;
    world.pods.set_ready(NAMESPACE, "stuck", false).await;
    let set = world
        .create("stuck", 1, vec![deployment("stuck", "i:v1")])
        .await?;
    let pod = pod_of(&world, "stuck").await?;
    let said = |why: &str| {
        format!(
            "Revision 1.0.0 is rolling out. Deployment {NAMESPACE}/stuck is not available: pod {pod}: {why}."
        )
    };
    let none = json!({});
    let waiting = |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "no configuration\n"}});
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let pull = said("container manager cannot start: ErrImagePull: \"i:v1: not found\"");
    let crash = "container manager ends again and again (CrashLoopBackOff), last with exit code 1, Error: \"no configuration\"";
    for (state, last, restarts, text) in [
        (waiting("ErrImagePull", "i:v1: not found"), &none, 0, pull.clone()),
        (
            waiting("CrashLoopBackOff", "back-off 10s"),
            &ended,
            3,
            said(crash),
        ),
        (
            running,
            &none,
            0,
            said(
                "container manager runs but is not ready: its readiness probe (HTTP GET /readyz on port 8081) has not passed",
            ),
        ),
        (waiting("ErrImagePull", "i:v1: not found"), &none, 0, pull.clone()),
    ] {
        set_state(&world, &pod, &state, last, restarts).await?;
        let took = says(&world, &set, &text).await?;
        ensure!(took < SOON, "the status followed after {took:?}");
    }
    // The Deployment's own line stays, and names the reason as well.
    world
        .until(
            &set,
            "Available",
            "False",
            "ProbeFailure",
            "Object Deployment.apps/v1 workload/stuck: ",
        )
        .await?;
    world
        .until(&set, "Available", "False", "ProbeFailure", "ErrImagePull")
        .await?;

    // The kubelet alternates between cause and pause: nothing is written.
    let version = async || anyhow::Ok(world.sets().get(&set).await?.resource_version());
    let before = version().await?;
    set_state(
        &world,
        &pod,
        &waiting("ImagePullBackOff", "Back-off pulling image"),
        &none,
        0,
    )
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(version().await? == before, "the status follows the back-off");

    // Ready: nothing is said any more, and no pod is watched.
    world.pods.set_ready(NAMESPACE, "stuck", true).await;
    says_done(&world, &set).await?;

    // The workload fails later: the pods are watched again.
    world.pods.set_ready(NAMESPACE, "stuck", false).await;
    world
        .until(
            &set,
            "Ready",
            "False",
            "ProbeFailure",
            "cannot start: ContainersNotReady: \"the test says so\"",
        )
        .await?;
    world.sets().delete(&set, &DeleteParams::default()).await?;
    world.gone(&set).await
}

async fn says_done(world: &World, set: &str) -> Result<()> {
    world
        .until(
            set,
            "Ready",
            "True",
            "Succeeded",
            "Revision 1.0.0 has rolled out.",
        )
        .await?;
    let all = conditions(&world.sets().get(set).await?);
    ensure!(
        all.iter().all(|(_, message)| !message.contains("not available")),
        "{all:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_nodes_and_rights() -> Result<()> {
    let world = World::start().await?;
    let quota: ResourceQuota =
        serde_json::from_value(json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}))?;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), NAMESPACE);
    quotas.create(&PostParams::default(), &quota).await?;
    eventually(LIMIT, "the quota is in force", async || {
        let status = quotas.get("none").await?.status;
        ensure!(status.is_some_and(|status| status.hard.is_some()));
        Ok(())
    })
    .await?;
    let set = world
        .create("refused", 1, vec![deployment("refused", "i:v1")])
        .await?;
    world
        .until(
            &set,
            "Progressing",
            "True",
            "RollingOut",
            "Deployment workload/refused is not available: its pods cannot be created: FailedCreate: ",
        )
        .await?;
    world
        .until(&set, "Ready", "False", "RollingOut", "exceeded quota: none")
        .await?;
    world.sets().delete(&set, &DeleteParams::default()).await?;
    world.gone(&set).await?;
    quotas.delete("none", &DeleteParams::default()).await?;

    // Unschedulable, as a scheduler says it.
    world.pods.set_ready(NAMESPACE, "large", false).await;
    let set = world
        .create("large", 1, vec![deployment("large", "i:v1")])
        .await?;
    let pod = pod_of(&world, "large").await?;
    let live = pods(&world).get(&pod).await?;
    let mut conditions = serde_json::to_value(live.status.context("no status")?.conditions)?;
    for condition in conditions.as_array_mut().context("no conditions")? {
        if condition["type"] == "PodScheduled" {
            condition["status"] = json!("False");
            condition["reason"] = json!("Unschedulable");
            condition["message"] = json!("0/1 nodes are available: 1 Insufficient memory.");
        }
    }
    let patch = json!({"status": {"phase": "Pending", "containerStatuses": null, "conditions": conditions}});
    pods(&world)
        .patch_status(&pod, &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    let why = "no node takes it: Unschedulable: \"0/1 nodes are available: 1 Insufficient memory.\"";
    world
        .until(&set, "Progressing", "True", "RollingOut", why)
        .await?;

    // Without the right to read pods the rollout goes on, and says no more than its own sentence.
    world.sets().delete(&set, &DeleteParams::default()).await?;
    world.gone(&set).await?;
    world.lies.lock().lists = Some(("/pods", 403));
    world.pods.set_ready(NAMESPACE, "hidden", false).await;
    let set = world
        .create("hidden", 1, vec![deployment("hidden", "i:v1")])
        .await?;
    pod_of(&world, "hidden").await?;
    says(&world, &set, "Revision 1.0.0 is rolling out.").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    says(&world, &set, "Revision 1.0.0 is rolling out.").await?;
    world.pods.set_ready(NAMESPACE, "hidden", true).await;
    says_done(&world, &set).await
}

/// Creates an account that may read and write Deployments owned by revisions, and with `pods` also list and watch pods.
async fn account(world: &World, name: &str, pods: bool) -> Result<()> {
    let params = PostParams::default();
    let mut rules = vec![json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]})];
    if pods {
        rules.push(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}));
    }
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let account = serde_json::from_value(json!({"metadata": metadata}))?;
    Api::<ServiceAccount>::namespaced(world.client.clone(), NAMESPACE)
        .create(&params, &account)
        .await?;
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE});
    let owners = json!([{"apiGroups": ["olm.operatorframework.io"], "resources": ["clusterobjectsets/finalizers"],
        "verbs": ["update"]}]);
    let role = serde_json::from_value(json!({"metadata": {"name": name}, "rules": owners}))?;
    Api::<ClusterRole>::all(world.client.clone())
        .create(&params, &role)
        .await?;
    let binding = serde_json::from_value(json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [subject]}))?;
    Api::<ClusterRoleBinding>::all(world.client.clone())
        .create(&params, &binding)
        .await?;
    let role = serde_json::from_value(json!({"metadata": metadata, "rules": rules}))?;
    Api::<Role>::namespaced(world.client.clone(), NAMESPACE)
        .create(&params, &role)
        .await?;
    let binding = serde_json::from_value(json!({"metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject]}))?;
    Api::<RoleBinding>::namespaced(world.client.clone(), NAMESPACE)
        .create(&params, &binding)
        .await?;
    Ok(())
}

/// Under the policy `Require` pods are read as the account of the revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_tells_as_much_as_it_may_read() -> Result<()> {
    let world = World::start_with(ServiceAccountPolicy::Require).await?;
    for (name, pods) in [("sighted", true), ("blind", false)] {
        account(&world, name, pods).await?;
        world.pods.set_ready(NAMESPACE, name, false).await;
        let set = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": format!("{name}-1"), "labels": {keys::OWNER_NAME_LABEL: name}, "annotations": {
                keys::BUNDLE_VERSION_ANNOTATION: "1.0.0", keys::SERVICE_ACCOUNT_NAME_ANNOTATION: name,
                keys::SERVICE_ACCOUNT_NAMESPACE_ANNOTATION: NAMESPACE}},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
                "progressionProbes": olm_applier::plan::default_probes(),
                "phases": [{"name": "deploy", "objects": [{"object": deployment(name, "i:v1")}]}]}});
        world
            .sets()
            .create(&PostParams::default(), &serde_json::from_value(set)?)
            .await?;
        pod_of(&world, name).await?;
    }
    let why = "Deployment workload/sighted is not available: pod sighted-";
    world
        .until("sighted-1", "Progressing", "True", "RollingOut", why)
        .await?;
    let line = "Object Deployment.apps/v1 workload/blind: ";
    world
        .until("blind-1", "Available", "False", "ProbeFailure", line)
        .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    says(&world, "blind-1", "Revision 1.0.0 is rolling out.").await?;
    world.pods.set_ready(NAMESPACE, "blind", true).await;
    says_done(&world, "blind-1").await
}
