use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::watch;

use super::*;
use crate::{
    controller::{
        context::testing::context,
        judged::{Judged, REQUESTED, name},
    },
    storage::Origin,
};

const OLD: &str = "registry.example/c@sha256:aa";
const NEW: &str = "registry.example/c@sha256:bb";

fn state(requested: Option<&str>, resolved: &str) -> CatalogState {
    CatalogState {
        requested: requested.map(str::to_owned),
        resolved: Some(resolved.to_owned()),
        withdrawn: false,
        undecodable: false,
    }
}

/// The spec may ask for another image that the leader cannot pull. A replica that leads later must resolve it.
#[tokio::test]
async fn content_of_an_unknown_reference_is_stored_under_its_digest() {
    let folder = tempfile::tempdir().unwrap();
    let (context, name) = (context(folder.path()), ValidCatalogName::new("c").unwrap());
    let requested = |state: &CatalogState| match task_for(&context, &name, state, true) {
        Some(Task::Pull { requested, .. }) => requested,
        other => panic!("{other:?}"),
    };
    assert_eq!(requested(&state(None, OLD)), OLD);
    assert_eq!(
        requested(&state(Some("registry.example/c:v1"), OLD)),
        "registry.example/c:v1"
    );
}

/// A status without an image does not remove content that the policy accepts: the leader may only have lost its own.
#[tokio::test]
async fn content_that_the_policy_does_not_accept_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let (context, name) = (context(folder.path()), ValidCatalogName::new("c").unwrap());
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("c.json"), r#"{"schema":"x"}"#).unwrap();
    let origin = Origin {
        requested: "registry.example/c:v1".to_owned(),
        resolved: OLD.to_owned(),
        unpacked_at: 1,
        verified: None,
    };
    context.store.store(&name, &source, origin, 1, &|| false).unwrap();
    let task = |state: &CatalogState, accepted| task_for(&context, &name, state, accepted);
    let pull = |resolved: &str| {
        Some(Task::Pull {
            requested: resolved.to_owned(),
            resolved: resolved.to_owned(),
        })
    };
    assert_eq!(task(&state(None, OLD), true), None);
    assert_eq!(task(&state(None, OLD), false), pull(OLD));
    assert_eq!(task(&state(None, NEW), true), pull(NEW));
    assert_eq!(task(&CatalogState::default(), true), None);
    let verify = Task::Verify {
        requested: "registry.example/c:v1".to_owned(),
        resolved: OLD.to_owned(),
    };
    assert_eq!(task(&CatalogState::default(), false), Some(verify));
}

/// The new image cannot be pulled here.
#[tokio::test]
async fn content_of_a_former_image_is_judged_by_its_own_reference() {
    let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
    let state = state(None, &format!("127.0.0.1:1/other@sha256:{}", "b".repeat(64)));
    let states = watch::Sender::new(Some(Arc::new(BTreeMap::from([(name(), state.clone())]))));
    let follow = async |context: &Arc<Context>| {
        let task = task_for(context, &name(), &state, true).unwrap();
        run_task(context.clone(), name(), task, states.subscribe()).await;
    };
    follow(&judged.context).await;
    assert!(judged.is_served());
    judged.policy(&judged.signed());
    follow(&judged.context).await;
    assert!(judged.context.history_of(&name()).verification.is_some());
    assert!(judged.is_served(), "the signatures cannot be read");
    let (ours, other) = ("127.0.0.1:1/c", "127.0.0.1:1/other");
    let reject = json!({"type": "reject"});
    judged.policy_of(&[(ours, &judged.signed()), (other, &reject)]);
    follow(&judged.context).await;
    assert!(judged.is_served(), "only the new image is refused");
    judged.policy_of(&[(ours, &reject)]);
    follow(&judged.context).await;
    assert!(!judged.is_served());
}

#[tokio::test]
async fn a_pull_ends_when_its_image_is_no_longer_wanted() {
    let name = ValidCatalogName::new("c").unwrap();
    let listed = |state: CatalogState| Some(Arc::new(BTreeMap::from([(name.clone(), state)])));
    let withdrawn = CatalogState {
        withdrawn: true,
        ..state(None, OLD)
    };
    for change in [
        listed(state(None, NEW)),
        listed(withdrawn),
        listed(CatalogState::default()),
        Some(Arc::default()),
    ] {
        let states = watch::Sender::new(listed(state(None, OLD)));
        let mut waiting = Box::pin(unwanted(states.subscribe(), &name, Some(OLD)));
        states.send_replace(listed(state(Some("registry.example/c:v1"), OLD)));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        states.send_replace(change);
        assert_eq!(waiting.now_or_never(), Some(()));
    }
}
