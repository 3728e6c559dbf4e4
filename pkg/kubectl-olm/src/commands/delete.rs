//! `delete`: deletes an extension, after showing what goes and what stays.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::ResourceExt as _;
use olm_api::condition::{find, types};
use olm_api::{ClusterExtension, ClusterObjectSet, CustomResourcePolicy, LifecycleState, keys};
use olm_applier::custom_resources::{HeldCrd, is_kept, readable_in};
use olm_manifests::is_crd;
use olm_plan::Dependent;
use olm_text::object::ObjectId;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::{confirm, progress, warn};
use crate::absent::existing;
use crate::cli::delete::DeleteArgs;
use crate::controllers::title;
use crate::failure::Failure;
use crate::removal::{
    Contents, CustomKind, Item, ItemFate, doomed, fate_of, held, namespace_after, report, way_out,
};
use crate::report::Report;
use crate::source::{Cluster, SourceError};
use crate::style::Style;
use crate::table::clean;

/// Interval between two reads of the extension.
const POLL: Duration = Duration::from_millis(500);

/// Deletes the extension and waits until it is gone.
pub(crate) async fn run(args: DeleteArgs, style: Style) -> Result<Report, Failure> {
    let name = &args.extension.name;
    let cluster = Cluster::connect(&args.extension.access).await?;
    let extension = existing(&cluster, name).await?;
    let deletion = extension.spec.deletion.as_ref();
    let specified = deletion.and_then(|deletion| deletion.custom_resources);
    let policy = args.custom_resources.or(specified).unwrap_or_default();
    let revisions = cluster.revisions(Some(name)).await?;
    let (mut items, holders) = plan(&cluster, &revisions, policy).await?;
    let dependents = dependents(&cluster, &extension).await?;
    if args.dry_run {
        return Ok(report(name, policy, &items, &dependents, style, false));
    }
    if let Some(held) = held(name, &dependents) {
        warn(&held);
    }
    if let Some(doomed) = doomed(&items).filter(|_| !args.yes) {
        confirm(
            &format!("Custom resources will be deleted: {doomed}. Continue?"),
            &format!(
                "the deletion of ClusterExtension {name:?} deletes custom resources: {doomed}. There is no terminal to ask on: \
                 confirm with --yes. {}",
                way_out(name, &items)
            ),
            "nothing was deleted",
        )?;
    }
    request(&cluster, &extension, policy).await?;
    progress(&format!("ClusterExtension {name} is being deleted"));
    until_gone(&cluster, &extension, Instant::now() + args.timeout).await?;
    settle(&cluster, &mut items, &holders).await?;
    Ok(report(name, policy, &items, &dependents, style, true))
}

/// Writes the policy and requests the deletion.
async fn request(
    cluster: &Cluster,
    extension: &ClusterExtension,
    policy: CustomResourcePolicy,
) -> Result<(), Failure> {
    // Without the field, a flag of the controller would decide, which nobody sees here. A field that had this value is written too:
    // somebody may have changed it since it was read, and only this policy was shown.
    if !cluster.set_custom_resources(extension, policy).await? {
        return Err(Failure::NegativeAnswer(
            "nothing was deleted: the ClusterExtensions of the cluster have no field spec.deletion, so its controllers may delete \
             custom resources; upgrade them, or delete with kubectl"
                .to_owned(),
        ));
    }
    Ok(cluster.delete_extension(extension).await?)
}

/// Returns the extensions that hold the deletion: they need the installed bundle, and are not being deleted themselves.
async fn dependents(cluster: &Cluster, extension: &ClusterExtension) -> Result<Vec<Dependent>, SourceError> {
    let ignored = extension.annotations().get(keys::IGNORE_DEPENDENTS_ANNOTATION);
    if ignored.is_some_and(|ignored| ignored == "true") {
        return Ok(Vec::new());
    }
    let mut found = cluster.dependents(&extension.name_any(), None, &[]).await?;
    if !found.is_empty() {
        let mut going = cluster.extensions().await?;
        going.retain(|other| other.metadata.deletion_timestamp.is_some());
        found.retain(|dependent| !going.iter().any(|other| other.name_any() == dependent.extension));
    }
    Ok(found)
}

