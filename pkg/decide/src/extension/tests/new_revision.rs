//! Differences of inputs that need a new revision, and differences that need none.

use std::sync::LazyLock;

use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_image::CanonicalRef;
use olm_text::name::{CatalogName, ImageText};
use serde_json::{Value, json};

use super::{history, now, revision};
use crate::extension::desired_state::{
    CurrentRevision, NewRevision, Settings, TakenOver, check_name, renewal,
};
use crate::extension::{BundleRef, CertificateProvider, DesiredState, History, RenderInputs, desired_state};

fn minutes(deadline: i32) -> Settings<'static> {
    Settings {
        deadline_minutes: Some(deadline),
        soak: None,
    }
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

#[test]
fn the_same_inputs_need_no_new_revision() {
    let bundle = bundle("1.0.0");
    let wanted = inputs(&bundle, None, CertificateProvider::CertManager);
    let keep = |differs| {
        DesiredState::Current(CurrentRevision {
            name: "argo-3".into(),
            uid: None,
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
    release.metadata.uid = Some("u1".into());
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
        uid: Some("u1".into()),
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
fn a_renewal_has_the_inputs_of_the_newest_revision() {
    let new = |renewal| {
        DesiredState::New(NewRevision {
            name: "argo-2".into(),
            number: 2,
            taken_over: None,
            renewal,
        })
    };
    assert!(new(false).is_other() && !new(true).is_other());
    let current = history(&[(1, "1.0.0", "installed")]).installed.unwrap();
    assert!(!DesiredState::Current(Settings::default().adjust(&current)).is_other());
    let bundle = bundle("1.0.0");
    let wanted = inputs(&bundle, None, CertificateProvider::Own);
    let mut history = made_from(&wanted, CertificateProvider::Own);
    history.rolling_out.last_mut().unwrap().renewal = Some("2026-06-01T00:00:00Z".into());
    let due = desired_state("argo", Settings::default(), &wanted, None, &history, now()).unwrap();
    assert!(matches!(due, DesiredState::New(new) if new.renewal));
}

#[test]
fn a_renewal_needs_no_resolved_bundle_and_changes_nothing_else() {
    let extension = |config: Value| -> ClusterExtension {
        let mut spec = serde_json::to_value(super::spec(json!({}))).unwrap();
        spec["config"] = config;
        serde_json::from_value(
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "argo"}, "spec": spec}),
        )
        .unwrap()
    };
    let mut history = history(&[(1, "1.0.0", "installed")]);
    let installed = history.installed.as_mut().unwrap();
    let made = installed.bundle.clone();
    installed.identity = Some(inputs(&made, None, CertificateProvider::Own).identity());
    installed.image = Some(IMAGES[0].clone());
    let unchanged = extension(Value::Null);
    assert_eq!(
        renewal(&unchanged, &history, now()),
        Ok(None),
        "it has no certificates"
    );
    history.installed.as_mut().unwrap().renewal = Some("2026-06-02T00:00:00Z".into());
    assert_eq!(renewal(&unchanged, &history, now()), Ok(None), "none is due");
    history.installed.as_mut().unwrap().renewal = Some("2026-06-01T00:00:00Z".into());
    let due = renewal(&unchanged, &history, now()).unwrap().unwrap();
    assert_eq!((due.of.number, due.image), (1, &IMAGES[0]));
    assert_eq!(
        due.new,
        NewRevision {
            name: "argo-2".into(),
            number: 2,
            taken_over: None,
            renewal: true,
        }
    );
    let changed = extension(json!({"configType": "Inline", "inline": {"watchNamespace": "other"}}));
    assert_eq!(
        renewal(&changed, &history, now()),
        Ok(None),
        "the changed configuration may wait for its approval"
    );
    assert_eq!(renewal(&unchanged, &History::default(), now()), Ok(None));
}

#[test]
fn a_revision_follows_the_deadline_and_the_soak_of_the_spec() {
    let extension = |spec: Value| -> ClusterExtension {
        serde_json::from_value(
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "argo"}, "spec": spec}),
        )
        .unwrap()
    };
    let mut spec = serde_json::to_value(super::spec(json!({}))).unwrap();
    assert_eq!(Settings::of(&extension(spec.clone())), Settings::default());
    spec["rollout"] = json!({"soak": "5m"});
    for (deadline, counts) in [(10, Some(10)), (1, Some(1)), (0, None), (-1, None)] {
        spec["progressDeadlineMinutes"] = deadline.into();
        let extension = extension(spec.clone());
        let settings = Settings {
            deadline_minutes: counts,
            soak: Some("5m"),
        };
        assert_eq!(Settings::of(&extension), settings);
    }
    let soak = Settings {
        deadline_minutes: None,
        soak: Some("5m"),
    };
    let differs = |state: &str| {
        let history = history(&[(1, "1.0.0", state)]);
        soak.adjust(history.newest().unwrap()).soak_differs
    };
    assert!(differs("rolling out"), "the soak is still to come");
    assert!(!differs("installed"), "the soak is over");
}

#[test]
fn a_name_that_is_too_long_is_refused_in_words() {
    let bundle = bundle("1.0.0");
    let wanted = inputs(&bundle, None, CertificateProvider::None);
    let state = |length: usize, history: &History| {
        let name = "x".repeat(length);
        desired_state(&name, Settings::default(), &wanted, None, history, now())
    };
    let refused = |length: usize, highest: i64| {
        let history = History {
            highest,
            ..History::default()
        };
        state(length, &history).err().map(|refusal| {
            assert!(refusal.terminal);
            assert!(refusal.message.contains("shorter name"), "{}", refusal.message);
            refusal.message
        })
    };
    assert_eq!(refused(57, 0), None);
    let early = |length: usize, history: &History| check_name(&"x".repeat(length), history);
    assert_eq!(early(57, &History::default()), Ok(()));
    assert!(early(58, &History::default()).is_err_and(|refusal| refusal.terminal));
    let installed = History {
        highest: 99,
        ..History::default()
    };
    assert_eq!(early(61, &installed), Ok(()), "its newest revision stays");
    let message = refused(58, 0).unwrap();
    assert!(
        message.contains("xxx-99999\""),
        "room for later revisions: {message}"
    );
    // An extension that is installed goes on as long as the next name fits.
    assert_eq!(refused(61, 1), None);
    assert_eq!(refused(61, 8), None);
    let message = refused(61, 9).unwrap();
    assert!(message.contains("xxx-10\""), "{message}");
    assert_eq!(refused(57, 99_998), None);
    assert!(refused(57, 99_999).is_some());
}
