use std::collections::BTreeMap;

use olm_api::{ClusterObjectSet, keys};
use olm_resolve::Selection;
use olm_status::cluster_extension::Deprecations;
use serde_json::{Value, json};

use super::super::catalogs::CatalogAnswers;
use super::*;

fn extension(rollout: &Value) -> ClusterExtension {
    serde_json::from_value(
        json!({"metadata": {"name": "x"}, "spec": {"namespace": "n", "rollout": rollout,
        "source": {"sourceType": "Catalog", "catalog": {"packageName": "a"}}}}),
    )
    .unwrap()
}

/// `state` is the reason of `Progressing`; `Succeeded` has rolled out.
fn set(number: i64, version: &str, state: &str, annotations: &Value) -> ClusterObjectSet {
    let condition = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "reason": state,
        "message": format!("{version} is {state}"), "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let good = ["Succeeded", "RollingOut", "Soaking", "Retrying"].contains(&state);
    let mut conditions = vec![condition("Progressing", if good { "True" } else { "False" })];
    if ["Succeeded", "Archived"].contains(&state) {
        conditions.push(condition("Succeeded", "True"));
    }
    let mut all = json!({keys::BUNDLE_NAME_ANNOTATION: format!("a.v{version}"),
        keys::BUNDLE_VERSION_ANNOTATION: version, keys::REVISION_IDENTITY_ANNOTATION: format!("sha256:{version}")});
    for (key, value) in annotations.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    serde_json::from_value(json!({
        "metadata": {"name": format!("x-{number}"), "annotations": all},
        "spec": {"lifecycleState": if state == "Archived" { "Archived" } else { "Active" }, "revision": number,
            "collisionProtection": "Prevent"},
        "status": {"conditions": conditions},
    }))
    .unwrap()
}

fn resolved(version: &str) -> Resolved {
    Resolved {
        bundle: BundleRef {
            name: format!("a.v{version}").as_str().into(),
            version: version.into(),
            package: "a".into(),
            image: olm_text::name::ImageText::from("r.example/a:1".to_owned()).into(),
            catalog: Some("c".into()),
        },
        properties: Vec::new(),
        min_kube_version: None,
        deprecations: Some(Deprecations::default()),
        moved_from: None,
        upgrade: Upgrade::UpToDate,
        successors: Vec::new(),
        left_out: Vec::new(),
    }
}

fn lookups(digest: &str) -> CatalogLookups {
    CatalogLookups::Answered(CatalogAnswers {
        any_selected: true,
        answers: Vec::new(),
        former: Vec::new(),
        digests: BTreeMap::from([("c".into(), digest.to_owned())]),
        selection: Selection::Ours,
        similar: Vec::new(),
    })
}

const BACK: Direction = Direction::Restore {
    to: 1,
    automatic: true,
};

#[test]
fn failures_that_count_are_those_of_the_rollout() {
    let extension = extension(&json!({"onFailure": "RollBack"}));
    for (state, expected) in [
        ("ProgressDeadlineExceeded", BACK),
        ("Blocked", BACK),
        ("SoakFailed", BACK),
        ("Paused", Direction::Forward),
        ("RollingOut", Direction::Forward),
        ("Retrying", Direction::Forward),
        ("Soaking", Direction::Forward),
        ("Succeeded", Direction::Forward),
    ] {
        let sets = [
            set(1, "1.0.0", "Succeeded", &json!({})),
            set(2, "1.1.0", state, &json!({})),
        ];
        let history = History::read(&sets);
        assert_eq!(direction(&extension, &history, None), expected, "{state}");
    }
    let same = json!({keys::REVISION_IDENTITY_ANNOTATION: "sha256:1.0.0"});
    let renewal = [
        set(1, "1.0.0", "Succeeded", &json!({})),
        set(2, "1.0.0", "Blocked", &same),
    ];
    let history = History::read(&renewal);
    assert_eq!(
        direction(&extension, &history, None),
        Direction::Forward,
        "the same objects"
    );
}

