//! Images of workloads, and workloads that restart.

use std::collections::BTreeSet;

use olm_text::object::text;
use serde_json::Value;

use crate::model::{Images, ObjectRef, Restart};
use crate::objects::Desired;

/// Prefix of environment variables that name images.
const RELATED_IMAGE: &str = "RELATED_IMAGE_";

/// Compares the images of both sides.
pub(crate) fn images(before: &Desired, after: &Desired) -> Images {
    let all = |objects: &Desired| objects.values().flat_map(images_of).collect::<BTreeSet<String>>();
    let (before, after) = (all(before), all(after));
    Images {
        added: after.difference(&before).cloned().collect(),
        removed: before.difference(&after).cloned().collect(),
        kept: after.intersection(&before).count(),
    }
}

/// Returns the pod template of a workload, or the pod itself.
fn pod(object: &Value) -> Option<&Value> {
    match text(object, "/kind") {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => object.pointer("/spec/template"),
        "CronJob" => object.pointer("/spec/jobTemplate/spec/template"),
        "Pod" => Some(object),
        _ => None,
    }
}

fn images_of(object: &Value) -> Vec<String> {
    let spec = pod(object).and_then(|pod| pod.get("spec"));
    let containers = ["containers", "initContainers"]
        .into_iter()
        .filter_map(|key| spec?.get(key)?.as_array())
        .flatten();
    let mut images = Vec::new();
    for container in containers {
        let variables = container
            .get("env")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let related = variables
            .filter(|variable| text(variable, "/name").starts_with(RELATED_IMAGE))
            .map(|variable| text(variable, "/value"));
        let all = std::iter::once(text(container, "/image")).chain(related);
        images.extend(all.filter(|image| !image.is_empty()).map(ToOwned::to_owned));
    }
    images
}

/// Returns the workloads on both sides whose pod template changes. Jobs and pods do not restart: their templates cannot change.
pub(crate) fn restarts(before: &Desired, after: &Desired) -> Vec<Restart> {
    let changed = after.iter().filter(|(key, new)| {
        let restarts = matches!(text(new, "/kind"), "Deployment" | "StatefulSet" | "DaemonSet");
        let old = before.get(*key);
        restarts && old.is_some_and(|old| pod(old) != pod(new))
    });
    changed
        .map(|(_, new)| Restart {
            object: ObjectRef::of(new),
            interrupted: text(new, "/spec/strategy/type") == "Recreate",
        })
        .collect()
}
