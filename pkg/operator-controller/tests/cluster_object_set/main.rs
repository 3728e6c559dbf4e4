//! Revisions against a real API server: rolling out, halting, repairing, handing over, colliding, going.

mod blocked;
mod last_owner;
mod names;
mod panics;
mod soak;
mod stuck;
mod unwatched;
mod world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use olm_api::keys;
use olm_applier::plan;
use olm_harness::eventually;
use serde_json::{Value, json};
use world::{LIMIT, NAMESPACE, World, create_with, map};

fn crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn thing() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {"a": 1}})
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "manager", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "manager"}}, "template": {
            "metadata": {"labels": {"app": "manager"}},
            "spec": {"containers": [{"name": "manager", "image": "example.com/manager:v1"}]}}}})
}

fn priority_class() -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "sample"}, "value": 1,
        "description": "ours"})
}

fn webhook() -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "sample"}, "webhooks": []})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one life, told in order")]
async fn rolls_out_halts_repairs_hands_over_and_goes() -> Result<()> {
    let world = World::start().await?;
    world.pods.set_ready(NAMESPACE, "manager", false).await;
    let objects = vec![
        map("kept", "1"),
        map("dropped", "1"),
        crd(),
        thing(),
        deployment(),
        webhook(),
        priority_class(),
    ];
    let first = world.create("sample", 1, objects).await?;

    // The deployment is not ready: what comes after it is not begun.
    let line = "Object Deployment.apps/v1 workload/manager: ";
    world
        .until(&first, "Available", "False", "ProbeFailure", line)
        .await?;
    let hooks: Api<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration> =
        Api::all(world.client.clone());
    ensure!(
        hooks.get_opt("sample").await?.is_none(),
        "a phase was begun before the one before it was ready"
    );
    world.pods.set_ready(NAMESPACE, "manager", true).await;
    world
        .until(
            &first,
            "Progressing",
            "True",
            "Succeeded",
            "Revision 1.0.0 has rolled out.",
        )
        .await?;
    world
        .until(
            &first,
            "Succeeded",
            "True",
            "Succeeded",
            "Revision succeeded rolling out.",
        )
        .await?;
    ensure!(hooks.get_opt("sample").await?.is_some());

    // Nothing is written any more.
    let versions = async || {
        let set = world.sets().get(&first).await?.resource_version();
        anyhow::Ok((set, world.deployments().get("manager").await?.resource_version()))
    };
    eventually(LIMIT, "nothing is written when nothing changes", async || {
        let before = versions().await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let after = versions().await?;
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(())
    })
    .await?;

    // A changed object and a deleted one come back; a user's own fields stay.
    let patch =
        json!({"data": {"key": "changed", "mine": "kept"}, "metadata": {"annotations": {"mine": "kept"}}});
    world
        .maps()
        .patch("kept", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    world.maps().delete("dropped", &DeleteParams::default()).await?;
    let start = std::time::Instant::now();
    eventually(LIMIT, "drift is repaired", async || {
        let kept = world.maps().get("kept").await?;
        let data = kept.data.clone().unwrap_or_default();
        ensure!(data.get("key").map(String::as_str) == Some("1"), "{data:?}");
        ensure!(
            data.contains_key("mine") && kept.annotations().contains_key("mine"),
            "{data:?}"
        );
        ensure!(world.maps().get_opt("dropped").await?.is_some(), "not back");
        Ok(())
    })
    .await?;
    ensure!(
        start.elapsed() < Duration::from_secs(2),
        "drift took {:?}",
        start.elapsed()
    );

    // The API server leaves the generation of a PriorityClass at 1.
    let classes: Api<PriorityClass> = Api::all(world.client.clone());
    let patch = json!({"description": "changed"});
    classes
        .patch("sample", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    eventually(LIMIT, "drift of a PriorityClass is repaired", async || {
        let class = classes.get("sample").await?;
        ensure!(class.description.as_deref() == Some("ours"), "{class:?}");
        Ok(())
    })
    .await?;

    // The second revision drops one object, changes one, adds one; a Secret makes it refer to Secrets.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": NAMESPACE},
        "stringData": {"password": "x"}});
    let objects = vec![
        map("kept", "2"),
        secret,
        crd(),
        thing(),
        deployment(),
        webhook(),
        priority_class(),
    ];
    let second = world.create("sample", 2, objects).await?;
    world
        .until(
            &second,
            "Progressing",
            "True",
            "Succeeded",
            "Revision 2.0.0 has rolled out.",
        )
        .await?;
    world
        .until(&first, "Progressing", "False", "Archived", "revision is archived")
        .await?;
    world
        .until(&first, "Available", "Unknown", "Archived", "revision is archived")
        .await?;
    ensure!(
        world.maps().get_opt("dropped").await?.is_none(),
        "the leftover of the first revision is still there"
    );
    let kept = world.maps().get("kept").await?;
    ensure!(
        kept.annotations()
            .get(keys::REVISION_ANNOTATION)
            .map(String::as_str)
            == Some("2")
    );
    ensure!(kept.data.unwrap_or_default().get("key").map(String::as_str) == Some("2"));
    world.sets().delete(&first, &DeleteParams::default()).await?;
    world.gone(&first).await?;
    ensure!(world.maps().get_opt("kept").await?.is_some());

    // All goes, and what is not ours stays.
    let foreign: ConfigMap = serde_json::from_value(map("foreign", "1"))?;
    world.maps().create(&PostParams::default(), &foreign).await?;
    world.sets().delete(&second, &DeleteParams::default()).await?;
    world.gone(&second).await?;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    eventually(LIMIT, "the CRD is gone", async || {
        ensure!(crds.get_opt("things.example.com").await?.is_none());
        Ok(())
    })
    .await?;
    ensure!(world.deployments().get_opt("manager").await?.is_none());
    ensure!(world.maps().get_opt("kept").await?.is_none());
    ensure!(world.maps().get_opt("foreign").await?.is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_others_and_refused_ones_are_reported() -> Result<()> {
    let world = World::start().await?;

    // Somebody else's object is left alone. Its neighbours are made, as none is read before.
    let foreign: ConfigMap = serde_json::from_value(map("taken", "theirs"))?;
    world.maps().create(&PostParams::default(), &foreign).await?;
    let set = world
        .create("collides", 1, vec![map("another", "1"), map("taken", "ours")])
        .await?;
    let text =
        "revision object collisions in phase 0\nObject ConfigMap.v1 workload/taken\nAction: \"Collision\"";
    world.until(&set, "Progressing", "True", "Retrying", text).await?;
    ensure!(
        world.maps().get_opt("another").await?.is_some(),
        "a neighbour is missing"
    );
    ensure!(
        world
            .maps()
            .get("taken")
            .await?
            .data
            .unwrap_or_default()
            .get("key")
            .map(String::as_str)
            == Some("theirs")
    );
    world.sets().delete(&set, &DeleteParams::default()).await?;
    world.gone(&set).await?;
    ensure!(
        world.maps().get_opt("taken").await?.is_some(),
        "an object of somebody else was deleted"
    );

    // An unknown kind stops its phase, and goes on when the kind comes.
    let set = world.create("early", 1, vec![thing(), map("early", "1")]).await?;
    let text = "no matches for kind \"Thing\" in version \"example.com/v1\"";
    world.until(&set, "Progressing", "True", "Retrying", text).await?;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    crds.create(&PostParams::default(), &serde_json::from_value(crd())?)
        .await?;
    world
        .until(&set, "Progressing", "True", "Succeeded", "has rolled out")
        .await?;

    // The API goes away: taking down does not hang.
    crds.delete("things.example.com", &DeleteParams::default())
        .await?;
    world.sets().delete(&set, &DeleteParams::default()).await?;
    world.gone(&set).await?;

    // A Secret that may change blocks.
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": NAMESPACE}});
    let phases = plan::phases(vec![secret], &plan::CommonMetadata::default());
    let mut packed = plan::pack("blocked-1", "olmv1-system", "blocked", phases)?;
    packed.secrets[0].immutable = None;
    let name = packed.secrets[0].name_any();
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "olmv1-system");
    secrets.create(&PostParams::default(), &packed.secrets[0]).await?;
    let set = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "metadata": {"name": "blocked-1"},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "phases": packed.phases}});
    world
        .sets()
        .create(&PostParams::default(), &serde_json::from_value(set)?)
        .await?;
    let text = format!(
        "the following secrets are not immutable (referenced secrets must have immutable set to true): olmv1-system/{name}"
    );
    world
        .until("blocked-1", "Progressing", "False", "Blocked", &text)
        .await?;
    content_that_changes_blocks(&world).await
}