#[test]
fn a_failed_version_waits_until_an_input_changes() {
    let extension = extension(&json!({"onFailure": "RollBack"}));
    let tried = attempt(&extension.spec, &resolved("1.1.0"), None, None, &lookups("d1")).unwrap();
    let annotation = json!({keys::ROLLOUT_ATTEMPT_ANNOTATION: serde_json::to_string(&tried).unwrap()});
    let failing = [
        set(1, "1.0.0", "Succeeded", &json!({})),
        set(2, "1.1.0", "SoakFailed", &annotation),
    ];
    let history = History::read(&failing);
    assert_eq!(direction(&extension, &history, Some(&tried)), BACK);
    let record = record(&extension.spec, &history, former(&history, 1).unwrap(), true);
    let failure = record.failure.clone().unwrap();
    assert_eq!(
        (&failure.attempt, failure.message.as_str()),
        (&tried, "1.1.0 is SoakFailed")
    );

    let annotation = json!({keys::ROLLBACK_ANNOTATION: serde_json::to_string(&record).unwrap()});
    let back = |state: &str| {
        History::read(&[
            set(1, "1.0.0", "Succeeded", &json!({})),
            set(2, "1.1.0", "SoakFailed", &json!({})),
            set(3, "1.0.0", state, &annotation),
        ])
    };
    let next = |digest: &str, version: &str, spec: &Value| {
        let spec = self::extension(spec).spec;
        attempt(&spec, &resolved(version), None, None, &lookups(digest)).unwrap()
    };
    let same = json!({"onFailure": "RollBack"});
    for (inputs, expected) in [
        (next("d1", "1.1.0", &same), Direction::StayFailed),
        (
            next(
                "d1",
                "1.1.0",
                &json!({"onFailure": "RollBack", "paused": false, "rollBackTo": 7}),
            ),
            Direction::StayFailed,
        ),
        (next("d2", "1.1.0", &same), Direction::Forward),
        (next("d1", "1.1.1", &same), Direction::Forward),
        (
            next("d1", "1.1.0", &json!({"onFailure": "RollBack", "soak": "1m"})),
            Direction::Forward,
        ),
    ] {
        for state in ["RollingOut", "Succeeded", "ProgressDeadlineExceeded"] {
            assert_eq!(
                direction(&extension, &back(state), Some(&inputs)),
                expected,
                "{inputs:?}"
            );
        }
    }
    assert_eq!(
        direction(&extension, &back("Succeeded"), None),
        Direction::StayFailed,
        "an outage"
    );
    // A revision that stands in for unread catalogs is no new input.
    let mut unread = resolved("1.0.0");
    unread.deprecations = None;
    assert_eq!(
        attempt(&extension.spec, &unread, None, None, &lookups("d1")),
        None
    );

    let (rolling, done) = (back("RollingOut"), back("Succeeded"));
    let shown = view(Direction::StayFailed, &extension, &done);
    assert_eq!(
        shown.as_ref().unwrap().message,
        "Version 1.1.0 (revision 2) failed and was rolled back to version 1.0.0. Version 1.1.0 is tried again when its catalog, its \
         image, the selected namespaces or the spec change. Failure: 1.1.0 is SoakFailed"
    );
    assert!(matches!(progress(shown.as_ref(), &done), Progress::RolledBack(_)));
    assert_eq!(progress(shown.as_ref(), &rolling), Progress::Mirrored);
    let up = |version: &str| {
        upgrade(
            shown.as_ref(),
            &resolved(version).bundle,
            &done,
            Upgrade::UpToDate,
        )
    };
    assert!(
        matches!(up("1.1.0"), Upgrade::RolledBack(text) if text.starts_with("Version 1.1.0 (bundle \"a.v1.1.0\") waits."))
    );
    assert_eq!(up("1.0.0"), Upgrade::UpToDate);
    assert_eq!(view(Direction::Forward, &extension, &done), None);
}

#[test]
fn a_failure_without_a_record_is_described_by_its_revision() {
    let image = format!("r.example/a@sha256:{}", "1".repeat(64));
    let failing = [
        set(1, "1.0.0", "Succeeded", &json!({})),
        set(
            2,
            "1.1.0",
            "Blocked",
            &json!({keys::RESOLVED_IMAGE_ANNOTATION: image.clone()}),
        ),
    ];
    let history = History::read(&failing);
    let spec = extension(&json!({"onFailure": "RollBack"})).spec;
    let record = record(&spec, &history, former(&history, 1).unwrap(), true);
    let described = RolloutAttempt {
        spec: spec_digest(&spec),
        bundle: "a.v1.1.0".to_owned(),
        version: "1.1.0".to_owned(),
        image: Some(image),
        ..RolloutAttempt::default()
    };
    assert_eq!(record.failure.unwrap().attempt, described);
}

