//! `delete`: deletes an extension, after showing what goes and what stays.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::ResourceExt as _;
use olm_api::condition::{find, types};
use olm_api::{ClusterExtension, ClusterObjectSet, CustomResourcePolicy, LifecycleState};
use olm_applier::custom_resources::{HeldCrd, is_kept, readable_in};
use olm_manifests::is_crd;
use olm_text::object::ObjectId;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::{confirm, progress};
use crate::absent::existing;
use crate::cli::delete::DeleteArgs;
use crate::controllers::title;
use crate::failure::Failure;
use crate::removal::{Contents, CustomKind, Item, ItemFate, doomed, fate_of, namespace_after, report};
use crate::report::Report;
use crate::source::Cluster;
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
    if args.dry_run {
        return Ok(report(name, policy, &items, style, false));
    }
    if let Some(doomed) = doomed(&items).filter(|_| !args.yes) {
        confirm(
            &format!("Custom resources will be deleted: {doomed}. Continue?"),
            &format!(
                "the deletion of ClusterExtension {name:?} deletes custom resources: {doomed}. There is no terminal to ask on: \
                 confirm with --yes, or keep them with --custom-resources Keep"
            ),
            "nothing was deleted",
        )?;
    }
    // Without the field, a flag of the controller would decide, which nobody sees here.
    if specified != Some(policy) && !cluster.set_custom_resources(&extension, policy).await? {
        return Err(Failure::NegativeAnswer(
            "nothing was deleted: the ClusterExtensions of the cluster have no field spec.deletion, so its controllers may delete \
             custom resources; upgrade them, or delete with kubectl"
                .to_owned(),
        ));
    }
    cluster.delete_extension(&extension).await?;
    progress(&format!("ClusterExtension {name} is being deleted"));
    until_gone(&cluster, &extension, Instant::now() + args.timeout).await?;
    settle(&cluster, &mut items, &holders).await?;
    Ok(report(name, policy, &items, style, true))
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
    let mut seen = BTreeSet::new();
    for set in kept_up.rev() {
        let phases = cluster.objects(set).await?;
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
            ItemFate::Foreign(_) | ItemFate::Held => continue,
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
