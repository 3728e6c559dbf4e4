//! Plan of the deletion of an extension: the objects that go, those that stay, and the custom resources. Pure.

use std::fmt::Write as _;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olm_api::{CustomResourcePolicy, keys};
use olm_applier::custom_resources::{Count, Fate, HeldCrd, fate, is_kept};
use olm_applier::ownership::controller;
use olm_plan::Dependent;
use serde_json::{Value, json};

use crate::report::Report;
use crate::style::{Paint, Style};
use crate::table::Table;

/// Object of a revision and its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Kind, namespace and name for people.
    pub(crate) title: String,
    /// Kind, namespace and name as data.
    pub(crate) id: Value,
    /// The fate.
    pub(crate) fate: ItemFate,
}

/// Fate of an object at the deletion of its extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemFate {
    /// The object is deleted.
    Goes,
    /// The namespace is deleted, unless it holds objects of others then.
    GoesIfEmpty,
    /// The namespace stays, because it holds objects of others.
    Held,
    /// The CRD is deleted with its custom resources.
    GoesWithData(CustomKind),
    /// The CRD stays with its custom resources.
    Kept(CustomKind),
    /// The CRD and the deletion wait for the end of its custom resources.
    Blocks(CustomKind),
    /// The object belongs to somebody else and stays.
    Foreign(String),
    /// The object cannot be read from its Secret, for this reason. If the Secret is gone, operator-controller leaves the object to the
    /// garbage collector, which deletes a CRD with its custom resources whatever the policy says.
    Unreadable(String),
}

/// Kind of custom resources and their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomKind {
    /// Kind.
    pub(crate) kind: String,
    /// CRD with the number of its custom resources.
    pub(crate) crd: HeldCrd,
}

/// Contents that the API server deletes with their object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// The object has none.
    None,
    /// Objects in a namespace.
    Objects,
    /// Custom resources of a CRD.
    CustomResources(CustomKind),
}

/// Decides about an object of the cluster. `ours` are the uids of the extension's revisions.
pub(crate) fn fate_of(
    meta: &ObjectMeta,
    ours: &[String],
    contents: Contents,
    policy: CustomResourcePolicy,
) -> ItemFate {
    match controller(meta) {
        Some(owner) if ours.contains(&owner.uid) => {}
        Some(owner) => return ItemFate::Foreign(format!("{} {} owns it", owner.kind, owner.name)),
        None => return ItemFate::Foreign("it has no owner".to_owned()),
    }
    match contents {
        Contents::Objects => ItemFate::GoesIfEmpty,
        Contents::CustomResources(data) if data.crd.count.may_hold() => match fate(policy, &data.crd.count) {
            Fate::Delete => ItemFate::GoesWithData(data),
            Fate::Keep => ItemFate::Kept(data),
            Fate::Wait => ItemFate::Blocks(data),
        },
        Contents::None | Contents::CustomResources(_) => ItemFate::Goes,
    }
}

/// Returns the fate of a namespace after the deletion; `present` is the namespace of this name that exists then, if any.
pub(crate) fn namespace_after(present: Option<&ObjectMeta>) -> ItemFate {
    match present {
        Some(meta) if is_kept(meta) => ItemFate::Held,
        _ => ItemFate::Goes,
    }
}

/// Returns the number of custom resources of a kind, for people.
fn amount(data: &CustomKind) -> String {
    match &data.crd.count {
        Count::Exact(number) => format!("{number} {}", data.kind),
        Count::Several => format!("several {}", data.kind),
        Count::Unknown(_) => format!("an unknown number of {}", data.kind),
    }
}

/// Returns the custom resources that the deletion deletes, by kind, and those that it may delete; none if there are none.
pub(crate) fn doomed(items: &[Item]) -> Option<String> {
    let amounts: Vec<String> = items
        .iter()
        .filter_map(|item| match &item.fate {
            ItemFate::GoesWithData(data) => Some(amount(data)),
            ItemFate::Unreadable(why) => Some(format!("those of unknown objects, if any ({why})")),
            _ => None,
        })
        .collect();
    (!amounts.is_empty()).then(|| amounts.join(", "))
}

