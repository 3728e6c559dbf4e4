use olm_api::{RolloutApproval, RolloutWindow};
use olm_plan::{ObjectRef, Right};
use olm_text::name::ImageText;

use super::*;
use crate::extension::Revision;

fn now() -> Timestamp {
    // A Thursday.
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn bundle(version: &str) -> BundleRef {
    BundleRef {
        name: format!("a.v{version}").into(),
        version: version.into(),
        package: "a".into(),
        image: ImageText::from(format!("registry.example/a:{version}")).into(),
        catalog: Some("community".into()),
    }
}

fn installed(version: &str) -> History {
    let object = serde_json::json!({"metadata": {"name": "a-1", "annotations": {
            olm_api::keys::BUNDLE_VERSION_ANNOTATION: version}},
        "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let history = History::read(&[serde_json::from_value(object).unwrap()]);
    assert!(
        history
            .installed
            .as_ref()
            .is_some_and(|revision: &Revision| revision.succeeded)
    );
    history
}

fn new() -> NewRevision {
    NewRevision {
        name: "a-2".to_owned(),
        number: 2,
        taken_over: None,
        renewal: false,
    }
}

fn plan() -> Plan {
    let mut plan = Plan {
        digest: format!("sha256:{}", "a".repeat(64)),
        created: vec![ObjectRef::default()],
        ..Plan::default()
    };
    plan.counts.created = 1;
    plan
}

fn decided(rollout: &RolloutConfig, history: &History, new: &NewRevision, plan: &Plan) -> Admission {
    let windows = Windows::read(rollout.windows.as_deref().unwrap_or_default()).unwrap();
    let at = Circumstances {
        extension: "argo",
        rollout,
        windows: &windows,
        history,
        now: now(),
    };
    admission(&at, new, &bundle("1.1.0"), plan)
}

fn manual() -> RolloutConfig {
    RolloutConfig {
        approval: Some(RolloutApproval::Manual),
        ..RolloutConfig::default()
    }
}

/// A rollout whose only window is closed at [`now`].
fn on_saturdays() -> RolloutConfig {
    RolloutConfig {
        windows: Some(vec![RolloutWindow {
            schedule: "0 22 * * SAT".to_owned(),
            duration_minutes: 60,
            time_zone: None,
        }]),
        ..RolloutConfig::default()
    }
}

fn waiting(admission: Admission) -> Waiting {
    match admission {
        Admission::Waiting(waiting) => waiting,
        Admission::Granted(_) => panic!("granted"),
    }
}

#[test]
fn the_message_names_the_plan_and_the_next_step() {
    let waiting = waiting(decided(&manual(), &installed("1.0.0"), &new(), &plan()));
    let digest = "a".repeat(64);
    let expected = format!(
        "Version 1.1.0 (bundle \"a.v1.1.0\" of catalog \"community\") waits for approval, required by spec.rollout (approval: \
         Manual): objects to create: 1, to change: 0, to delete: 0. Approve it with: kubectl olm approve argo --digest \
         sha256:{digest}"
    );
    assert_eq!(waiting.progress, Progress::AwaitingApproval(expected.clone()));
    assert_eq!(waiting.pending.required_by, Some(vec![ApprovalCause::Manual]));
    let upgrade = |history: &History| waiting.upgrade(history, Upgrade::UpToDate);
    assert_eq!(upgrade(&installed("1.0.0")), Upgrade::AwaitingApproval(expected));
    assert_eq!(
        upgrade(&installed("1.1.0")),
        Upgrade::UpToDate,
        "a configuration is no upgrade"
    );
    assert_eq!(
        upgrade(&History::default()),
        Upgrade::UpToDate,
        "an installation is no upgrade"
    );
}

#[test]
fn the_digest_grants_the_plan() {
    let mut rollout = manual();
    rollout.approved_plan = Some(plan().digest);
    assert_eq!(
        decided(&rollout, &installed("1.0.0"), &new(), &plan()),
        Admission::Granted(vec![ApprovalCause::Manual])
    );
    rollout.approved_plan = Some(format!("sha256:{}", "b".repeat(64)));
    waiting(decided(&rollout, &installed("1.0.0"), &new(), &plan()));
}

#[test]
fn upkeep_needs_no_approval() {
    let renewal = NewRevision {
        renewal: true,
        ..new()
    };
    let granted = Admission::Granted(Vec::new());
    assert_eq!(
        decided(&manual(), &installed("1.1.0"), &renewal, &plan()),
        granted
    );
    let release = NewRevision {
        taken_over: Some(super::super::desired_state::TakenOver {
            name: "a-1".to_owned(),
            uid: None,
            objects: String::new(),
        }),
        ..new()
    };
    assert_eq!(
        decided(&manual(), &installed("1.1.0"), &release, &Plan::default()),
        granted
    );
    waiting(decided(&manual(), &installed("1.1.0"), &release, &plan()));
}

#[test]
fn effects_of_the_plan_require_approval() {
    let rollout = RolloutConfig {
        require_approval_for: Some(vec![olm_api::ApprovalTrigger::NewRights]),
        ..RolloutConfig::default()
    };
    assert_eq!(
        decided(&rollout, &installed("1.0.0"), &new(), &plan()),
        Admission::Granted(Vec::new())
    );
    let mut gains = plan();
    gains.rights.bundle.gained.push(Right::default());
    let waiting = waiting(decided(&rollout, &installed("1.0.0"), &new(), &gains));
    assert_eq!(waiting.pending.required_by, Some(vec![ApprovalCause::NewRights]));
}

#[test]
fn a_closed_window_names_its_next_opening() {
    let rollout = on_saturdays();
    let waiting = waiting(decided(&rollout, &installed("1.0.0"), &new(), &plan()));
    let Progress::AwaitingWindow(message) = &waiting.progress else {
        panic!("{:?}", waiting.progress)
    };
    assert!(
        message.contains("which opens at 2026-01-03T22:00:00Z"),
        "{message}"
    );
    assert_eq!(waiting.pending.required_by, None);
    let granted = Admission::Granted(Vec::new());
    assert_eq!(
        decided(&rollout, &History::default(), &new(), &plan()),
        granted,
        "an installation"
    );

    let state = Windows::read(rollout.windows.as_deref().unwrap())
        .unwrap()
        .state(now());
    let shown = window_status(state).unwrap();
    assert_eq!((shown.window, shown.closes_at), (WindowState::Closed, None));
    assert_eq!(until_change(state, now()), Some(SignedDuration::from_hours(58)));
    assert_eq!(window_status(State::Unrestricted), None);
}

#[test]
fn an_unknown_end_of_a_window_becomes_known_before_it_comes() {
    let spec = RolloutWindow {
        schedule: "* 22-23,0-5 * * *".to_owned(),
        duration_minutes: 1,
        time_zone: None,
    };
    let windows = Windows::read(&[spec]).unwrap();
    let closes: Timestamp = "2026-01-02T06:00:00Z".parse().unwrap();
    let mut now: Timestamp = "2026-01-01T22:00:00Z".parse().unwrap();
    let mut passes = 0;
    while now < closes {
        let state = windows.state(now);
        assert!(matches!(state, State::Open { .. }), "{state:?} at {now}");
        now += until_change(state, now).unwrap();
        passes += 1;
    }
    assert_eq!(now, closes, "the status changes when the window closes");
    assert!(passes <= 8, "{passes}");
}

#[test]
fn what_waits_is_the_upgrade_of_another_version_only() {
    let text = "until Monday".to_owned();
    let after = |recorded: Option<&str>, progress: Progress, version: &str, release: Option<&str>| {
        let mut history = installed("1.0.0");
        let recorded = recorded.map(str::to_owned);
        history.installed.as_mut().unwrap().bundle.version =
            olm_version::BundleVersion::recorded("1.0.0", recorded);
        let mut pending = PendingPlan::default();
        pending.bundle.version = version.to_owned();
        pending.bundle.release = release.map(str::to_owned);
        Waiting { progress, pending }.upgrade(&history, Upgrade::UpToDate)
    };
    let waiting = |progress: Progress, version: &str| after(None, progress, version, None);
    let cases = [
        (
            Progress::AwaitingApproval(text.clone()),
            Upgrade::AwaitingApproval(text.clone()),
        ),
        (
            Progress::AwaitingWindow(text.clone()),
            Upgrade::AwaitingWindow(text.clone()),
        ),
        (
            Progress::HeldByOperator(text.clone()),
            Upgrade::HeldByOperator(text.clone()),
        ),
    ];
    for (progress, upgrade) in cases {
        assert_eq!(waiting(progress.clone(), "1.1.0"), upgrade);
        assert_eq!(waiting(progress.clone(), "1.0.0"), Upgrade::UpToDate);
        let release = |recorded, release| {
            after(
                Some(recorded),
                progress.clone(),
                "1.0.0",
                Some(release).filter(|r: &&str| !r.is_empty()),
            )
        };
        assert_eq!(release("1", "2"), upgrade);
        assert_eq!(release("", "1"), upgrade);
        assert_eq!(release("1", "1"), Upgrade::UpToDate);
        assert_eq!(release("", ""), Upgrade::UpToDate);
    }
}

#[test]
fn a_closed_window_holds_a_configuration_but_no_repair() {
    let rollout = on_saturdays();
    let held = waiting(decided(&rollout, &installed("1.1.0"), &new(), &plan()));
    assert!(matches!(held.progress, Progress::AwaitingWindow(_)));
    let mut rolling = installed("1.0.0");
    let mut newest = rolling.installed.clone().unwrap();
    newest.succeeded = false;
    newest.number += 1;
    newest.bundle.version = "1.1.0".into();
    rolling.rolling_out.push(newest);
    assert_eq!(
        decided(&rollout, &rolling, &new(), &plan()),
        Admission::Granted(Vec::new()),
        "the version rolls out already"
    );
}
