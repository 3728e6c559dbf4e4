//! Successors that the spec holds back, and the fields of the spec that hold them.
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use olm_fbc::{Meta, PackageContent};
use olm_resolve::{CatalogInput, CatalogLookup, HeldBy, Installed, Request, resolve};
use olm_version::RequestedRange;
use serde_json::{Value, json};
use std::sync::Arc;

fn meta(schema: &str, name: &str, value: &Value) -> Meta {
    Meta {
        schema: schema.to_owned(),
        package: if schema == "olm.package" { "" } else { "p" }.to_owned(),
        name: name.to_owned(),
        blob: value.to_string().into_bytes(),
    }
}

/// `stable`: 1.0.0 → 1.0.1 → 1.1.0 (over both); `fast`: 1.0.1 → 2.0.0 as well.
fn catalog() -> Vec<CatalogInput> {
    let mut metas = vec![meta(
        "olm.package",
        "p",
        &json!({"schema": "olm.package", "name": "p"}),
    )];
    let channels = [
        (
            "stable",
            json!([{"name": "p.v1.0.0"}, {"name": "p.v1.0.1", "replaces": "p.v1.0.0"},
                   {"name": "p.v1.1.0", "replaces": "p.v1.0.1", "skips": ["p.v1.0.0"]}]),
        ),
        (
            "fast",
            json!([{"name": "p.v1.0.1"}, {"name": "p.v2.0.0", "replaces": "p.v1.0.1"}]),
        ),
    ];
    for (name, entries) in channels {
        metas.push(meta(
            "olm.channel",
            name,
            &json!({"name": name, "entries": entries}),
        ));
    }
    for version in ["1.0.0", "1.0.1", "1.1.0", "2.0.0"] {
        let name = format!("p.v{version}");
        let bundle = json!({"name": name, "image": format!("registry.test/{name}"),
            "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": version}}]});
        metas.push(meta("olm.bundle", &name, &bundle));
    }
    vec![CatalogInput {
        name: "a".into(),
        priority: 0,
        lookup: CatalogLookup::Found(Arc::new(PackageContent::from_metas("p", metas).expect("content"))),
    }]
}

fn held(installed: Option<&str>, range: Option<&str>, channels: &[&str]) -> Option<(String, HeldBy)> {
    let request = Request {
        package: "p".into(),
        range: range.and_then(RequestedRange::new),
        channels: channels.iter().map(|&channel| channel.to_owned()).collect(),
        installed: installed.map(|version| Installed {
            name: format!("p.v{version}").into(),
            version: version.into(),
            catalog: Some("a".into()),
        }),
        ..Request::default()
    };
    let catalogs = catalog();
    let chosen = resolve(&request, &catalogs).expect("a bundle");
    chosen.held_back.map(|held| (held.version.to_string(), held.by))
}

#[test]
fn the_part_of_the_spec_that_holds_back_is_named() {
    let range = |text: &str| RequestedRange::new(text).expect("a range");
    let version = |wanted: &str, hold| Some((wanted.to_owned(), hold));
    assert_eq!(
        held(Some("1.0.0"), Some("1.0.x"), &[]),
        version(
            "1.1.0",
            HeldBy::Version {
                range: range("1.0.x")
            }
        ),
    );
    assert_eq!(
        held(Some("1.0.1"), None, &["stable"]),
        version(
            "2.0.0",
            HeldBy::Channels {
                channels: vec!["stable".to_owned()]
            }
        ),
    );
    // Without the range a successor exists already: the smaller change is suggested.
    assert_eq!(
        held(Some("1.0.1"), Some("1.0.x"), &["stable"]),
        version(
            "1.1.0",
            HeldBy::Version {
                range: range("1.0.x")
            }
        ),
    );
    assert_eq!(
        held(Some("1.1.0"), Some("1.1.x"), &["stable"]),
        None,
        "nothing replaces 1.1.0"
    );
    let range = range("<2");
    let channels = vec!["stable".to_owned()];
    assert_eq!(
        held(Some("1.0.1"), Some("<2"), &["stable"]),
        version("2.0.0", HeldBy::VersionAndChannels { range, channels }),
    );
}

#[test]
fn nothing_is_held_back_without_restrictions() {
    assert_eq!(held(Some("1.0.1"), None, &[]), None);
    assert_eq!(
        held(Some("1.0.0"), None, &[]),
        None,
        "two steps away is no successor"
    );
    assert_eq!(held(None, Some("1.0.x"), &[]), None, "nothing is installed");
}