/// Returns the report on the plan, or with `done` on its execution.
pub(crate) fn report(
    extension: &str,
    policy: CustomResourcePolicy,
    items: &[Item],
    dependents: &[Dependent],
    style: Style,
    done: bool,
) -> Report {
    let mut table = Table::new(&["OBJECT", "STATE"]);
    let mut rows = Vec::new();
    let would = |is: &str, would: &str| if done { is } else { would }.to_owned();
    for item in items {
        let (paint, state, data) = match &item.fate {
            ItemFate::Goes => (Paint::Plain, would("deleted", "would be deleted"), None),
            ItemFate::GoesIfEmpty => (
                Paint::Plain,
                would("deleted", "would be deleted unless it holds objects of others"),
                None,
            ),
            ItemFate::Held => (
                Paint::Warn,
                "kept: it holds objects of others, or they could not be listed; the event NamespaceKept has the details".to_owned(),
                None,
            ),
            ItemFate::GoesWithData(data) => (
                Paint::Bad,
                format!("{} with {}", would("deleted", "would be deleted"), amount(data)),
                Some(data),
            ),
            ItemFate::Kept(data) => (
                Paint::Warn,
                format!("{}: {}", would("kept", "would be kept"), data.crd),
                Some(data),
            ),
            ItemFate::Blocks(data) => (
                Paint::Warn,
                format!("{}: {}", would("deleted", "would block the deletion"), data.crd),
                Some(data),
            ),
            ItemFate::Foreign(why) => (
                Paint::Warn,
                format!("{}: {why}", would("kept", "would stay")),
                None,
            ),
            ItemFate::Unreadable(why) => (
                Paint::Bad,
                format!("the garbage collector may delete them, CRDs with all custom resources: {why}"),
                None,
            ),
        };
        table.row(paint, [item.title.as_str(), &state]);
        let mut row = item.id.clone();
        row["deleted"] = json!(match item.fate {
            ItemFate::Goes | ItemFate::GoesIfEmpty | ItemFate::GoesWithData(_) => Some(true),
            ItemFate::Blocks(_) => Some(done),
            ItemFate::Held | ItemFate::Kept(_) | ItemFate::Foreign(_) => Some(false),
            ItemFate::Unreadable(_) => None,
        });
        row["state"] = json!(state);
        if let Some(data) = data {
            let number = match &data.crd.count {
                Count::Exact(number) => json!(number),
                Count::Several | Count::Unknown(_) => Value::Null,
            };
            row["customResources"] = json!({"kind": data.kind, "number": number});
        }
        rows.push(row);
    }
    let mut text = if table.is_empty() {
        "no objects\n".to_owned()
    } else {
        table.text(style, "")
    };
    if !done && let Some(doomed) = doomed(items) {
        let _ = writeln!(
            text,
            "\nCustom resources that would be deleted: {doomed}. {}",
            way_out(extension, items)
        );
    }
    if let Some(held) = held(extension, dependents).filter(|_| !done) {
        let _ = writeln!(text, "\n{held}");
    }
    Report::new(
        json!({"extension": extension, "customResources": policy.as_str(), "dryRun": !done, "objects": rows,
            "dependents": dependents}),
        text,
    )
}

/// Returns the way to keep the custom resources that the deletion deletes. No policy protects those of unknown objects.
pub(crate) fn way_out(extension: &str, items: &[Item]) -> String {
    let mut fates = items.iter().map(|item| &item.fate);
    if fates.any(|fate| matches!(fate, ItemFate::Unreadable(_))) {
        format!("To keep all objects: kubectl delete clusterextension {extension} --cascade=orphan")
    } else {
        "To keep them: --custom-resources Keep".to_owned()
    }
}