#[test]
fn a_request_names_a_revision_that_exists() {
    let sets = [
        set(1, "1.0.0", "Archived", &json!({})),
        set(2, "1.1.0", "Succeeded", &json!({})),
    ];
    let history = History::read(&sets);
    let extension = extension(&json!({"rollBackTo": 1}));
    let requested = Direction::Restore {
        to: 1,
        automatic: false,
    };
    assert_eq!(direction(&extension, &history, None), requested);
    assert_eq!(former(&history, 1).unwrap().name, "x-1");
    let refusal = former(&history, 7).unwrap_err();
    assert!(refusal.terminal);
    assert_eq!(
        refusal.message,
        "spec.rollout.rollBackTo names revision 7, which does not exist; revisions that exist: 2 (version 1.1.0), 1 (version 1.0.0). \
         Set the field to one of them, or remove it to follow the source"
    );
    assert!(
        former(&History::default(), 1)
            .unwrap_err()
            .message
            .contains("exist: none.")
    );

    let record = record(&extension.spec, &history, former(&history, 1).unwrap(), false);
    assert_eq!((record.to, record.from, &record.failure), (1, 2, &None));
    let annotation = json!({keys::ROLLBACK_ANNOTATION: serde_json::to_string(&record).unwrap()});
    let done = History::read(&[
        set(2, "1.1.0", "Archived", &json!({})),
        set(3, "1.0.0", "Succeeded", &annotation),
    ]);
    assert_eq!(direction(&extension, &done, None), Direction::StayRequested);
    assert_eq!(
        view(Direction::StayRequested, &extension, &done).unwrap(),
        RolledBack {
            automatic: false,
            message: "spec.rollout.rollBackTo holds the extension at the content of revision 1, version 1.0.0. It was rolled back from \
                      version 1.1.0. It follows its source again when the field is removed"
                .to_owned()
        }
    );
    let free = self::extension(&json!({}));
    assert_eq!(direction(&free, &done, None), Direction::Forward);
}

#[test]
fn a_revision_that_the_spec_names_itself_stays_after_a_renewal() {
    let extension = extension(&json!({"rollBackTo": 2}));
    let present = History::read(&[set(2, "1.1.0", "Succeeded", &Value::Null)]);
    assert_eq!(direction(&extension, &present, None), Direction::StayRequested);
    let record = stays(present.newest().unwrap());
    let renewed = json!({keys::ROLLBACK_ANNOTATION: serde_json::to_string(&record).unwrap()});
    let renewed = History::read(&[
        set(2, "1.1.0", "Archived", &Value::Null),
        set(3, "1.1.0", "Succeeded", &renewed),
    ]);
    assert_eq!(direction(&extension, &renewed, None), Direction::StayRequested);
    let view = view(Direction::StayRequested, &extension, &renewed).unwrap();
    assert!(
        view.message.contains("revision 2, version 1.1.0. It follows"),
        "{}",
        view.message
    );
    assert_eq!(
        stays(renewed.newest().unwrap()),
        record,
        "the next renewal keeps it"
    );
}

#[test]
fn only_an_automatic_rollback_holds_a_failure() {
    let holds = |rollback: Option<Rollback>| {
        let annotations = rollback.map_or_else(
            || json!({}),
            |rollback| json!({keys::ROLLBACK_ANNOTATION: serde_json::to_string(&rollback).unwrap()}),
        );
        holds_failure(&History::read(&[set(3, "1.0.0", "Succeeded", &annotations)]))
    };
    assert!(!holds(None) && !holds(Some(Rollback::default())));
    assert!(holds(Some(Rollback {
        failure: Some(RolloutFailure::default()),
        ..Rollback::default()
    })));
}

#[test]
fn a_request_for_another_revision_is_not_fulfilled_by_the_newest_one() {
    let newest = History::read(&[set(2, "1.1.0", "Succeeded", &json!({}))]);
    let record = stays(newest.newest().unwrap());
    assert_eq!((record.to, record.from), (2, 2));
    let holds = |to: i64, history: &History| {
        view(
            Direction::StayRequested,
            &extension(&json!({"rollBackTo": to})),
            history,
        )
        .is_some()
    };
    assert!(holds(2, &newest) && !holds(1, &newest));
    let annotation = json!({keys::ROLLBACK_ANNOTATION: serde_json::to_string(&record).unwrap()});
    let renewed = History::read(&[set(3, "1.1.0", "Succeeded", &annotation)]);
    assert!(holds(2, &renewed) && !holds(1, &renewed));
}
