use super::*;
use crate::{CatalogLookup, Installed, Selection, testing};
use olm_fbc::{Channel, Entry, PackageContent};
use serde_json::json;
use std::sync::Arc;

/// Bundle of the tests: its version with the release, its channels, and the name of a predecessor in these channels.
type Line<'a> = (&'a str, &'a [&'a str], &'a str);

/// Returns a catalog with these bundles, named `p.v` and the version.
fn catalog(name: &str, bundles: &[Line<'_>]) -> CatalogInput {
    let mut content = PackageContent {
        name: "p".to_owned(),
        ..PackageContent::default()
    };
    for (version, channels, replaces) in bundles {
        let name = format!("p.v{version}");
        content.bundles.push(testing::bundle(&name, version));
        for channel in *channels {
            let entry = Entry {
                replaces: (*replaces).to_owned(),
                ..testing::entry(&name)
            };
            match content.channels.iter_mut().find(|known| known.name == *channel) {
                Some(known) => known.entries.push(entry),
                None => content.channels.push(Channel {
                    name: (*channel).to_owned(),
                    entries: vec![entry],
                }),
            }
        }
    }
    testing::catalog(name, content)
}

/// Returns a request for a range of versions and channels; an empty range is none.
fn request(range: &str, channels: &[&str]) -> Request {
    Request {
        package: "p".into(),
        range: RequestedRange::new(range),
        channels: channels.iter().map(|&channel| channel.to_owned()).collect(),
        ..Request::default()
    }
}

fn version(text: &str) -> Change {
    let range = RequestedRange::new(text).unwrap();
    Change::Version { range }
}

fn add(channel: &str) -> Change {
    Change::AddChannel {
        channel: channel.to_owned(),
    }
}

/// Returns a catalog with one bundle and more higher ones than [`MAX_TARGETS`].
fn crowd(low: Line<'_>, channels: &[&str], replaces: &str) -> CatalogInput {
    let high: Vec<String> = (0..=MAX_TARGETS).map(|minor| format!("2.{minor}.0")).collect();
    let mut bundles: Vec<Line<'_>> = high
        .iter()
        .map(|version| (version.as_str(), channels, replaces))
        .collect();
    bundles.push(low);
    catalog("c", &bundles)
}

#[test]
fn bundles_that_need_the_fewest_changes_are_tried_first() {
    // In the channel, out of the range; the others are neither in the channel nor in the range.
    let catalogs = [crowd(("1.0.0", &["asked"], ""), &["other"], "")];
    let suggestion = suggest(&request("9.9.9", &["asked"]), &catalogs, None);
    assert_eq!(suggestion, Some(vec![version("1.0.0")]));

    // In the range, out of the channel.
    let catalogs = [crowd(("1.0.0", &["first"], ""), &["other"], "")];
    let suggestion = suggest(&request("<2.0.0", &["asked"]), &catalogs, None);
    assert_eq!(suggestion, Some(vec![add("first")]));

    // A successor, out of the range.
    let installed = Installed {
        name: "p.v0.9.0".into(),
        version: "0.9.0".into(),
        catalog: None,
    };
    let request = Request {
        installed: Some(installed),
        ..request("9.9.9", &[])
    };
    let catalogs = [crowd(("1.0.0", &["a"], "p.v0.9.0"), &["a"], "")];
    assert_eq!(suggest(&request, &catalogs, None), Some(vec![version("1.0.0")]));
}

#[test]
fn only_the_wanted_version_is_tried() {
    let catalogs = [crowd(("1.0.0", &["a"], ""), &["a"], "")];
    let request = request("9.9.9", &[]);
    assert_eq!(
        suggest(&request, &catalogs, Some("1.0.0")),
        Some(vec![version("1.0.0")])
    );
    assert_eq!(suggest(&request, &catalogs, Some("1.0.1")), None);
}

#[test]
fn a_part_of_a_suggestion_may_suffice_for_another_bundle() {
    let four = ["a", "b", "c", "d"];
    let five = ["a", "b", "c", "d", "last"];
    let mut catalog = catalog(
        "c",
        &[
            ("1.0.0+2", &four, ""),
            ("1.0.0", &five, ""),
            ("2.0.0", &["last"], ""),
        ],
    );
    let CatalogLookup::Found(content) = &mut catalog.lookup else {
        panic!("the catalog has no package");
    };
    let refused = &mut Arc::make_mut(content).bundles[0];
    refused
        .properties
        .push(testing::property("olm.gvk.required", json!({})));
    let request = Request {
        selection: Selection::Upstream,
        ..request("1.0.0", &["asked"])
    };
    // 1.0.0 is tried with its first four channels, in which the refused bundle is the better one; 2.0.0 needs its version, too.
    assert_eq!(suggest(&request, &[catalog], None), Some(vec![add("last")]));
}

#[test]
fn parts_are_all_proper_subsets() {
    let (a, b, c) = (version("1.0.0"), add("x"), Change::SelfCertified);
    let all = [a.clone(), b.clone(), c.clone()];
    assert_eq!(
        parts(&all),
        [
            vec![a.clone()],
            vec![b.clone()],
            vec![c.clone()],
            vec![a.clone(), b.clone()],
            vec![a, c.clone()],
            vec![b, c],
        ]
    );
    assert!(parts(&all[..1]).is_empty());
}

#[test]
fn plans_have_only_changes_that_can_matter() {
    let planned = |request: &Request, catalogs: &[CatalogInput]| {
        let known = KnownCatalogs::new(request, catalogs);
        let facts = &known.facts[0];
        plans(&known, request, facts, &facts.bundles[0]).concat()
    };
    let selects = |changes: &[Change]| changes.iter().any(|change| change.only().is_some());
    let one = [catalog("c", &[("1.0.0", &["a"], "")])];
    let two = [catalog("c", &[("1.0.0", &["a"], "")]), catalog("d", &[])];
    let new = request("", &[]);
    assert!(!selects(&planned(&new, &one)));
    assert!(selects(&planned(&new, &two)));
    let installed = |self_certified: bool| Request {
        installed: Some(Installed::default()),
        self_certified,
        ..request("", &[])
    };
    assert!(!planned(&new, &one).contains(&Change::SelfCertified));
    assert!(planned(&installed(false), &one).contains(&Change::SelfCertified));
    assert!(!planned(&installed(true), &one).contains(&Change::SelfCertified));
}