/// A Secret that was deleted and created again with other content: noticed when the revision is looked at anew, and good again when
/// the content is.
async fn content_that_changes_blocks(world: &World) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "content", "namespace": NAMESPACE},
        "stringData": {"password": "x"}});
    let set = world.create("content", 1, vec![object]).await?;
    world
        .until(&set, "Progressing", "True", "Succeeded", "has rolled out")
        .await?;
    let found = world.sets().get(&set).await?;
    let phases = found
        .status
        .unwrap_or_default()
        .observed_phases
        .unwrap_or_default();
    ensure!(
        phases.len() == 1 && phases[0].digest.starts_with("sha256:"),
        "{phases:?}"
    );
    let place = found.spec.phases.unwrap_or_default()[0].objects[0].ref_.clone();
    let Some(place) = place else {
        bail!("the object is inline")
    };
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "olmv1-system");
    let first = secrets.get(&place.name).await?;
    let replace = async |text: &str| {
        secrets.delete(&place.name, &DeleteParams::default()).await?;
        let mut next = first.clone();
        next.metadata = kube::core::ObjectMeta {
            name: first.metadata.name.clone(),
            labels: first.metadata.labels.clone(),
            ..kube::core::ObjectMeta::default()
        };
        for value in next.data.iter_mut().flat_map(|data| data.values_mut()) {
            let content = String::from_utf8_lossy(&value.0).replace("\"x\"", text);
            value.0 = content.into_bytes();
        }
        secrets.create(&PostParams::default(), &next).await?;
        let trigger = json!({"metadata": {"annotations": {"example.com/look-again": text}}});
        world
            .sets()
            .patch(&set, &PatchParams::default(), &Patch::Merge(&trigger))
            .await?;
        anyhow::Ok(())
    };
    replace("\"y\"").await?;
    let text = "resolved content of 1 phase(s) has changed: phase \"configuration\"";
    world.until(&set, "Progressing", "False", "Blocked", text).await?;
    replace("\"x\"").await?;
    world.until(&set, "Progressing", "True", "Succeeded", "").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one control plane for all of it")]
