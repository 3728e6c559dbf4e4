//! Bundles that an extension can be upgraded to.

use std::sync::Arc;

use olm_fbc::Property;
use olm_resolve::CatalogLookup;
use olm_status::cluster_upgrade::Minor;
use serde_json::{Value, json};

use super::{choose, content, lookups};

/// A successor as version, steps, last minor of OpenShift and lowest minor of Kubernetes.
type Row = (String, usize, Option<Minor>, Option<Minor>);

/// Returns the successors of `installed` if the spec asks for it, in a catalog whose bundles have limits.
fn successors(installed: &str) -> Vec<Row> {
    let mut limited = content(&Value::Null);
    let property = |type_: &str, value: &str| Property {
        type_: type_.to_owned(),
        value: json!(value),
    };
    for (name, last, lowest) in [
        ("argocd.v1.0.1", "4.19", "1.29.3"),
        ("argocd.v1.1.0", "4.21", "1.31.0"),
    ] {
        let bundle = limited
            .bundles
            .iter_mut()
            .find(|bundle| bundle.name.as_str() == name);
        let bundle = bundle.unwrap();
        bundle.properties.push(property("example.com/other", "4.1"));
        bundle.properties.push(property("olm.maxOpenShiftVersion", last));
        bundle.min_kube_version = Some(lowest.into());
    }
    let lookups = lookups(vec![
        ("another", CatalogLookup::NoSuchPackage),
        ("operatorhub", CatalogLookup::Found(Arc::new(limited))),
    ]);
    let chosen = choose(
        json!({"version": installed}),
        &[(1, installed, "installed")],
        &lookups,
    );
    let successors = chosen.unwrap().successors.into_iter();
    let rows = successors.map(|one| (one.version.to_string(), one.steps, one.limit, one.min_kube));
    rows.collect()
}

#[test]
fn successors_have_their_steps_and_limits() {
    let minor = |major, minor| Some(Minor { major, minor });
    let first = |steps| ("1.1.0".to_owned(), steps, minor(4, 21), minor(1, 31));
    let second = ("1.0.1".to_owned(), 1, minor(4, 19), minor(1, 29));
    assert_eq!(successors("1.0.0"), [first(2), second]);
    assert_eq!(successors("1.0.1"), [first(1)], "an upgrade never leads back");
    assert_eq!(successors("1.1.0"), []);
}

#[test]
fn without_a_catalog_nothing_is_known_of_successors() {
    let kept = choose(json!({}), &[(1, "1.0.0", "installed")], &lookups(Vec::new()));
    assert_eq!(kept.unwrap().successors, []);
}
