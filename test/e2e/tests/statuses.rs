//! Conformance of ClusterExtension statuses to the rules of kstatus, for every possible outcome of a reconcile and
//! for long random walks through them.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod argo;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use olm_api::{BundleMetadata, ClusterExtensionStatus, PendingPlan};
use olm_fbc::lifecycle::{Date, Lifecycles};
use olm_harness::kstatus::{Status, compute, extension_faults, history_faults};
use olm_resolve::{HeldBack, HeldBy, SupportAnswer};
use olm_status::catalogs::{FormerContent, UnreadCatalogs};
use olm_status::cluster_extension::{
    Deprecations, Outcome, Progress, RevisionView, Revisions, extension, same,
};
use olm_status::rolled_back::RolledBack;
use olm_status::upgrade::Upgrade;
use olm_version::{MinorVersion, RequestedRange, VersionRelease};
use serde_json::{Value, json};

/// Number of walks, and of steps in each.
const WALKS_AND_STEPS: (u64, usize) = (300, 20);

fn time(second: i64) -> Time {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Time(start + SignedDuration::from_secs(second))
}

/// Returns every state of support in turn.
fn support(number: usize) -> SupportAnswer {
    let mut lifecycles = Lifecycles::default();
    if !number.is_multiple_of(3) {
        lifecycles.add(br#"{"versions": [{"name": "1.0", "phases": [{"startDate": "2026-01-01", "endDate": "2026-12-31"}]}]}"#);
    }
    let version = MinorVersion {
        major: 1,
        minor: u64::from(number.is_multiple_of(7)),
    };
    let day = Date::constant(2025 + i16::try_from(number % 3).unwrap_or_default(), 2, 3);
    SupportAnswer::of_minor(&lifecycles, version, day)
}

/// Returns all combinations of conditions of a revision.
fn conditions() -> Vec<Vec<Condition>> {
    let progressing = [
        None,
        Some(("True", "RollingOut")),
        Some(("True", "Retrying")),
        Some(("True", "Succeeded")),
        Some(("False", "Blocked")),
        Some(("False", "ProgressDeadlineExceeded")),
        Some(("False", "Paused")),
        Some(("True", "Soaking")),
        Some(("False", "SoakFailed")),
    ];
    let available = [
        None,
        Some(("True", "ProbesSucceeded")),
        Some(("False", "ProbeFailure")),
        Some(("Unknown", "Reconciling")),
    ];
    let condition = |type_: &str, (status, reason): (&str, &str)| Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: format!("{type_} is {status}"),
        observed_generation: Some(1),
        last_transition_time: time(0),
    };
    let both = |p: Option<(&str, &str)>, a: Option<(&str, &str)>| {
        let progressing = p.map(|p| condition("Progressing", p));
        progressing
            .into_iter()
            .chain(a.map(|a| condition("Available", a)))
            .collect()
    };
    progressing
        .into_iter()
        .flat_map(|p| available.into_iter().map(move |a| both(p, a)))
        .collect()
}

fn revision(number: usize, conditions: Vec<Condition>) -> RevisionView {
    RevisionView {
        install_namespace: None,
        name: format!("a-{number}"),
        bundle: format!("a.v1.0.{number}").into(),
        version: format!("1.0.{number}").as_str().into(),
        image: format!("registry.example/a:{number}").into(),
        catalog: Some("new".into()),
        moved_from: (number == 2).then(|| "old".into()),
        conditions,
    }
}