async fn protection_probes_orphans_and_what_holds_a_removal_up() -> Result<()> {
    let world = World::start().await?;
    let rolled_out = async |name: &str| world.until(name, "Progressing", "True", "Succeeded", "").await;
    let value = async |name: &str| {
        let map = world.maps().get(name).await?;
        anyhow::Ok(map.data.unwrap_or_default().remove("key").unwrap_or_default())
    };

    // IfNoController takes what nobody controls, and nothing else; None takes both.
    let free: ConfigMap = serde_json::from_value(map("free", "theirs"))?;
    world.maps().create(&PostParams::default(), &free).await?;
    let chief = world
        .maps()
        .create(
            &PostParams::default(),
            &serde_json::from_value(map("chief", "x"))?,
        )
        .await?;
    let mut held = map("held", "theirs");
    held["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "chief",
        "uid": chief.metadata.uid, "controller": true}]);
    world
        .maps()
        .create(&PostParams::default(), &serde_json::from_value(held)?)
        .await?;
    let taken = json!({"collisionProtection": "IfNoController"});
    create_with(&world, "free-1", taken.clone(), &[map("free", "ours")]).await?;
    rolled_out("free-1").await?;
    ensure!(value("free").await? == "ours");
    create_with(&world, "held-1", taken, &[map("held", "ours")]).await?;
    let chief = "Conflicting Owner: v1, Kind=ConfigMap chief";
    world
        .until("held-1", "Progressing", "True", "Retrying", chief)
        .await?;
    ensure!(value("held").await? == "theirs");
    create_with(
        &world,
        "all-1",
        json!({"collisionProtection": "None"}),
        &[map("held", "mine")],
    )
    .await?;
    rolled_out("all-1").await?;
    ensure!(value("held").await? == "mine");

    // Probes of all kinds: by label on a field, on two fields, on a condition.
    let probed = |name: &str, data: Value| {
        let mut object = map(name, "1");
        object["metadata"]["labels"] = json!({"probed": name});
        object["data"] = data;
        object
    };
    let label = |name: &str| json!({"type": "Label", "label": {"matchLabels": {"probed": name}}});
    let wanted = json!({"progressionProbes": [
        {"selector": label("field"), "assertions": [
            {"type": "FieldValue", "fieldValue": {"fieldPath": "data.state", "value": "done"}},
            {"type": "FieldsEqual", "fieldsEqual": {"fieldA": "data.a", "fieldB": "data.b"}},
            {"type": "CELExpression", "celExpression": {"expression": "has(self.metadata.uid) && self.data.a == self.data.b"}}]},
        {"selector": {"type": "GroupKind", "groupKind": {"group": "", "kind": "Secret"}}, "assertions": [
            {"type": "ConditionEqual", "conditionEqual": {"type": "Ready", "status": "True"}}]}]});
    create_with(
        &world,
        "probes-1",
        wanted,
        &[probed("field", json!({"a": "1", "b": "1"}))],
    )
    .await?;
    let line = "Object ConfigMap.v1 workload/field: missing key: \"data.state\"";
    world
        .until("probes-1", "Available", "False", "ProbeFailure", line)
        .await?;
    let done = json!({"data": {"state": "done"}});
    world
        .maps()
        .patch("field", &PatchParams::default(), &Patch::Merge(&done))
        .await?;
    rolled_out("probes-1").await?;

    // A claim that is not bound holds up what comes after it.
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "volume",
            "resources": {"requests": {"storage": "1Gi"}}}});
    let set = world.create("claims", 1, vec![claim, webhook()]).await?;
    let line = "Object PersistentVolumeClaim.v1 workload/claim: value at key \"status.phase\" != \"Bound\"; expected: \
                \"Bound\" got: \"Pending\"";
    world
        .until(&set, "Available", "False", "ProbeFailure", line)
        .await?;
    let hooks: Api<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration> =
        Api::all(world.client.clone());
    ensure!(hooks.get_opt("sample").await?.is_none());
    let volume = json!({"metadata": {"name": "volume"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": NAMESPACE, "name": "claim"}}});
    let volumes: Api<k8s_openapi::api::core::v1::PersistentVolume> = Api::all(world.client.clone());
    volumes
        .create(&PostParams::default(), &serde_json::from_value(volume)?)
        .await?;
    rolled_out(&set).await?;
    ensure!(hooks.get_opt("sample").await?.is_some());

    // Two managers that want different things: the other one is named, and the fight ends.
    create_with(&world, "fight-1", json!({}), &[map("fought", "ours")]).await?;
    rolled_out("fight-1").await?;
    let rival = PatchParams::apply("rival").force();
    let named = eventually(LIMIT, "the rival is named", async || {
        let theirs = map("fought", "theirs");
        world
            .maps()
            .patch("fought", &rival, &Patch::Apply(&theirs))
            .await?;
        let told = world
            .sets()
            .get("fight-1")
            .await?
            .status
            .and_then(|s| s.conditions)
            .unwrap_or_default();
        let found = told.iter().any(|c| c.message.contains("conflict with \"rival\""));
        ensure!(found, "{told:?}");
        Ok(())
    });
    named.await?;

    // Orphans stay.
    let orphan = DeleteParams::orphan();
    world.sets().delete("free-1", &orphan).await?;
    world.gone("free-1").await?;
    let left = world.maps().get("free").await?;
    ensure!(
        left.metadata.deletion_timestamp.is_none() && !left.labels().contains_key(keys::MANAGED_BY_LABEL)
    );

    // A finalizer of somebody else holds a removal up, and the status says where.
    let finalizer = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    world
        .maps()
        .patch("field", &PatchParams::default(), &Patch::Merge(&finalizer))
        .await?;
    world.sets().delete("probes-1", &DeleteParams::default()).await?;
    let text = "waiting until these are gone: ConfigMap.v1 workload/field";
    world
        .until("probes-1", "Progressing", "True", "Retrying", text)
        .await?;
    let none = json!({"metadata": {"finalizers": null}});
    world
        .maps()
        .patch("field", &PatchParams::default(), &Patch::Merge(&none))
        .await?;
    world.gone("probes-1").await?;

    // The namespace goes first: nothing hangs.
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    world.sets().delete("all-1", &DeleteParams::default()).await?;
    world.gone("all-1").await
}

/// A Secret that cannot be read for a while is no Secret that is gone: its objects wait, and so does the revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_read_leaves_nothing_behind() -> Result<()> {
    let world = World::start().await?;
    // A revision with a Secret is stored in Secrets.
    let credentials = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "credentials", "namespace": NAMESPACE}, "stringData": {"user": "app"}});
    let rolled_out = ("Progressing", "True", "Succeeded");
    let old = world
        .create(
            "app",
            1,
            vec![map("settings", "1"), map("dropped", "1"), credentials.clone()],
        )
        .await?;
    let (type_, status, reason) = rolled_out;
    world.until(&old, type_, status, reason, "").await?;

    // The archival of the former revision.
    world.secrets_fail.store(true, Ordering::Relaxed);
    let archive = json!({"spec": {"lifecycleState": "Archived"}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&archive));
    world.sets().patch(&old, &params, &patch).await?;
    let waiting = "waiting until its objects are known: resolving ref in phase";
    eventually(LIMIT, "the status says what is waited for", async || {
        let set = world.sets().get(&old).await?;
        let conditions = set.status.and_then(|s| s.conditions).unwrap_or_default();
        ensure!(
            conditions.iter().any(|c| c.message.contains(waiting)),
            "{conditions:#?}"
        );
        Ok(())
    })
    .await?;
    ensure!(world.maps().get_opt("dropped").await?.is_some());
    world.secrets_fail.store(false, Ordering::Relaxed);
    world.until(&old, "Progressing", "False", "Archived", "").await?;
    ensure!(world.maps().get_opt("dropped").await?.is_none());

    // The removal of a revision.
    let new = world
        .create("app", 2, vec![map("settings", "2"), credentials])
        .await?;
    world.until(&new, type_, status, reason, "").await?;
    world.secrets_fail.store(true, Ordering::Relaxed);
    world.sets().delete(&new, &DeleteParams::default()).await?;
    eventually(LIMIT, "the status says what is waited for", async || {
        let set = world.sets().get(&new).await?;
        let conditions = set.status.and_then(|s| s.conditions).unwrap_or_default();
        let waits = conditions
            .iter()
            .any(|c| c.message.contains("waiting until its objects are known"));
        ensure!(waits, "{conditions:#?}");
        Ok(())
    })
    .await?;
    ensure!(world.maps().get_opt("settings").await?.is_some());
    world.secrets_fail.store(false, Ordering::Relaxed);
    world.gone(&new).await?;
    ensure!(world.maps().get_opt("settings").await?.is_none());
    Ok(())
}
