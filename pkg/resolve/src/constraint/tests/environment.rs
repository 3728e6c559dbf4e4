//! APIs that requirements name and bundles provide, and installed bundles.

use serde_json::{Value, json};

use super::{constraint, gvk};
use crate::constraint::{InstalledBundle, apis, group_versions, parse, provided_apis, required_apis};
use crate::testing::property;

#[test]
fn a_catalogs_properties_become_those_of_the_bundle() {
    let certified = property("certified", json!(true));
    let bundle = InstalledBundle::with("blue".into(), &"1.2.0".into(), &[certified]).unwrap();
    assert_eq!(
        bundle.properties,
        [
            json!({"type": "certified", "value": true}),
            json!({"type": "olm.package", "value": {"packageName": "blue", "version": "1.2.0"}}),
        ]
    );
}

#[test]
fn apis_are_those_of_every_level() {
    let one = |kind: &str| json!({"gvk": {"group": "example.com", "version": "v1", "kind": kind}});
    let some = |kind: &str, list: Value| json!({kind: {"constraints": list}});
    let package = json!({"package": {"name": "blue", "versionRange": ">=1.0.0"}});
    let nested = some(
        "all",
        json!([
            some("any", json!([one("A"), package])),
            some("not", json!([one("B")]))
        ]),
    );
    let needs = [
        constraint(nested),
        constraint(json!({"cel": {"rule": "true"}})),
        property("olm.gvk.required", json!({"version": "v1", "kind": "Pod"})),
    ];
    let requirements = parse(&needs).unwrap();
    assert_eq!(
        required_apis(&requirements),
        [
            gvk("", "v1", "Pod"),
            gvk("example.com", "v1", "A"),
            gvk("example.com", "v1", "B")
        ]
        .into()
    );
    let groups = [("", "v1"), ("example.com", "v1")];
    assert_eq!(
        group_versions(&requirements),
        groups
            .map(|(group, version)| (group.to_owned(), version.to_owned()))
            .into()
    );
}

#[test]
fn group_versions_are_limited() {
    let need = |at: usize| {
        property(
            "olm.gvk.required",
            json!({"version": format!("v{at}"), "kind": "A"}),
        )
    };
    let many: Vec<_> = (0..200).map(need).collect();
    assert_eq!(group_versions(&parse(&many).unwrap()).len(), 128);
}

#[test]
fn provided_apis_are_whole() {
    let api = |type_: &str, kind: &str| property(type_, json!({"group": "g", "version": "v1", "kind": kind}));
    let all = [
        api("olm.gvk", "A"),
        api("olm.gvk.required", "B"),
        property("olm.gvk", json!({"version": "v1", "kind": "Pod"})),
        property("olm.gvk", json!({"group": "g", "kind": "C"})),
        property("olm.gvk", json!({"group": "g", "version": "v1"})),
    ];
    let provided: Vec<_> = provided_apis(&all).collect();
    assert_eq!(provided, [gvk("g", "v1", "A"), gvk("", "v1", "Pod")]);
    let served: Vec<_> = apis("g", "v1", vec!["A".to_owned(), "B".to_owned()]).collect();
    assert_eq!(served, [gvk("g", "v1", "A"), gvk("g", "v1", "B")]);
}
