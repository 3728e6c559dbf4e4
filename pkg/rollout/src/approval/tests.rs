use olm_api::RolloutWindow;
use proptest::prelude::*;

use super::*;

const DIGEST: &str = "sha256:aa";

fn now() -> Timestamp {
    // A Thursday.
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// A change from a version that is installed; no version means that nothing is.
fn verdict(rollout: &RolloutConfig, from: Option<&str>, to: &str) -> Verdict {
    verdict_of(rollout, from, to, |_| {})
}

fn verdict_of(
    rollout: &RolloutConfig,
    from: Option<&str>,
    to: &str,
    adjust: impl FnOnce(&mut Change<'_>),
) -> Verdict {
    let (from, to) = (from.map(BundleVersion::from), BundleVersion::from(to));
    let mut change = Change {
        installed: from.as_ref(),
        rolling_out: None,
        to: &to,
        upkeep: false,
        digest: DIGEST,
        new_rights: false,
        crd_changes: false,
    };
    adjust(&mut change);
    decide(rollout, &windows(rollout), &change, now())
}

fn windows(rollout: &RolloutConfig) -> Windows {
    Windows::read(rollout.windows.as_deref().unwrap_or_default()).unwrap()
}

fn go() -> Verdict {
    Verdict::Go { approved: Vec::new() }
}

fn manual() -> RolloutConfig {
    RolloutConfig {
        approval: Some(RolloutApproval::Manual),
        ..RolloutConfig::default()
    }
}

fn automatic(automatic: AutomaticUpgrades) -> RolloutConfig {
    RolloutConfig {
        automatic: Some(automatic),
        ..RolloutConfig::default()
    }
}

fn saturdays() -> RolloutConfig {
    RolloutConfig {
        windows: Some(vec![RolloutWindow {
            schedule: "0 22 * * SAT".to_owned(),
            duration_minutes: 60,
            time_zone: None,
        }]),
        ..RolloutConfig::default()
    }
}

#[test]
fn without_settings_everything_goes() {
    let rollout = RolloutConfig::default();
    for (from, to) in [
        (None, "1.0.0"),
        (Some("1.0.0"), "2.0.0"),
        (Some("2.0.0"), "1.0.0"),
    ] {
        assert_eq!(verdict(&rollout, from, to), go());
    }
    assert!(!is_gated(&rollout) && is_gated(&manual()) && is_gated(&saturdays()));
    assert!(is_gated(&automatic(AutomaticUpgrades::Minor)) && !is_gated(&automatic(AutomaticUpgrades::All)));
}

#[test]
fn manual_approval_is_for_one_digest() {
    let waits = Verdict::AwaitApproval(vec![ApprovalCause::Manual]);
    assert_eq!(
        verdict(&manual(), None, "1.0.0"),
        waits,
        "the first installation too"
    );
    assert_eq!(
        verdict(&manual(), Some("1.0.0"), "1.0.0"),
        waits,
        "a configuration too"
    );
    let mut approved = manual();
    approved.approved_plan = Some("sha256:bb".to_owned());
    assert_eq!(verdict(&approved, Some("1.0.0"), "1.0.1"), waits, "another plan");
    approved.approved_plan = Some(DIGEST.to_owned());
    assert_eq!(
        verdict(&approved, Some("1.0.0"), "1.0.1"),
        Verdict::Go {
            approved: vec![ApprovalCause::Manual]
        }
    );
}

#[test]
fn certificates_are_renewed_without_approval_and_at_any_time() {
    let mut both = saturdays();
    both.approval = Some(RolloutApproval::Manual);
    assert_eq!(
        verdict_of(&both, Some("1.0.0"), "1.0.0", |change| change.upkeep = true),
        go()
    );
}

#[test]
fn automatic_upgrades_end_at_their_part_of_the_version() {
    let waits = Verdict::AwaitApproval(vec![ApprovalCause::Automatic]);
    let patch = automatic(AutomaticUpgrades::Patch);
    assert_eq!(
        verdict(&patch, None, "1.0.0"),
        go(),
        "an installation is no upgrade"
    );
    assert_eq!(verdict(&patch, Some("1.0.0"), "1.0.0"), go());
    assert_eq!(verdict(&patch, Some("1.0.0"), "1.0.9"), go());
    for to in ["1.1.0", "2.0.0", "0.9.0"] {
        assert_eq!(verdict(&patch, Some("1.0.0"), to), waits, "{to}");
    }
    let minor = automatic(AutomaticUpgrades::Minor);
    assert_eq!(verdict(&minor, Some("1.0.0"), "1.9.0"), go());
    for to in ["2.0.0", "0.9.0", "unreadable"] {
        assert_eq!(verdict(&minor, Some("1.0.0"), to), waits, "{to}");
    }
    let (installed, newest, to) = (
        BundleVersion::from("1.0.0"),
        BundleVersion::from("2.0.0"),
        BundleVersion::from("2.0.1"),
    );
    let change = Change {
        installed: Some(&installed),
        rolling_out: Some(&newest),
        to: &to,
        upkeep: false,
        digest: DIGEST,
        new_rights: false,
        crd_changes: false,
    };
    let beyond = decide(&minor, &windows(&minor), &change, now());
    assert_eq!(
        beyond, waits,
        "the installed version decides, not one that rolls out"
    );
}

#[test]
fn triggers_require_approval_on_their_own() {
    let rollout = RolloutConfig {
        require_approval_for: Some(vec![
            ApprovalTrigger::NewRights,
            ApprovalTrigger::CrdChanges,
            ApprovalTrigger::MajorVersion,
        ]),
        ..RolloutConfig::default()
    };
    assert_eq!(verdict(&rollout, Some("1.0.0"), "1.9.0"), go());
    let both = verdict_of(&rollout, Some("1.0.0"), "1.0.1", |change| {
        change.new_rights = true;
        change.crd_changes = true;
    });
    let causes = vec![ApprovalCause::NewRights, ApprovalCause::CrdChanges];
    assert_eq!(both, Verdict::AwaitApproval(causes));
    for to in ["2.0.0", "0.1.0"] {
        assert_eq!(
            verdict(&rollout, Some("1.0.0"), to),
            Verdict::AwaitApproval(vec![ApprovalCause::MajorVersion])
        );
    }
}

#[test]
fn upgrades_wait_for_a_window_and_nothing_else_does() {
    let waits = Verdict::AwaitWindow {
        next: Some("2026-01-03T22:00:00Z".parse().unwrap()),
    };
    let rollout = saturdays();
    assert_eq!(verdict(&rollout, Some("1.0.0"), "1.0.1"), waits);
    assert_eq!(
        verdict(&rollout, Some("1.0.0"), "1.0.0"),
        waits,
        "a change of the same version"
    );
    assert_eq!(verdict(&rollout, None, "1.0.0"), go(), "an installation");
    assert_eq!(verdict(&rollout, Some("1.0.1"), "1.0.0"), go(), "a downgrade");
}

#[test]
fn a_rollout_in_progress_is_repaired_at_any_time() {
    let (installed, newest) = (BundleVersion::from("1.0.0"), BundleVersion::from("1.1.0"));
    let verdict = |to: &str| {
        let to = BundleVersion::from(to);
        let change = Change {
            installed: Some(&installed),
            rolling_out: Some(&newest),
            to: &to,
            upkeep: false,
            digest: DIGEST,
            new_rights: false,
            crd_changes: false,
        };
        decide(&saturdays(), &windows(&saturdays()), &change, now())
    };
    assert_eq!(
        verdict("1.1.0"),
        go(),
        "another configuration of the version that rolls out"
    );
    assert_eq!(verdict("1.0.0"), go(), "back to the installed version");
    assert!(
        matches!(verdict("1.2.0"), Verdict::AwaitWindow { .. }),
        "another upgrade"
    );
}

#[test]
fn approval_comes_before_the_window() {
    let mut both = saturdays();
    both.approval = Some(RolloutApproval::Manual);
    assert!(matches!(
        verdict(&both, Some("1.0.0"), "1.0.1"),
        Verdict::AwaitApproval(_)
    ));
    both.approved_plan = Some(DIGEST.to_owned());
    assert!(matches!(
        verdict(&both, Some("1.0.0"), "1.0.1"),
        Verdict::AwaitWindow { .. }
    ));
}

fn versions() -> impl Strategy<Value = String> {
    (0_u8..3, 0_u8..3, 0_u8..3).prop_map(|(a, b, c)| format!("{a}.{b}.{c}"))
}

proptest! {
    /// A change that needs an approval waits without the digest, and goes with it.
    #[test]
    fn only_the_digest_opens_the_gate(
        from in proptest::option::of(versions()),
        to in versions(),
        manual in any::<bool>(),
        part in 0_usize..3,
        new_rights in any::<bool>(),
        crd_changes in any::<bool>(),
    ) {
        let parts = [AutomaticUpgrades::Patch, AutomaticUpgrades::Minor, AutomaticUpgrades::All];
        let mut rollout = RolloutConfig {
            approval: manual.then_some(RolloutApproval::Manual),
            automatic: (!manual).then_some(parts[part]),
            require_approval_for: Some(vec![ApprovalTrigger::NewRights, ApprovalTrigger::CrdChanges]),
            ..RolloutConfig::default()
        };
        let answer = |rollout: &RolloutConfig| verdict_of(rollout, from.as_deref(), &to, |change| {
            change.new_rights = new_rights;
            change.crd_changes = crd_changes;
        });
        let before = answer(&rollout);
        rollout.approved_plan = Some(DIGEST.to_owned());
        match before {
            Verdict::AwaitApproval(causes) => {
                prop_assert!(!causes.is_empty());
                prop_assert_eq!(answer(&rollout), Verdict::Go { approved: causes });
            }
            Verdict::Go { approved } => {
                prop_assert!(approved.is_empty() && !manual && !new_rights && !crd_changes);
                prop_assert_eq!(answer(&rollout), go());
            }
            Verdict::AwaitWindow { .. } => prop_assert!(false, "there are no windows"),
        }
    }
}
