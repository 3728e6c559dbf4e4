//! Joint moves, compared with a search through all combinations.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use olm_fbc::Property;
use olm_resolve::constraint::{Environment, Gvk, InstalledBundle, unmet};
use olm_resolve::{Party, TooMany, joint_move};
use olm_version::BundleVersion;
use proptest::prelude::*;
use serde_json::{Value, json};

fn api(type_: &str, kind: &str) -> Value {
    json!({"type": type_, "value": {"group": "example.com", "version": "v1", "kind": kind}})
}

fn needs(package: &str, range: &str) -> Value {
    json!({"type": "olm.package.required", "value": {"packageName": package, "versionRange": range}})
}

fn party(package: &str, version: &str, properties: &[Value]) -> Party {
    let list: Vec<Property> = serde_json::from_value(json!(properties)).unwrap();
    let version = BundleVersion::recorded(version, None);
    let bundle = InstalledBundle::new(package.into(), &version, properties.to_vec()).unwrap();
    Party::new(bundle, &list)
}

#[test]
fn two_extensions_that_need_each_other_move_together() {
    let a = vec![
        party("a", "3.0.0", &[needs("b", ">=3.0.0")]),
        party("a", "2.0.0", &[needs("b", ">=2.0.0"), api("olm.gvk", "Kite")]),
        party("a", "1.0.0", &[needs("b", "<2.0.0")]),
    ];
    let b = vec![
        party(
            "b",
            "2.0.0",
            &[needs("a", ">=2.0.0"), api("olm.gvk.required", "Kite")],
        ),
        party("b", "1.0.0", &[needs("a", "<2.0.0")]),
    ];
    let none = BTreeSet::new();
    assert_eq!(
        joint_move(&[a.clone(), b.clone()], &[], &none),
        Ok(Some(vec![1, 0]))
    );
    // Another extension needs the old version of one of them.
    let other = party("c", "1.0.0", &[needs("a", "<2.0.0")]);
    assert_eq!(
        joint_move(&[a.clone(), b.clone()], &[other], &none),
        Ok(Some(vec![2, 1]))
    );
    let stuck = party("c", "1.0.0", &[needs("d", ">=1.0.0")]);
    assert_eq!(joint_move(&[a, b], &[stuck], &none), Ok(None));
    assert_eq!(joint_move(&[Vec::new()], &[], &none), Ok(None));
}

#[test]
fn a_search_has_an_end() {
    let many = |package: &str| -> Vec<Party> {
        (0..60)
            .map(|minor| party(package, &format!("1.{minor}.0"), &[needs("z", ">=1.0.0")]))
            .collect()
    };
    let members = [many("a"), many("b"), many("c")];
    assert_eq!(joint_move(&members, &[], &BTreeSet::new()), Err(TooMany));
}

/// Returns the highest combination by a look at each of them.
fn brute_force(members: &[Vec<Party>], others: &[Party], served: &BTreeSet<Gvk>) -> Option<Vec<usize>> {
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for candidates in members {
        combinations = combinations
            .into_iter()
            .flat_map(|start| (0..candidates.len()).map(move |next| [start.clone(), vec![next]].concat()))
            .collect();
    }
    combinations.sort();
    combinations.into_iter().find(|combination| {
        let chosen: Vec<&Party> = combination
            .iter()
            .zip(members)
            .map(|(at, member)| &member[*at])
            .chain(others)
            .collect();
        chosen.iter().enumerate().all(|(own, party)| {
            let mut environment = Environment {
                served: served.clone(),
                ..Environment::default()
            };
            for (place, other) in chosen.iter().enumerate() {
                environment.served.extend(other.provided.clone());
                if place != own {
                    environment.installed.push(other.bundle.clone());
                }
            }
            unmet(&party.requirements, &environment).is_empty()
        })
    })
}

const PACKAGES: [&str; 3] = ["a", "b", "c"];

fn property() -> impl Strategy<Value = Value> {
    let range = prop_oneof![Just(">=2.0.0"), Just("<2.0.0"), Just(">=3.0.0"), Just("2.0.0")];
    let kind = prop_oneof![Just("Kite"), Just("Lamp")];
    let package = prop::sample::select(PACKAGES.to_vec());
    prop_oneof![
        (package, range).prop_map(|(package, range)| needs(package, range)),
        kind.clone().prop_map(|kind| api("olm.gvk", kind)),
        kind.prop_map(|kind| api("olm.gvk.required", kind)),
    ]
}

proptest! {
    #[test]
    fn the_result_is_the_highest_combination(
        properties in prop::collection::vec(prop::collection::vec(prop::collection::vec(property(), 0..3), 1..4), 2..4),
        other in prop::collection::vec(property(), 0..2),
        serves in any::<bool>(),
    ) {
        let members: Vec<Vec<Party>> = properties
            .iter()
            .zip(PACKAGES)
            .map(|(versions, package)| {
                let numbered = versions.iter().enumerate();
                numbered.map(|(at, own)| party(package, &format!("{}.0.0", versions.len() - at), own)).collect()
            })
            .collect();
        let others = [party("z", "1.0.0", &other)];
        let mut served = BTreeSet::new();
        if serves {
            served.insert(Gvk { group: "example.com".into(), version: "v1".into(), kind: "Lamp".into() });
        }
        prop_assert_eq!(joint_move(&members, &others, &served), Ok(brute_force(&members, &others, &served)));
    }
}
