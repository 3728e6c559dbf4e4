//! Scenarios with other actors: objects of the same name, custom resources, removed labels and owners, foreign finalizers, an
//! account without rights.

use olm_api::keys;
use serde_json::{Value, json};

use super::When::{AfterCalls, Answered, AtRest};
use super::{Scenario, When, deleted, extension};
use crate::content::{GROUP, WIDGET};
use crate::user::Action;

/// Finalizer that no controller under test may remove.
const HOLD: &str = "example.com/hold";

pub(super) fn all() -> Vec<Scenario> {
    let mut all = collisions();
    all.extend(marks_and_removals());
    all.extend(ends());
    all
}

/// Returns scenarios about deletions that come in the middle of something, or after which the same name comes back.
fn ends() -> Vec<Scenario> {
    let block = |version: &str| {
        let source = json!({"packageName": "alpha", "version": version});
        let spec = json!({"deletion": {"customResources": "Block"}});
        Action::Apply(extension("alpha", &source, &spec))
    };
    vec![
        Scenario::new(
            "block-upgrade",
            vec![
                (AtRest, vec![block("1.0.0")]),
                (AtRest, vec![Action::Apply(widget())]),
                // Time passes before the deletion: only custom resources that are older count.
                (AtRest, vec![block("1.1.0")]),
                // The upgrade has adopted the CRD, and the workload belongs to the former revision.
                (AfterCalls(30), vec![deleted("alpha")]),
                (AtRest, vec![Action::Delete(widget())]),
            ],
        ),
        Scenario::new(
            "revision-deleted",
            // The extension has no other revision. The next one must not get the number of the one that is gone.
            vec![
                (AtRest, vec![Action::Apply(alpha(&json!({})))]),
                (AtRest, vec![revision_deleted("alpha-1")]),
            ],
        )
        .after(1),
        Scenario::new(
            "again-late",
            // The first revision of both extensions has the same name and the same objects, one of them in a Secret.
            vec![
                (AtRest, vec![gamma("1.0.0")]),
                (AtRest, vec![deleted("gamma")]),
                (Answered, vec![gamma("1.0.0")]),
            ],
        ),
    ]
}

/// Returns the action that deletes a revision.
pub(super) fn revision_deleted(name: &str) -> Action {
    Action::Delete(
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": name}}),
    )
}

/// Returns a custom resource of the CRD of package `alpha`.
pub(super) fn widget() -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": WIDGET,
        "metadata": {"name": "w", "namespace": "ops"}, "spec": {"size": 1}})
}

fn marks_and_removals() -> Vec<Scenario> {
    let alpha = || Action::Apply(alpha(&json!({})));
    let step = |action: Action| (AtRest, vec![action]);
    // An object that is applied while a lost call holds its deletion up is deleted too.
    let answered = |(_, actions): (When, Vec<Action>)| (Answered, actions);
    let marked = |metadata: Value| {
        let mut settings = settings(json!({}));
        for (key, value) in metadata.as_object().into_iter().flatten() {
            settings["metadata"][key] = value.clone();
        }
        step(Action::Merge(settings))
    };
    let widget = || step(Action::Apply(widget()));
    let finalizers = |list: Value| {
        step(Action::Merge(
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "alpha", "finalizers": list}}),
        ))
    };
    let held = json!([
        keys::CLEANUP_UNPACK_FINALIZER,
        keys::CLEANUP_CONTENT_FINALIZER,
        HOLD
    ]);
    let gone = || deleted("alpha");
    let scenario = Scenario::new;
    vec![
        scenario(
            "marks",
            vec![
                step(alpha()),
                marked(json!({"ownerReferences": null})),
                // The label is removed once the owner is back. Without both, the object would belong to somebody else.
                answered(marked(json!({"labels": {keys::OWNER_NAME_LABEL: null}}))),
            ],
        ),
        scenario(
            "custom-resources",
            vec![step(alpha()), widget(), step(gone()), answered(step(alpha()))],
        ),
        scenario(
            "custom-resources-go",
            vec![
                step(alpha()),
                widget(),
                step(Action::Apply(super::others::alpha(
                    &json!({"deletion": {"customResources": "Delete"}}),
                ))),
                step(gone()),
            ],
        ),
        scenario(
            "finalizers",
            vec![
                step(alpha()),
                finalizers(held),
                step(gone()),
                finalizers(json!([])),
            ],
        ),
        scenario(
            "again",
            vec![step(alpha()), step(gone()), answered(step(alpha()))],
        ),
        scenario("no-rights", vec![step(Action::Apply(alpha_as("nobody")))]),
        scenario(
            "secrets-again",
            vec![
                step(gamma("1.0.0")),
                step(deleted("gamma")),
                answered(step(gamma("1.0.0"))),
            ],
        ),
        scenario(
            "secrets",
            vec![
                step(gamma("1.0.0")),
                step(gamma("1.1.0")),
                (AfterCalls(30), vec![deleted("gamma")]),
                step(Action::Apply(extension(
                    "gamma-again",
                    &json!({"packageName": "gamma"}),
                    &json!({}),
                ))),
            ],
        ),
    ]
}

/// Returns scenarios in which an object of somebody else has the name of an object of the bundle.
fn collisions() -> Vec<Scenario> {
    let taken = |data: Value| Action::Apply(settings(json!({ "data": data })));
    let delete = || (AtRest, vec![Action::Delete(settings(json!({})))]);
    let install = || Action::Apply(alpha(&json!({})));
    let of_others = || taken(json!({"mode": "of others"}));
    // The object shares no field with the object of the bundle, so a server-side apply would cause no conflict of field managers.
    let unlike = taken(json!({"note": "of others"}));
    let scenario = Scenario::new;
    vec![
        scenario(
            "collision",
            vec![(AtRest, vec![of_others(), install()]), delete()],
        ),
        scenario(
            "collision-unlike",
            vec![(AtRest, vec![unlike, install()]), delete()],
        ),
        scenario(
            "collision-deleted",
            vec![
                (AtRest, vec![of_others(), install()]),
                (AtRest, vec![deleted("alpha")]),
            ],
        ),
    ]
}

/// Returns the `ConfigMap` of package `alpha` with these fields besides its name.
fn settings(fields: Value) -> Value {
    let mut settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "alpha-settings", "namespace": "ops"}});
    if let (Value::Object(settings), Value::Object(fields)) = (&mut settings, fields) {
        settings.extend(fields);
    }
    settings
}

/// Returns the extension `alpha` at version 1.1.0, with more fields of the spec.
fn alpha(more: &Value) -> Value {
    extension(
        "alpha",
        &json!({"packageName": "alpha", "version": "1.1.0"}),
        more,
    )
}

fn alpha_as(account: &str) -> Value {
    alpha(&json!({"serviceAccount": {"name": account}}))
}

fn gamma(version: &str) -> Action {
    Action::Apply(extension(
        "gamma",
        &json!({"packageName": "gamma", "version": version}),
        &json!({}),
    ))
}
