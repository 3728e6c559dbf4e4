//! Decisions from the former content of a catalog, and reports of catalogs that are left out.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use olm_resolve::CatalogLookup;
use olm_status::catalogs::{FormerContent, UnreadCatalogs};
use olm_status::upgrade::Upgrade;
use serde_json::{Value, json};

use super::{choose, content, history, lookups, now, serving, spec};
use crate::extension::{CatalogAnswers, CatalogLookups, History, resolve};

#[test]
fn former_content_is_never_up_to_date() {
    let mut lookups = serving();
    let catalog = |history: &mut History, name: &str| {
        history.installed.as_mut().unwrap().bundle.catalog = Some(name.into());
    };
    let installed = &[(1, "1.1.0", "installed")];
    let mut history = history(installed);
    let upgrade = |history: &History, lookups: &CatalogLookups| {
        resolve(&spec(json!({})), history, lookups, false)
            .unwrap()
            .upgrade
    };
    catalog(&mut history, "operatorhub");
    assert_eq!(upgrade(&history, &lookups), Upgrade::UpToDate);
    assert!(!lookups.incomplete());
    assert_eq!(lookups.degraded(&[]), Some(UnreadCatalogs::default()));
    let stands_in = |name: &str| FormerContent {
        catalog: name.into(),
        since: Time(now()),
        cause: "away".to_owned(),
    };
    let put = |lookups: &mut CatalogLookups, name: &str| {
        if let CatalogLookups::Answered(CatalogAnswers { former, .. }) = lookups {
            *former = vec![stands_in(name)];
        }
    };
    put(&mut lookups, "operatorhub");
    assert_eq!(upgrade(&history, &lookups), Upgrade::FormerContent);
    assert!(lookups.incomplete());
    assert_eq!(lookups.degraded(&[]).unwrap().former, [stands_in("operatorhub")]);
    // An extension stays with its catalog, so that another one's former content says nothing of upgrades.
    put(&mut lookups, "other");
    assert_eq!(upgrade(&history, &lookups), Upgrade::UpToDate);
    assert!(lookups.incomplete());
    history.installed.as_mut().unwrap().bundle.catalog = None;
    assert_eq!(upgrade(&history, &lookups), Upgrade::FormerContent);
}

/// Found by the simulation: scenario `two`, schedule `341=former`.
#[test]
fn former_content_takes_no_rollout_back() {
    let mut lookups = serving();
    if let CatalogLookups::Answered(CatalogAnswers { former, .. }) = &mut lookups {
        *former = vec![FormerContent {
            catalog: "operatorhub".into(),
            since: Time(now()),
            cause: "away".to_owned(),
        }];
    }
    let mut history = history(&[(1, "1.2.0", "rolling out")]);
    let rolling_out = history.rolling_out.last_mut().unwrap();
    rolling_out.bundle.catalog = Some("operatorhub".into());
    let chosen = |history: &History, wanted: Value| {
        let resolved = resolve(&spec(wanted), history, &lookups, false).unwrap();
        resolved.bundle.version.to_string()
    };
    assert_eq!(chosen(&history, json!({})), "1.2.0");
    assert_eq!(
        chosen(&history, json!({"version": "1.1.0"})),
        "1.1.0",
        "the spec wins"
    );
    history.rolling_out.last_mut().unwrap().bundle.catalog = Some("other".into());
    assert_eq!(chosen(&history, json!({})), "1.1.0");
}

#[test]
fn a_catalog_that_is_left_out_is_told_and_asked_again() {
    let found = CatalogLookup::Found(Arc::new(content(&Value::Null)));
    for (lookup, incomplete) in [
        (CatalogLookup::Failed("refused".to_owned()), true),
        // Its coming back is an event.
        (CatalogLookup::NotServing, false),
    ] {
        let mut lookups = lookups(vec![("high", found.clone()), ("low", lookup)]);
        if let CatalogLookups::Answered(CatalogAnswers { answers, .. }) = &mut lookups {
            answers[0].priority = 1;
        }
        let choice = choose(json!({}), &[], &lookups).unwrap();
        let told = lookups.degraded(&choice.left_out).unwrap();
        let names: Vec<&str> = told.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["low"]);
        assert_eq!(lookups.incomplete(), incomplete);
    }
}
