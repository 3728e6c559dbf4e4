use std::collections::BTreeMap;
use std::sync::Arc;

use olm_api::{ClusterObjectSet, keys};
use olm_resolve::{Selection, SupportState};
use serde_json::json;

use super::*;

/// 1.0.0, installed from `catalog`.
fn history(catalog: Option<&str>) -> History {
    let mut annotations =
        json!({keys::BUNDLE_NAME_ANNOTATION: "a.v1.0.0", keys::BUNDLE_VERSION_ANNOTATION: "1.0.0"});
    if let Some(catalog) = catalog {
        annotations[keys::CATALOG_NAME_ANNOTATION] = json!(catalog);
    }
    let set: ClusterObjectSet = serde_json::from_value(json!({
        "metadata": {"name": "x-1", "annotations": annotations},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }))
    .unwrap();
    History::read(&[set])
}

/// A catalog in which the support of 1.0 ends with `end`; without lifecycles if it is empty.
fn until(end: &str) -> CatalogLookup {
    let mut content = PackageContent::default();
    if !end.is_empty() {
        let phases = json!([{"name": "Full support", "startDate": "2020-01-01", "endDate": end}]);
        let object = json!({"versions": [{"name": "1.0", "phases": phases}]});
        content.lifecycles.add(object.to_string().as_bytes());
    }
    CatalogLookup::Found(Arc::new(content))
}

fn lookups(answers: Vec<(&str, i32, CatalogLookup)>) -> CatalogLookups {
    let input = |(name, priority, lookup): (&str, i32, CatalogLookup)| CatalogInput {
        name: name.into(),
        priority,
        lookup,
    };
    CatalogLookups::Answered(CatalogAnswers {
        any_selected: true,
        answers: answers.into_iter().map(input).collect(),
        former: Vec::new(),
        digests: BTreeMap::new(),
        selection: Selection::Ours,
        similar: Vec::new(),
    })
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// The last day that the answer gives; `no data`, or `unread`.
fn last_day(catalog: Option<&str>, answers: Vec<(&str, i32, CatalogLookup)>) -> String {
    match answer(&history(catalog), &lookups(answers), at("2026-01-01T00:00:00Z")) {
        None => "unread".to_owned(),
        Some(SupportAnswer::Known(support)) => support.last_day.unwrap().to_string(),
        Some(SupportAnswer::NoData) => "no data".to_owned(),
        Some(SupportAnswer::Unknown(unknown)) => unknown.reason,
    }
}

#[test]
fn the_catalog_of_the_installed_bundle_counts() {
    let low = || ("low", 0, until("2027-01-01"));
    let high = || ("high", 5, until("2028-01-01"));
    assert_eq!(last_day(Some("low"), vec![high(), low()]), "2027-01-01");
    assert_eq!(
        last_day(Some("low"), vec![high(), ("low", 0, until(""))]),
        "no data"
    );
    assert_eq!(last_day(Some("gone"), vec![low(), high()]), "2028-01-01");
    assert_eq!(last_day(None, vec![low(), ("high", 5, until(""))]), "2027-01-01");
    assert_eq!(
        last_day(
            Some("low"),
            vec![("low", 0, CatalogLookup::NoSuchPackage), high()]
        ),
        "2028-01-01"
    );
    assert_eq!(last_day(None, Vec::new()), "no data");
    let failed = || CatalogLookup::Failed("refused".to_owned());
    assert_eq!(
        last_day(Some("low"), vec![high(), ("low", 0, failed())]),
        "unread"
    );
    assert_eq!(
        last_day(Some("gone"), vec![low(), ("high", 5, failed())]),
        "unread"
    );
    assert_eq!(
        last_day(Some("gone"), vec![("low", 0, CatalogLookup::NotServing), high()]),
        "2028-01-01"
    );
    let now = at("2026-01-01T00:00:00Z");
    assert_eq!(
        answer(&history(None), &CatalogLookups::Unavailable("x".to_owned()), now),
        None
    );
    let nothing_installed = History::read(&[]);
    assert_eq!(
        answer(&nothing_installed, &lookups(vec![low()]), now),
        Some(SupportAnswer::NoData)
    );
}

#[test]
fn a_pass_follows_at_midnight_of_utc() {
    let of = |time: &str| {
        let lookups = lookups(vec![("c", 0, until("2026-12-31"))]);
        answer(&history(Some("c")), &lookups, at(time)).unwrap()
    };
    let state = |answer: &SupportAnswer| answer.known().unwrap().state;
    for (time, expected, change) in [
        (
            "2026-10-01T23:59:59.999Z",
            SupportState::Supported,
            Some("2026-10-02T00:00:00Z"),
        ),
        (
            "2026-10-02T00:00:00Z",
            SupportState::EndingSoon,
            Some("2027-01-01T00:00:00Z"),
        ),
        (
            "2026-12-31T23:59:59Z",
            SupportState::EndingSoon,
            Some("2027-01-01T00:00:00Z"),
        ),
        ("2027-01-01T00:00:00Z", SupportState::Ended, None),
    ] {
        let answer = of(time);
        assert_eq!(
            (state(&answer), next_change(&answer)),
            (expected, change.map(at)),
            "{time}"
        );
        assert_eq!(end(&answer), Some(at("2027-01-01T00:00:00Z").as_second()));
    }
    assert_eq!(
        (end(&SupportAnswer::NoData), next_change(&SupportAnswer::NoData)),
        (None, None)
    );
}
