//! Choice of the bundle from the spec, the installed bundle and the catalogs.

use std::collections::BTreeMap;
use std::sync::Arc;

use olm_fbc::PackageContent;
use olm_resolve::{CatalogLookup, Selection};
use olm_status::upgrade::Upgrade;
use serde_json::{Value, json};

use super::{choose, content, history, lookups, meta, serving, version};
use crate::extension::{CatalogAnswers, CatalogLookups, unresolved};

#[test]
fn the_bundle_follows_from_spec_and_what_is_installed() {
    let installed: &[(i64, &str, &str)] = &[(1, "1.0.0", "installed")];
    let upgrading: &[(i64, &str, &str)] = &[(1, "1.0.0", "installed"), (2, "1.0.1", "rolling")];
    for (wish, revisions, expected) in [
        (json!({}), &[][..], "1.1.0"),
        (json!({"version": "1.0.x"}), &[][..], "1.0.1"),
        // Only an edge leads on.
        (json!({}), installed, "1.0.1"),
        (json!({"version": "1.0.0"}), installed, "1.0.0"),
        (
            json!({"version": "1.1.0", "upgradeConstraintPolicy": "SelfCertified"}),
            installed,
            "1.1.0",
        ),
        // A rollout in progress is no base to go on from, but stays what is wanted...
        (json!({}), upgrading, "1.0.1"),
        // ...until the spec says otherwise.
        (json!({"version": "1.0.0"}), upgrading, "1.0.0"),
        (json!({"channels": ["alpha"]}), installed, "1.0.1"),
    ] {
        assert_eq!(
            version(choose(wish.clone(), revisions, &serving())),
            expected,
            "{wish} {revisions:?}"
        );
    }
}

#[test]
fn a_bundle_whose_name_no_status_can_hold_is_refused() {
    let metas = |bundle: &str, version: &str| {
        vec![
            meta(
                "olm.package",
                "",
                "argocd",
                json!({"schema": "olm.package", "name": "argocd", "defaultChannel": "alpha"}),
            ),
            meta(
                "olm.channel",
                "argocd",
                "alpha",
                json!({"schema": "olm.channel", "package": "argocd", "name": "alpha", "entries": [{"name": bundle}]}),
            ),
            meta(
                "olm.bundle",
                "argocd",
                bundle,
                json!({"schema": "olm.bundle", "package": "argocd", "name": bundle, "image": "registry.example/argocd:1",
                    "properties": [{"type": "olm.package", "value": {"packageName": "argocd", "version": version}}]}),
            ),
        ]
    };
    let chosen = |bundle: &str| {
        let content = PackageContent::from_metas("argocd", metas(bundle, "1.0.0")).unwrap();
        let found = lookups(vec![("operatorhub", CatalogLookup::Found(Arc::new(content)))]);
        choose(json!({}), &[], &found)
    };
    let refusal = chosen("MyOp.v1.0.0").unwrap_err();
    assert!(refusal.terminal, "only another catalog or another spec helps");
    for part in [
        "bundle \"MyOp.v1.0.0\" with version 1.0.0 of catalog \"operatorhub\"",
        "lowercase RFC 1123 subdomain",
        "spec.source.catalog.version",
    ] {
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }
    assert!(chosen("my_op.v1.0.0").is_err());
    // The rule of the API has no maximum length.
    let long = format!("{}.v1.0.0", "a".repeat(300));
    assert_eq!(chosen(&long).unwrap().bundle.name, *long);
}

#[test]
fn refusals_begin_with_upstreams_sentence() {
    let installed: &[(i64, &str, &str)] = &[(1, "1.0.0", "installed")];
    for (wish, revisions, head) in [
        (
            json!({"version": "1.1.0"}),
            installed,
            "refused: error upgrading from currently installed version \"1.0.0\": no bundles found for package \
             \"argocd\" matching version \"1.1.0\"",
        ),
        (
            json!({"version": "9.0.0"}),
            &[][..],
            "refused: no bundles found for package \"argocd\" matching version \"9.0.0\"",
        ),
        (
            json!({"channels": ["nope"]}),
            &[][..],
            "refused: no bundles found for package \"argocd\" in channels [nope]",
        ),
        (
            json!({"version": "not a range"}),
            &[][..],
            "refused: desired version range \"not a range\" is invalid: ",
        ),
    ] {
        let told = version(choose(wish.clone(), revisions, &serving()));
        assert!(told.starts_with(head), "{wish}: {told}");
    }
    let none = version(choose(
        json!({}),
        &[],
        &lookups(vec![("a", CatalogLookup::NoSuchPackage)]),
    ));
    assert_eq!(
        none,
        "refused: no bundles found for package \"argocd\". Catalogs without the package: \"a\". Did you mean \
         \"argocd-operator\"?"
    );
    let unserved = version(choose(
        json!({}),
        &[],
        &lookups(vec![("a", CatalogLookup::NotServing)]),
    ));
    assert!(
        unserved.contains("catalog \"a\" is not being served"),
        "{unserved}"
    );
    let bad = version(choose(
        json!({}),
        &[],
        &CatalogLookups::InvalidSelector("x".into()),
    ));
    assert_eq!(bad, "refused: desired catalog selector is invalid: x");
}

