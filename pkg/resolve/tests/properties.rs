//! Laws that hold for every request and all catalogs, tried on random small ones.
//!
//! `OLM_RESOLVE_CASES` sets how many cases the suggestions are tried on; the other laws get a tenth.
#![expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and read the environment"
)]

mod common;

use common::{Case, TAPE, case};
use olm_resolve::{
    CatalogLookup, CatalogOutcome, Change, Request, Resolution, Selection, apply, resolve, suggest,
};
use olm_version::{RequestedRange, VersionRelease};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;

const CASES: u32 = 100_000;

fn check(part: u32, law: fn(&Case)) {
    let cases = std::env::var("OLM_RESOLVE_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut runner = TestRunner::new(Config {
        cases: cases.unwrap_or(CASES) / part,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    });
    let outcome = runner.run(&vec(any::<u8>(), 0..TAPE), |tape| {
        law(&case(&tape));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Returns true if `resolution` is what `wanted` names: a bundle's name, or a version with or without a release.
fn is_wanted(resolution: &Resolution, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    if resolution.bundle == wanted {
        return true;
    }
    let Ok(version) = VersionRelease::parse_legacy(wanted) else {
        return false;
    };
    version
        .version
        .cmp_precedence(&resolution.version.version)
        .is_eq()
        && (version.release.is_none() || version.release == resolution.version.release)
}

fn gives(case: &Case, changes: &[Change]) -> bool {
    let (request, catalogs) = apply(changes, &case.request, &case.catalogs);
    resolve(&request, &catalogs).is_ok_and(|resolution| is_wanted(&resolution, case.wanted.as_deref()))
}

/// Returns the case with lifecycles in every catalog, in part unreadable.
fn with_lifecycles(case: &Case) -> Case {
    let mut case = case.clone();
    for catalog in &mut case.catalogs {
        if let CatalogLookup::Found(content) = &mut catalog.lookup {
            let lifecycles = &mut Arc::make_mut(content).lifecycles;
            lifecycles.add(
                br#"{"versions": [{"name": "1.0", "phases": [{"name": "Full", "endDate": "2001-01-01"}]}]}"#,
            );
            lifecycles.add(b"unreadable");
        }
    }
    case
}

#[test]
fn the_end_of_support_changes_no_choice() {
    check(10, |case| {
        let supplemented = with_lifecycles(case);
        let equal = match (
            resolve(&case.request, &case.catalogs),
            resolve(&supplemented.request, &supplemented.catalogs),
        ) {
            (Ok(without), Ok(with)) => without == with,
            (Err(without), Err(with)) => without.to_string() == with.to_string(),
            _ => false,
        };
        assert!(equal, "{case:?}");
        let wanted = case.wanted.as_deref();
        assert_eq!(
            suggest(&case.request, &case.catalogs, wanted),
            suggest(&supplemented.request, &supplemented.catalogs, wanted)
        );
    });
}

#[test]
fn suggestions_are_sound_and_minimal() {
    check(1, |case| {
        let suggestion = suggest(&case.request, &case.catalogs, case.wanted.as_deref());
        let unread = case
            .catalogs
            .iter()
            .any(|c| matches!(c.lookup, CatalogLookup::NotServing | CatalogLookup::Failed(_)));
        match suggestion.as_deref() {
            Some([Change::WaitFor { .. }]) => {
                assert!(unread, "nothing to wait for");
                nothing_helps(case);
            }
            None => {
                assert!(!unread, "what could not be read might help");
                nothing_helps(case);
            }
            Some(changes) => {
                assert!(gives(case, changes), "does not help: {changes:?}");
                for left in 0..changes.len() {
                    let mut fewer = changes.to_vec();
                    let dropped = fewer.remove(left);
                    assert!(!gives(case, &fewer), "not needed: {dropped:?} of {changes:?}");
                }
            }
        }
    });
}

/// Even every change at once does not bring the wanted version.
fn nothing_helps(case: &Case) {
    for catalog in &case.catalogs {
        let CatalogLookup::Found(content) = &catalog.lookup else {
            continue;
        };
        for bundle in &content.bundles {
            let Ok(version) = bundle.version_release(case.request.release_support) else {
                continue;
            };
            let range = RequestedRange::exactly(&version.version);
            let channels = content.channels.iter().map(|channel| Change::SetChannel {
                channel: channel.name.clone(),
            });
            for channel in channels.chain([Change::AnyChannel]) {
                let changes = [
                    Change::Version { range: range.clone() },
                    channel,
                    Change::SelectCatalog {
                        catalog: catalog.name.clone(),
                    },
                    Change::SelfCertified,
                ];
                assert!(!gives(case, &changes), "would have helped: {changes:?}");
            }
        }
    }
}

#[test]
fn every_bundle_but_the_chosen_one_is_ruled_out() {
    check(10, |case| {
        let (explanation, chosen) = match resolve(&case.request, &case.catalogs) {
            Ok(resolution) => (
                resolution.explanation,
                Some((resolution.catalog, resolution.bundle)),
            ),
            Err(error) => (*error.explanation, None),
        };
        for catalog in &explanation.catalogs {
            let is_chosen = matches!(catalog.outcome, CatalogOutcome::Chosen { .. });
            assert_eq!(
                is_chosen,
                chosen.as_ref().is_some_and(|(name, _)| *name == catalog.name)
            );
            for candidate in &catalog.candidates {
                let is_chosen = chosen
                    .as_ref()
                    .is_some_and(|(name, bundle)| *name == catalog.name && *bundle == candidate.bundle);
                assert_eq!(
                    is_chosen,
                    candidate.ruled_out.is_none(),
                    "{candidate:?} of {}",
                    catalog.name
                );
                let via = catalog
                    .candidates
                    .iter()
                    .find(|other| candidate.via.as_ref() == Some(&other.bundle));
                match (candidate.steps, via) {
                    (Some(steps), Some(via)) => assert_eq!(via.steps, Some(steps - 1)),
                    (Some(steps), None) => assert!(steps <= 1),
                    (None, via) => assert_eq!(via, None),
                }
            }
        }
    });
}

#[test]
fn the_result_does_not_depend_on_the_order_of_catalogs() {
    check(10, |case| {
        let request = Request {
            selection: Selection::Ours,
            ..case.request.clone()
        };
        let mut turned = case.catalogs.clone();
        turned.rotate_left(1);
        match (resolve(&request, &case.catalogs), resolve(&request, &turned)) {
            (Ok(one), Ok(other)) => assert_eq!(one, other),
            (Err(one), Err(other)) => {
                assert_eq!(one.to_string(), other.to_string());
                assert_eq!(one.explanation, other.explanation);
            }
            (one, other) => panic!("{one:?} and {other:?}"),
        }
    });
}

#[test]
fn an_installed_extension_stays_with_its_catalog() {
    check(10, |case| {
        let home = case
            .request
            .installed
            .as_ref()
            .and_then(|installed| installed.catalog.as_ref());
        let Some(home) = home.filter(|_| case.request.selection == Selection::Ours) else {
            return;
        };
        if let Ok(resolution) = resolve(&case.request, &case.catalogs) {
            let there = case.catalogs.iter().any(|catalog| catalog.name == *home);
            assert_eq!(there, resolution.catalog == *home);
            assert_eq!(there, resolution.moved_from.is_none());
        }
    });
}

#[test]
fn messages_are_upstreams_sentence_and_at_most_a_kilobyte() {
    check(10, |case| {
        if let Err(error) = resolve(&case.request, &case.catalogs) {
            let (text, head) = (error.to_string(), error.head());
            assert!(text.starts_with(&head));
            assert!(text.len() <= head.len() + ". ".len() + 1024, "{text}");
        }
    });
}
