//! Tables of decisions: spec, revisions and catalogs in; a bundle, a refusal or a desired state out.
#![expect(clippy::needless_pass_by_value, reason = "calls read better with literals")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use olm_api::{ClusterExtensionSpec, ClusterObjectSet, keys};
use olm_fbc::{Meta, PackageContent};
use olm_image::CanonicalRef;
use olm_resolve::{CatalogInput, CatalogLookup, Selection};
use olm_status::catalogs::{FormerContent, UnreadCatalogs};
use olm_status::upgrade::Upgrade;
use olm_text::name::{CatalogName, ImageText};
use serde_json::{Value, json};

use super::desired_state::{CurrentRevision, NewRevision, Settings, TakenOver};
use super::{
    BundleRef, CatalogAnswers, CatalogLookups, CertificateProvider, DesiredState, History, Refusal,
    RenderInputs, Resolved, desired_state, superfluous,
};

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

fn minutes(deadline: i32) -> Settings<'static> {
    Settings {
        deadline_minutes: Some(deadline),
        soak: None,
    }
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
    super::resolve(&spec(catalog), &history(revisions), lookups, false)
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

fn bundle(version: &str) -> BundleRef {
    BundleRef {
        name: format!("argocd.v{version}").into(),
        version: version.into(),
        package: "argocd".into(),
        image: ImageText::from(format!("registry.example/argocd:{version}")).into(),
        catalog: Some("operatorhub".into()),
    }
}

/// Two contents of one repository.
static IMAGES: LazyLock<[CanonicalRef; 2]> = LazyLock::new(|| {
    ["1", "2"].map(|digit| {
        let image = format!("registry.example/argocd@sha256:{}", digit.repeat(64));
        image.parse().unwrap()
    })
});

fn inputs<'a>(
    bundle: &'a BundleRef,
    config: Option<&'a Value>,
    provider: CertificateProvider,
) -> RenderInputs<'a> {
    RenderInputs {
        bundle,
        canonical_image: &IMAGES[0],
        namespace: Some("argocd"),
        config,
        namespaces: None,
        provider,
    }
}

/// A history whose newest revision was made from `inputs`, with `certificates`.
fn made_from(inputs: &RenderInputs<'_>, certificates: CertificateProvider) -> History {
    let mut history = history(&[(3, "1.0.0", "rolling"), (1, "0.9.0", "archived")]);
    let identity = RenderInputs {
        provider: certificates,
        ..inputs.clone()
    }
    .identity();
    let newest = history.rolling_out.last_mut().unwrap();
    newest.identity = Some(identity);
    newest.certificates = Some(certificates.as_str().into());
    history
}

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

#[test]
fn the_same_inputs_need_no_new_revision() {
    let bundle = bundle("1.0.0");
    let wanted = inputs(&bundle, None, CertificateProvider::CertManager);
    let keep = |differs| {
        DesiredState::Current(CurrentRevision {
            name: "argo-3".into(),
            deadline_differs: differs,
            soak_differs: false,
            moves_from: None,
        })
    };
    let with_webhooks = made_from(&wanted, CertificateProvider::CertManager);
    assert_eq!(
        desired_state("argo", Settings::default(), &wanted, None, &with_webhooks, now()),
        Ok(keep(false))
    );
    assert_eq!(
        desired_state("argo", minutes(10), &wanted, None, &with_webhooks, now()),
        Ok(keep(true))
    );
    // Without webhooks it does not matter who makes certificates.
    let without = made_from(&wanted, CertificateProvider::None);
    assert_eq!(
        desired_state("argo", Settings::default(), &wanted, None, &without, now()),
        Ok(keep(false))
    );
}

