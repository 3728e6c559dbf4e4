//! Tables of decisions: spec, revisions and catalogs in; a bundle, a refusal or a desired state out.
#![expect(clippy::needless_pass_by_value, reason = "calls read better with literals")]

mod choice;
mod former_content;
mod history;
mod new_revision;
mod successors;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use olm_api::{ClusterExtensionSpec, ClusterObjectSet};
use olm_fbc::{Meta, PackageContent};
use olm_resolve::{CatalogInput, CatalogLookup, Selection};
use serde_json::{Value, json};

use super::{CatalogAnswers, CatalogLookups, History, Refusal, Resolved, resolve};

/// Upgrade graph of the package in all tests: 1.0.0 ← 1.0.1 ← 1.1.0.
const GRAPH: [(&str, &str); 3] = [("1.0.0", ""), ("1.0.1", "1.0.0"), ("1.1.0", "1.0.1")];

fn content(deprecations: &Value) -> PackageContent {
    let name = |version: &str| format!("argocd.v{version}");
    let mut metas = vec![meta(
        "olm.package",
        "",
        "argocd",
        json!({"schema": "olm.package", "name": "argocd", "defaultChannel": "alpha"}),
    )];
    let entries: Vec<Value> = GRAPH
        .iter()
        .map(|(version, replaces)| {
            let mut entry = json!({"name": name(version)});
            if !replaces.is_empty() {
                entry["replaces"] = name(replaces).into();
            }
            entry
        })
        .collect();
    metas.push(meta(
        "olm.channel",
        "argocd",
        "alpha",
        json!({"schema": "olm.channel", "package": "argocd", "name": "alpha", "entries": entries}),
    ));
    for (version, _) in GRAPH {
        metas.push(meta(
            "olm.bundle",
            "argocd",
            &name(version),
            json!({"schema": "olm.bundle", "package": "argocd", "name": name(version),
                "image": format!("registry.example/argocd:{version}"),
                "properties": [{"type": "olm.package", "value": {"packageName": "argocd", "version": version}}]}),
        ));
    }
    if !deprecations.is_null() {
        metas.push(meta(
            "olm.deprecations",
            "argocd",
            "",
            json!({"schema": "olm.deprecations", "package": "argocd", "entries": deprecations}),
        ));
    }
    PackageContent::from_metas("argocd", metas).unwrap()
}

fn meta(schema: &str, package: &str, name: &str, value: Value) -> Meta {
    Meta {
        schema: schema.into(),
        package: package.into(),
        name: name.into(),
        blob: format!("{value}\n").into_bytes(),
    }
}

fn lookups(answers: Vec<(&str, CatalogLookup)>) -> CatalogLookups {
    let answers: Vec<CatalogInput> = answers
        .into_iter()
        .map(|(name, lookup)| CatalogInput {
            name: name.into(),
            priority: 0,
            lookup,
        })
        .collect();
    CatalogLookups::Answered(CatalogAnswers {
        any_selected: !answers.is_empty(),
        answers,
        former: Vec::new(),
        digests: BTreeMap::new(),
        selection: Selection::Ours,
        similar: vec!["argocd-operator".to_owned()],
    })
}

fn serving() -> CatalogLookups {
    lookups(vec![(
        "operatorhub",
        CatalogLookup::Found(Arc::new(content(&Value::Null))),
    )])
}

fn spec(catalog: Value) -> ClusterExtensionSpec {
    let mut wanted = json!({"packageName": "argocd"});
    wanted
        .as_object_mut()
        .unwrap()
        .extend(catalog.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "namespace": "argocd", "source": {"sourceType": "Catalog", "catalog": wanted},
    }))
    .unwrap()
}

fn revision(number: i64, version: &str, state: &str) -> ClusterObjectSet {
    let conditions = match state {
        "installed" => json!([{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]),
        _ => json!([]),
    };
    let lifecycle = if state == "archived" { "Archived" } else { "Active" };
    serde_json::from_value(json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": format!("argo-{number}"), "annotations": {
            "olm.operatorframework.io/bundle-name": format!("argocd.v{version}"),
            "olm.operatorframework.io/bundle-version": version,
            "olm.operatorframework.io/package-name": "argocd",
            "olm.operatorframework.io/bundle-reference": format!("registry.example/argocd:{version}"),
        }},
        "spec": {"lifecycleState": lifecycle, "revision": number, "collisionProtection": "Prevent"},
        "status": {"conditions": conditions},
    }))
    .unwrap()
}

fn history(revisions: &[(i64, &str, &str)]) -> History {
    let objects: Vec<ClusterObjectSet> = revisions
        .iter()
        // In no order: listing promises none.
        .rev()
        .map(|(number, version, state)| revision(*number, version, state))
        .collect();
    History::read(&objects)
}

fn choose(
    catalog: Value,
    revisions: &[(i64, &str, &str)],
    lookups: &CatalogLookups,
) -> Result<Resolved, Refusal> {
    resolve(&spec(catalog), &history(revisions), lookups, false)
}

fn version(choice: Result<Resolved, Refusal>) -> String {
    match choice {
        Ok(choice) => choice.bundle.version.to_string(),
        Err(refusal) => {
            assert!(!refusal.terminal);
            format!("refused: {}", refusal.message)
        }
    }
}

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}