/// Returns the objects of the revisions in the order of their removal, and the CRDs and namespaces among them by their place.
async fn plan(
    cluster: &Cluster,
    revisions: &[ClusterObjectSet],
    policy: CustomResourcePolicy,
) -> Result<(Vec<Item>, BTreeMap<usize, Value>), Failure> {
    let ours: Vec<String> = revisions.iter().filter_map(kube::ResourceExt::uid).collect();
    let kept_up = revisions
        .iter()
        .filter(|set| set.spec.lifecycle_state != LifecycleState::Archived);
    let (mut items, mut holders) = (Vec::new(), BTreeMap::new());
    let (mut seen, mut unresolved) = (BTreeSet::new(), BTreeSet::new());
    for set in kept_up.rev() {
        let mut phases = cluster.objects(set).await?;
        unresolved.extend(phases.iter_mut().flat_map(|phase| phase.unresolved.drain(..)));
        let objects: Vec<Value> = phases
            .iter()
            .flat_map(|phase| phase.objects.iter().cloned())
            .collect();
        let kinds = cluster.kinds(&objects).await?;
        for phase in phases.into_iter().rev() {
            for object in phase.objects.into_iter().rev() {
                let id = ObjectId::of(&object);
                if !seen.insert([id.group, id.kind, id.namespace, id.name].map(ToOwned::to_owned)) {
                    continue;
                }
                let Some(live) = cluster.present(&object, &kinds).await? else {
                    continue;
                };
                let contents = if is_namespace(&object) {
                    Contents::Objects
                } else if is_crd(&object) {
                    let kind = live.data.pointer("/spec/names/kind").and_then(Value::as_str);
                    Contents::CustomResources(CustomKind {
                        kind: clean(kind.unwrap_or_default()),
                        crd: HeldCrd {
                            name: id.name.to_owned(),
                            count: cluster.custom_resources(&live).await?,
                            readable_in: readable_in(&live.data),
                        },
                    })
                } else {
                    Contents::None
                };
                let item = Item {
                    title: title(&object),
                    id: json!({"kind": id.kind, "namespace": id.namespace, "name": id.name}),
                    fate: fate_of(&live.metadata, &ours, contents, policy),
                };
                if is_crd(&object) || is_namespace(&object) {
                    holders.insert(items.len(), object);
                }
                items.push(item);
            }
        }
    }
    items.extend(unresolved.into_iter().map(|why| Item {
        title: "unknown objects".to_owned(),
        id: json!({"kind": "", "namespace": "", "name": ""}),
        fate: ItemFate::Unreadable(why),
    }));
    Ok((items, holders))
}

fn is_namespace(object: &Value) -> bool {
    let id = ObjectId::of(object);
    id.group.is_empty() && id.kind == "Namespace"
}