/// Returns the sentence about extensions that hold the deletion until they are deleted.
pub(crate) fn held(extension: &str, dependents: &[Dependent]) -> Option<String> {
    let needs: Vec<String> = dependents
        .iter()
        .map(|dependent| {
            format!(
                "ClusterExtension {:?} ({})",
                dependent.extension, dependent.reason
            )
        })
        .collect();
    (!needs.is_empty()).then(|| {
        format!(
            "the deletion waits, because others need what it removes: {}. Delete these first, or go on without them: kubectl annotate \
             clusterextension {extension} {}=true",
            needs.join(", "),
            keys::IGNORE_DEPENDENTS_ANNOTATION
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(uid: &str) -> ObjectMeta {
        serde_json::from_value(
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ClusterObjectSet",
            "name": "x-1", "uid": uid, "controller": true}]}),
        )
        .unwrap()
    }

    fn kites(count: Count) -> CustomKind {
        CustomKind {
            kind: "Kite".to_owned(),
            crd: HeldCrd {
                name: "kites.example.com".to_owned(),
                count,
                readable_in: None,
            },
        }
    }

    #[test]
    fn fates_follow_owner_policy_and_number() {
        use CustomResourcePolicy::{Block, Delete, Keep};
        let ours = ["u".to_owned()];
        let decide = |uid: &str, count: Option<Count>, policy| {
            let contents = count.map_or(Contents::None, |count| Contents::CustomResources(kites(count)));
            fate_of(&owned(uid), &ours, contents, policy)
        };
        assert_eq!(decide("u", None, Keep), ItemFate::Goes);
        assert_eq!(decide("u", Some(Count::Exact(0)), Block), ItemFate::Goes);
        assert_eq!(
            decide("u", Some(Count::Exact(3)), Keep),
            ItemFate::Kept(kites(Count::Exact(3)))
        );
        assert_eq!(
            decide("u", Some(Count::Several), Block),
            ItemFate::Blocks(kites(Count::Several))
        );
        assert_eq!(
            decide("u", Some(Count::Exact(3)), Delete),
            ItemFate::GoesWithData(kites(Count::Exact(3)))
        );
        assert_eq!(
            decide("v", Some(Count::Exact(3)), Delete),
            ItemFate::Foreign("ClusterObjectSet x-1 owns it".to_owned())
        );
        let free = fate_of(&ObjectMeta::default(), &ours, Contents::None, Delete);
        assert_eq!(free, ItemFate::Foreign("it has no owner".to_owned()));
    }

    #[test]
    fn a_namespace_with_objects_of_others_is_not_reported_as_deleted() {
        let item = |fate: ItemFate| Item {
            title: "Namespace kites".to_owned(),
            id: json!({"kind": "Namespace", "name": "kites"}),
            fate,
        };
        let said = |fate: ItemFate, done: bool| {
            let report = report(
                "x",
                CustomResourcePolicy::Keep,
                &[item(fate)],
                &[],
                Style::plain(),
                done,
            );
            (report.value["objects"][0]["deleted"] == true, report.text)
        };
        let before = fate_of(
            &owned("u"),
            &["u".to_owned()],
            Contents::Objects,
            CustomResourcePolicy::Keep,
        );
        let (_, text) = said(before, false);
        assert!(
            text.contains("would be deleted unless it holds objects of others"),
            "{text}"
        );
        let label =
            |labels: &Value| -> ObjectMeta { serde_json::from_value(json!({"labels": labels})).unwrap() };
        let kept = label(&json!({"olm.operatorframework.io/kept-from": "x"}));
        let (deleted, text) = said(namespace_after(Some(&kept)), true);
        assert!(
            !deleted && text.contains("kept: it holds objects of others"),
            "{text}"
        );
        for gone in [None, Some(&label(&json!({})))] {
            assert_eq!(namespace_after(gone), ItemFate::Goes);
        }
    }

    #[test]
    fn the_report_counts_custom_resources_by_kind() {
        let item = |fate: ItemFate| Item {
            title: "CustomResourceDefinition kites.example.com".to_owned(),
            id: json!({"kind": "CustomResourceDefinition", "name": "kites.example.com"}),
            fate,
        };
        let doomed_item = item(ItemFate::GoesWithData(kites(Count::Exact(3))));
        let items = [
            doomed_item.clone(),
            item(ItemFate::GoesWithData(kites(Count::Several))),
        ];
        assert_eq!(doomed(&items).as_deref(), Some("3 Kite, several Kite"));
        assert_eq!(doomed(&[item(ItemFate::Kept(kites(Count::Exact(3))))]), None);
        let before = report(
            "x",
            CustomResourcePolicy::Delete,
            &[doomed_item],
            &[],
            Style::plain(),
            false,
        );
        assert!(
            before.text.contains("would be deleted with 3 Kite"),
            "{}",
            before.text
        );
        assert!(
            before.text.ends_with("--custom-resources Keep\n"),
            "{}",
            before.text
        );
        assert_eq!(before.value["objects"][0]["customResources"]["number"], 3);
        let kept = item(ItemFate::Kept(kites(Count::Exact(1))));
        let after = report(
            "x",
            CustomResourcePolicy::Keep,
            &[kept],
            &[],
            Style::plain(),
            true,
        );
        assert!(
            after
                .text
                .contains("kept: kites.example.com holds 1 custom resource")
        );
        assert_eq!(after.value["objects"][0]["deleted"], false);
    }
}