/// Returns all outcomes: the revisions with all their conditions, times the progress of the reconcile.
fn outcomes() -> Vec<Outcome> {
    let optional = |number: usize| {
        let there = conditions().into_iter().map(move |c| Some(revision(number, c)));
        std::iter::once(None).chain(there)
    };
    let progress = [
        Progress::Mirrored,
        Progress::Retrying("again".into()),
        Progress::Unresolved("no catalog".into()),
        Progress::Blocked("no".into()),
        Progress::InvalidConfiguration("odd".into()),
        Progress::Removing("left".into()),
        Progress::AwaitingApproval("approve".into()),
        Progress::AwaitingWindow("later".into()),
        Progress::HeldByOperator("busy".into()),
        Progress::Paused("resume".into()),
        Progress::RolledBack("back".into()),
    ];
    let held = HeldBack {
        version: VersionRelease::parse_legacy("2.0.0").unwrap(),
        bundle: "a.v2.0.0".into(),
        catalog: "new".into(),
        by: HeldBy::Version {
            range: RequestedRange::new("1.x").unwrap(),
        },
    };
    let upgrades = [
        Upgrade::NothingInstalled,
        Upgrade::Unknown,
        Upgrade::UpToDate,
        Upgrade::HeldBack(held),
        Upgrade::FormerContent,
        Upgrade::RolledBack("back".into()),
    ];
    let catalogs = [
        None,
        Some(UnreadCatalogs::default()),
        Some(UnreadCatalogs {
            former: vec![FormerContent {
                catalog: "new".into(),
                since: time(1),
                cause: "away".into(),
            }],
            left_out: vec![("low".into(), "away".into())],
        }),
    ];
    let mut revisions = vec![Revisions::Unreadable("away".into())];
    for installed in optional(1) {
        for newer in optional(2) {
            revisions.push(Revisions::Known {
                installed: installed.clone(),
                rolling_out: newer.into_iter().collect(),
            });
        }
    }
    let mut all = Vec::new();
    for revisions in revisions {
        for progress in &progress {
            let number = all.len();
            // An upgrade, or another configuration of the installed bundle.
            let number_of_bundle = 1 + number % 2;
            let pending = progress.is_waiting().then(|| PendingPlan {
                bundle: BundleMetadata {
                    name: format!("a.v1.0.{number_of_bundle}"),
                    version: format!("1.0.{number_of_bundle}"),
                    release: None,
                },
                ..PendingPlan::default()
            });
            all.push(Outcome {
                revisions: revisions.clone(),
                pending,
                windows: None,
                progress: progress.clone(),
                deprecations: (number % 2 == 0).then(Deprecations::default),
                upgrade: upgrades[number % upgrades.len()].clone(),
                support: (number % 5 != 0).then(|| support(number)),
                catalogs: catalogs[number % catalogs.len()].clone(),
                rolled_back: (number % 3 == 0).then(|| RolledBack {
                    automatic: number % 2 == 0,
                    message: "back".into(),
                }),
            });
        }
    }
    all
}

fn object(generation: i64, status: &ClusterExtensionStatus) -> Value {
    json!({"metadata": {"generation": generation}, "status": status})
}

#[test]
fn every_outcome_is_consistent() {
    for outcome in outcomes() {
        let status = extension(&ClusterExtensionStatus::default(), &outcome, 1, &time(1));
        let faults = extension_faults(&object(1, &status));
        assert!(faults.is_empty(), "{faults:?}: {outcome:#?}");
        let newer = compute(&object(2, &status));
        assert_eq!(newer, Status::InProgress, "the status is of an older generation");
        let again = extension(&status, &outcome, 1, &time(90));
        assert!(same(&status, &again), "a repeated outcome changes nothing");
    }
}

#[test]
fn every_walk_is_consistent() {
    let all = outcomes();
    for seed in 0..WALKS_AND_STEPS.0 {
        let mut number = seed;
        let mut status = ClusterExtensionStatus {
            observed_generation: Some(-1),
            ..ClusterExtensionStatus::default()
        };
        let mut history = vec![object(1, &status)];
        for second in 0..WALKS_AND_STEPS.1 {
            // Knuth's linear congruential generator: the walks are equal in every run.
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let outcome = &all[usize::try_from(number >> 33).unwrap() % all.len()];
            let generation = 1 + i64::try_from(second / 7).unwrap();
            status = extension(
                &status,
                outcome,
                generation,
                &time(i64::try_from(second).unwrap()),
            );
            history.push(object(generation, &status));
        }
        let faults: Vec<String> = history_faults(&history)
            .into_iter()
            // Versions change arbitrarily here, unlike in a real history.
            .filter(|fault| !fault.contains("another version"))
            .collect();
        assert!(faults.is_empty(), "walk {seed}: {faults:#?}");
    }
}