/// Waits until the extension is gone, with its condition `Progressing` as progress.
async fn until_gone(
    cluster: &Cluster,
    extension: &ClusterExtension,
    deadline: Instant,
) -> Result<(), Failure> {
    let name = extension.name_any();
    let mut told = String::new();
    loop {
        let found = cluster.one_extension(&name).await?;
        let Some(present) = found.filter(|present| present.metadata.uid == extension.metadata.uid) else {
            return Ok(());
        };
        let condition = find(present.conditions(), types::Extension::Progressing);
        let waits = condition.filter(|condition| condition.message.starts_with("being deleted"));
        let message = waits
            .map(|condition| condition.message.clone())
            .unwrap_or_default();
        if message != told {
            progress(&message);
            told = message;
        }
        if Instant::now() >= deadline {
            return Err(Failure::NegativeAnswer(format!(
                "ClusterExtension {name:?} is not gone in time: {told}. The deletion continues; wait longer with --timeout"
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Corrects the fates of CRDs and namespaces: operator-controller decides them as late as possible.
async fn settle(
    cluster: &Cluster,
    items: &mut [Item],
    holders: &BTreeMap<usize, Value>,
) -> Result<(), Failure> {
    let objects: Vec<Value> = holders.values().cloned().collect();
    let kinds = cluster.kinds(&objects).await?;
    for (place, object) in holders {
        let Some(item) = items.get_mut(*place) else {
            continue;
        };
        let data = match &item.fate {
            ItemFate::Foreign(_) | ItemFate::Held | ItemFate::Unreadable(_) => continue,
            ItemFate::GoesIfEmpty => {
                let live = cluster.present(object, &kinds).await?;
                item.fate = namespace_after(live.as_ref().map(|live| &live.metadata));
                continue;
            }
            ItemFate::Goes => None,
            ItemFate::GoesWithData(data) | ItemFate::Kept(data) | ItemFate::Blocks(data) => {
                Some(data.clone())
            }
        };
        let live = cluster.present(object, &kinds).await?;
        let Some(live) = live.filter(|live| is_kept(&live.metadata)) else {
            if matches!(item.fate, ItemFate::Kept(_)) {
                item.fate = ItemFate::Goes;
            }
            continue;
        };
        let kind = live.data.pointer("/spec/names/kind").and_then(Value::as_str);
        item.fate = ItemFate::Kept(CustomKind {
            kind: data.map_or_else(|| clean(kind.unwrap_or_default()), |data| data.kind),
            crd: HeldCrd {
                name: live.name_any(),
                count: cluster.custom_resources(&live).await?,
                readable_in: readable_in(&live.data),
            },
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::Method;
    use axum::response::{IntoResponse as _, Json};

    use super::*;
    use crate::source::stand_in;

    #[tokio::test]
    async fn only_the_policy_that_was_shown_decides() {
        // The spec has Keep when it is read, and Delete when the deletion is requested.
        let present = std::sync::Arc::new(parking_lot::Mutex::new(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "kite", "uid": "u"},
            "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}, "deletion": {"customResources": "Keep"}}})));
        let extension = serde_json::from_value(present.lock().clone()).unwrap();
        present.lock()["spec"]["deletion"]["customResources"] = json!("Delete");
        let stored = present.clone();
        let answer = async move |method: Method, body: axum::body::Bytes| {
            let mut stored = stored.lock();
            if method == Method::PATCH {
                let patch: Value = serde_json::from_slice(&body).unwrap();
                stored["spec"]["deletion"] = patch["spec"]["deletion"].clone();
            } else {
                stored["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            Json(stored.clone()).into_response()
        };
        let cluster = stand_in::serve(Router::new().fallback(answer)).await;
        request(&cluster, &extension, CustomResourcePolicy::Keep)
            .await
            .unwrap();
        let left = present.lock().clone();
        assert_eq!(left["spec"]["deletion"]["customResources"], "Keep");
        assert!(left["metadata"]["deletionTimestamp"].is_string());
    }

    #[tokio::test]
    async fn unknown_objects_are_named_and_confirmed_whatever_the_policy() {
        let cluster = stand_in::with_lost_secret().await;
        let revisions = cluster.revisions(Some("kite")).await.unwrap();
        let policy = CustomResourcePolicy::Keep;
        let (items, _) = plan(&cluster, &revisions, policy).await.unwrap();
        let [item] = items.as_slice() else {
            panic!("{items:?}")
        };
        assert!(matches!(&item.fate, ItemFate::Unreadable(why) if why.contains("\"lost\" not found")));
        assert!(doomed(&items).is_some(), "the deletion asks");
        let shown = report("kite", policy, &items, &[], Style::plain(), false);
        assert!(shown.text.contains("unknown objects"), "{}", shown.text);
        assert!(
            shown
                .text
                .ends_with("kubectl delete clusterextension kite --cascade=orphan\n"),
            "{}",
            shown.text
        );
        assert_eq!(shown.value["objects"][0]["deleted"], Value::Null);
    }

    /// Returns the extensions that hold the deletion of base, which kite needs.
    async fn holding(annotations: Value, kite: Value) -> Vec<String> {
        let base = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "base", "annotations": annotations}, "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}});
        let other = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": kite,
            "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}});
        let revision = |owner: &str, needs: Value| {
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": format!("{owner}-1"), "labels": {keys::OWNER_NAME_LABEL: owner}, "annotations": {
                keys::BUNDLE_NAME_ANNOTATION: format!("{owner}.v1.0.0"), keys::BUNDLE_VERSION_ANNOTATION: "1.0.0",
                keys::PACKAGE_NAME_ANNOTATION: owner, keys::CATALOG_PROPERTIES_ANNOTATION: needs.to_string()}},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
            "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        };
        let needs = json!([{"type": "olm.package.required", "value": {"packageName": "base", "versionRange": ">=1.0.0"}}]);
        let list = |items: Value| json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
        let olm = "/apis/olm.operatorframework.io/v1";
        let sets = json!([revision("base", json!([])), revision("kite", needs)]);
        let cluster = stand_in::cluster(&[
            (&format!("{olm}/clusterobjectsets"), 200, list(sets)),
            (
                &format!("{olm}/clusterextensions"),
                200,
                list(json!([base, other])),
            ),
        ])
        .await;
        let base = serde_json::from_value(base).unwrap();
        let found = dependents(&cluster, &base).await.unwrap();
        if let Some(held) = held("base", &found) {
            let shown = report(
                "base",
                CustomResourcePolicy::Keep,
                &[],
                &found,
                Style::plain(),
                false,
            );
            assert!(
                held.contains("clusterextension base olm.operatorframework.io/ignore-dependents=true"),
                "{held}"
            );
            assert!(shown.text.contains(&held) && shown.value["dependents"][0]["extension"] == "kite");
        }
        found.into_iter().map(|dependent| dependent.extension).collect()
    }

    #[tokio::test]
    async fn dependents_hold_the_deletion() {
        assert_eq!(holding(json!({}), json!({"name": "kite"})).await, ["kite"]);
        let ignored = json!({keys::IGNORE_DEPENDENTS_ANNOTATION: "true"});
        assert!(holding(ignored, json!({"name": "kite"})).await.is_empty());
        let going = json!({"name": "kite", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(
            holding(json!({}), going).await.is_empty(),
            "extensions that go together"
        );
    }
}