#[test]
fn what_is_installed_stands_in_only_when_there_is_no_catalog() {
    let installed: &[(i64, &str, &str)] = &[(1, "1.0.0", "installed")];
    let none = lookups(vec![]);
    assert_eq!(version(choose(json!({}), installed, &none)), "1.0.0");
    assert_eq!(
        version(choose(json!({"version": "1.0.0"}), installed, &none)),
        "1.0.0"
    );
    // A range is another wish than the version that is installed, as upstream reads it.
    assert!(version(choose(json!({"version": "1.0.x"}), installed, &none)).starts_with("refused: "));
    assert!(version(choose(json!({}), &[], &none)).starts_with("refused: "));
    let there = lookups(vec![("a", CatalogLookup::NotServing)]);
    assert!(version(choose(json!({}), installed, &there)).starts_with("refused: "));
    let choice = choose(json!({}), installed, &none).unwrap();
    assert_eq!(choice.deprecations, None);
}

#[test]
fn a_rollout_in_progress_is_kept_while_nothing_speaks_against_it() {
    let upgrading: &[(i64, &str, &str)] = &[(1, "1.0.0", "installed"), (2, "1.0.1", "rolling")];
    let none = lookups(vec![]);
    assert_eq!(version(choose(json!({}), upgrading, &none)), "1.0.1");
    assert_eq!(
        version(choose(json!({"version": "1.0.0"}), upgrading, &none)),
        "1.0.0"
    );
    let unread = lookups(vec![("a", CatalogLookup::NotServing)]);
    assert_eq!(version(choose(json!({}), upgrading, &unread)), "1.0.1");
    assert_eq!(
        version(choose(json!({"version": "1.0.x"}), upgrading, &unread)),
        "1.0.1"
    );
    assert!(version(choose(json!({"version": "1.0.0"}), upgrading, &unread)).starts_with("refused: "));
    // A catalog that has been read and does not offer it speaks against it.
    let gone = lookups(vec![("a", CatalogLookup::NoSuchPackage)]);
    assert!(version(choose(json!({}), upgrading, &gone)).starts_with("refused: "));
}

#[test]
fn the_gate_restores_upstreams_choice_between_catalogs() {
    let found = CatalogLookup::Found(Arc::new(content(&Value::Null)));
    let CatalogLookups::Answered(CatalogAnswers { mut answers, .. }) =
        lookups(vec![("a", CatalogLookup::NotServing), ("b", found)])
    else {
        panic!("asked");
    };
    answers[1].priority = 1;
    for (selection, refused) in [(Selection::Ours, false), (Selection::Upstream, true)] {
        let lookups = CatalogLookups::Answered(CatalogAnswers {
            any_selected: true,
            answers: answers.clone(),
            former: Vec::new(),
            digests: BTreeMap::new(),
            selection,
            similar: Vec::new(),
        });
        assert_eq!(
            choose(json!({}), &[], &lookups).is_err(),
            refused,
            "{selection:?}"
        );
    }
}

#[test]
fn deprecations_are_those_of_the_installed_bundle_and_the_named_channels() {
    let entries = json!([
        {"reference": {"schema": "olm.package"}, "message": "package gone"},
        {"reference": {"schema": "olm.channel", "name": "alpha"}, "message": "alpha gone"},
        {"reference": {"schema": "olm.bundle", "name": "argocd.v1.0.0"}, "message": "1.0.0 gone"},
        {"reference": {"schema": "olm.bundle", "name": "argocd.v1.0.1"}, "message": "1.0.1 gone"},
    ]);
    let lookups = lookups(vec![("a", CatalogLookup::Found(Arc::new(content(&entries))))]);
    let choice = choose(json!({}), &[(1, "1.0.0", "installed")], &lookups).unwrap();
    let told = choice.deprecations.unwrap();
    assert_eq!(told.package, ["package gone"]);
    assert!(told.channels.is_empty(), "no channel is named");
    assert_eq!(told.bundles, ["1.0.0 gone"]);
    let choice = choose(json!({"channels": ["alpha"]}), &[], &lookups).unwrap();
    let told = choice.deprecations.unwrap();
    assert_eq!(told.channels, ["alpha gone"]);
    assert!(told.bundles.is_empty(), "nothing is installed");
}

#[test]
fn without_a_resolution_the_upgrade_is_unknown() {
    let upgrade = |revisions| unresolved(&history(revisions));
    assert_eq!(upgrade(&[(1, "1.0.0", "installed")]), Upgrade::Unknown);
    assert_eq!(upgrade(&[(1, "1.0.0", "rolling")]), Upgrade::NothingInstalled);
}