#[test]
fn a_move_without_change_is_remembered_on_the_revision_that_is_there() {
    let mut bundle = bundle("1.0.0");
    bundle.catalog = Some("old".into());
    let wanted = inputs(&bundle, None, CertificateProvider::None);
    let mut history = made_from(&wanted, CertificateProvider::None);
    let newest = history.rolling_out.last_mut().unwrap();
    newest.bundle.catalog = Some("old".into());
    let revision = newest.name.clone();
    let moves = |history: &History, from: Option<&CatalogName>| match desired_state(
        "argo",
        Settings::default(),
        &wanted,
        from,
        history,
        now(),
    )
    .unwrap()
    {
        DesiredState::Current(current) => current.moves_from,
        DesiredState::New(new) => panic!("{new:?}"),
    };
    let old = CatalogName::from("old");
    assert_eq!(moves(&history, None), None);
    assert_eq!(moves(&history, Some(&old)), Some(old.clone()));
    history.moved(&revision, &old, &"new".into());
    assert_eq!(moves(&history, Some(&old)), None, "it has moved");
    let view = history.newest().unwrap().view();
    assert_eq!(
        (view.catalog.as_deref(), view.moved_from.as_deref()),
        (Some("new"), Some("old"))
    );
}

#[test]
fn anything_else_does() {
    let bundle = bundle("1.0.0");
    let config = json!({"watchNamespace": "other"});
    let wanted = inputs(&bundle, None, CertificateProvider::CertManager);
    let history = made_from(&wanted, CertificateProvider::CertManager);
    let newer = self::bundle("1.0.1");
    let new = DesiredState::New(NewRevision {
        name: "argo-4".into(),
        number: 4,
        taken_over: None,
        renewal: false,
    });
    for other in [
        RenderInputs {
            bundle: &newer,
            ..wanted.clone()
        },
        RenderInputs {
            config: Some(&config),
            ..wanted.clone()
        },
        RenderInputs {
            canonical_image: &IMAGES[1],
            ..wanted.clone()
        },
        RenderInputs {
            namespace: Some("elsewhere"),
            ..wanted.clone()
        },
        RenderInputs {
            provider: CertificateProvider::Own,
            ..wanted.clone()
        },
        RenderInputs {
            namespaces: Some(&[]),
            ..wanted.clone()
        },
    ] {
        assert_eq!(
            desired_state("argo", Settings::default(), &other, None, &history, now()),
            Ok(new.clone()),
            "{other:?}"
        );
    }
    assert_eq!(
        desired_state(
            "argo",
            Settings::default(),
            &wanted,
            None,
            &History::default(),
            now()
        ),
        Ok(DesiredState::New(NewRevision {
            name: "argo-1".into(),
            number: 1,
            taken_over: None,
            renewal: false,
        }))
    );
}

#[test]
fn a_release_of_the_same_bundle_may_become_the_wanted_revision() {
    let mut release = revision(1, "1.0.0", "installed");
    let annotations = release.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::TAKEN_OVER_OBJECTS_ANNOTATION.into(), "sha256:a".into());
    let found = |bundle: &BundleRef, release: &ClusterObjectSet| {
        let wanted = inputs(bundle, None, CertificateProvider::None);
        let history = History::read(std::slice::from_ref(release));
        match desired_state("argo", Settings::default(), &wanted, None, &history, now()) {
            Ok(DesiredState::New(new)) => new.taken_over,
            other => panic!("{other:?}"),
        }
    };
    let whole = TakenOver {
        name: "argo-1".into(),
        objects: "sha256:a".into(),
    };
    assert_eq!(found(&bundle("1.0.0"), &release), Some(whole));
    assert_eq!(found(&bundle("1.0.1"), &release), None, "another bundle");
    let mut compared = release.clone();
    let annotations = compared.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "olm.operatorframework.io/revision-identity".into(),
        "other".into(),
    );
    assert_eq!(found(&bundle("1.0.0"), &compared), None, "it was compared before");

    let mut history = History::read(&[release]);
    history.replace(&compared);
    assert_eq!(history.installed.unwrap().identity.as_deref(), Some("other"));
}

