//! Scenarios about fields of the spec: configuration, soak, pause, rollback on request, and specs that cannot be fulfilled.

use serde_json::{Value, json};

use super::When::AtRest;
use super::others::revision_deleted;
use super::{Scenario, When, extension};
use crate::user::Action;

pub(super) fn all() -> Vec<Scenario> {
    let step = |version: &str, rollout: Value| {
        (
            AtRest,
            vec![Action::Apply(extension(
                "alpha",
                &json!({"packageName": "alpha", "version": version}),
                &json!({"rollout": rollout}),
            ))],
        )
    };
    // The spec lacks the field `rollout`, because the API server refuses an empty object there.
    let plain = |version: &str| {
        let source = json!({"packageName": "alpha", "version": version});
        (
            AtRest,
            vec![Action::Apply(extension("alpha", &source, &json!({})))],
        )
    };
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "alpha-settings", "namespace": "ops"}});
    let meddled = || (AtRest, vec![Action::Delete(settings.clone())]);
    let paused = || step("1.1.0", json!({"paused": true}));
    let edge = json!({"packageName": "alpha", "channels": ["edge"]});
    let stuck = || (AtRest, vec![Action::Apply(extension("alpha", &edge, &json!({})))]);
    let soak = || json!({"soak": "10m"});
    let scenario = Scenario::new;
    vec![
        scenario("soak", vec![step("1.0.0", soak()), step("1.1.0", soak())]),
        scenario(
            "paused",
            vec![plain("1.0.0"), paused(), meddled(), plain("1.1.0")],
        ),
        scenario(
            "resumed",
            vec![plain("1.0.0"), paused(), meddled(), plain("1.0.0")],
        ),
        scenario("paused-stays", vec![plain("1.0.0"), paused(), meddled()]),
        scenario(
            "rollback-requested",
            vec![
                plain("1.0.0"),
                plain("1.1.0"),
                step("1.1.0", json!({"rollBackTo": 1})),
                plain("1.1.0"),
            ],
        ),
        scenario("unresolvable", vec![plain("1.0.0"), plain("9.9.9")]),
        scenario("downgrade", vec![plain("1.1.0"), plain("1.0.0")]),
        scenario("stuck", vec![plain("2.0.0"), stuck()]),
        scenario("unstuck", vec![plain("2.0.0"), stuck(), plain("2.0.0")]),
        // The former revision is active and owns the objects that the stuck one has taken over.
        scenario(
            "stuck-deleted",
            vec![
                plain("2.0.0"),
                stuck(),
                (AtRest, vec![revision_deleted("alpha-2")]),
            ],
        )
        .after(2),
        // The seventh revision is the first one that leads to the deletion of an archived one.
        scenario("history", (1..=8).map(configured).collect()).after(6),
    ]
}

/// Returns a step that changes the configuration of `gamma`, so that a revision follows. The bundle has a Secret.
fn configured(count: u32) -> (When, Vec<Action>) {
    let env = json!([{"name": "COUNT", "value": count.to_string()}]);
    let config = json!({"configType": "Inline", "inline": {"deploymentConfig": {"env": env}}});
    let spec = extension(
        "gamma",
        &json!({"packageName": "gamma"}),
        &json!({"config": config}),
    );
    (AtRest, vec![Action::Apply(spec)])
}