#[test]
fn a_success_a_failure_and_a_new_number_change_what_may_follow() {
    let first = (1, "1.0.0", "installed");
    let upgrading = history(&[first, (2, "1.1.0", "rolling out")]);
    let archived = history(&[(1, "1.0.0", "archived"), first, (2, "1.1.0", "rolling out")]);
    assert!(
        upgrading.permits_as(&archived),
        "an archived revision permits nothing"
    );
    let mut failed = upgrading.clone();
    failed.rolling_out[0].conditions =
        serde_json::from_value(json!([{"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]))
        .unwrap();
    let others = [
        failed,
        history(&[first, (2, "1.1.0", "installed")]),
        history(&[first, (2, "1.1.0", "rolling out"), (3, "1.2.0", "rolling out")]),
        history(&[first]),
    ];
    for other in others {
        assert!(!upgrading.permits_as(&other), "{other:?}");
    }
}

#[test]
fn a_revision_that_was_overtaken_no_longer_rolls_out() {
    let recovered = history(&[(1, "1.0.0", "rolling out"), (2, "1.0.1", "installed")]);
    assert_eq!(recovered.installed.as_ref().unwrap().name, "argo-2");
    assert_eq!(recovered.rolling_out, [], "the status names one version");
    assert_eq!(recovered.highest, 2);
    let upgrading = history(&[(1, "1.0.0", "installed"), (2, "1.0.1", "rolling out")]);
    assert_eq!(upgrading.rolling_out.len(), 1);
}

#[test]
fn own_certificates_are_renewed_by_a_new_revision() {
    let bundle = bundle("1.0.0");
    let wanted = inputs(&bundle, None, CertificateProvider::Own);
    let mut history = made_from(&wanted, CertificateProvider::Own);
    for (due, keeps) in [("2026-06-02T00:00:00Z", true), ("2026-06-01T00:00:00Z", false)] {
        history.rolling_out.last_mut().unwrap().renewal = Some(due.into());
        let state = desired_state("argo", Settings::default(), &wanted, None, &history, now()).unwrap();
        assert_eq!(matches!(state, DesiredState::Current(_)), keeps, "{due}");
    }
}

#[test]
fn a_name_that_is_too_long_is_refused_in_words() {
    let bundle = bundle("1.0.0");
    let wanted = inputs(&bundle, None, CertificateProvider::None);
    let name = "x".repeat(62);
    let refusal = desired_state(
        &name,
        Settings::default(),
        &wanted,
        None,
        &History::default(),
        now(),
    )
    .unwrap_err();
    assert!(refusal.terminal);
    assert!(refusal.message.contains("shorter name"), "{}", refusal.message);
    assert!(
        desired_state(
            &name[..61],
            Settings::default(),
            &wanted,
            None,
            &History::default(),
            now()
        )
        .is_ok()
    );
}

#[test]
fn revisions_are_read_in_the_order_of_their_numbers() {
    let history = history(&[
        (1, "1.0.0", "archived"),
        (2, "1.0.1", "installed"),
        (9, "1.1.0", "rolling"),
        (10, "1.1.0", "rolling"),
    ]);
    assert_eq!(history.highest, 10);
    assert_eq!(history.installed.as_ref().map(|r| r.number), Some(2));
    assert_eq!(history.newest().map(|r| r.number), Some(10));
    let archived: Vec<&str> = history
        .archived
        .iter()
        .map(|revision| revision.name.as_str())
        .collect();
    assert_eq!(archived, ["argo-1"]);
    assert!(superfluous(&history).is_empty());
}

fn names(history: &History) -> Vec<&str> {
    let superfluous = superfluous(history).iter();
    superfluous.map(|revision| revision.name.as_str()).collect()
}

#[test]
fn five_archived_revisions_are_kept() {
    let revisions: Vec<(i64, &str, &str)> = (1..=7).map(|number| (number, "1.0.0", "archived")).collect();
    assert_eq!(names(&history(&revisions)), ["argo-1", "argo-2"]);
}

#[test]
fn an_archived_revision_that_is_being_deleted_does_not_count() {
    let mut objects: Vec<ClusterObjectSet> = (1..=7)
        .map(|number| revision(number, "1.0.0", "archived"))
        .collect();
    objects[0].metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(names(&History::read(&objects)), ["argo-2"]);
}

#[test]
fn former_content_is_never_up_to_date() {
    let mut lookups = serving();
    let catalog = |history: &mut History, name: &str| {
        history.installed.as_mut().unwrap().bundle.catalog = Some(name.into());
    };
    let installed = &[(1, "1.1.0", "installed")];
    let mut history = history(installed);
    let upgrade = |history: &History, lookups: &CatalogLookups| {
        super::resolve(&spec(json!({})), history, lookups, false)
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
        let resolved = super::resolve(&spec(wanted), history, &lookups, false).unwrap();
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
