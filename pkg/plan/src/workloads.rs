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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::desired;

    #[test]
    fn every_kind_of_workload_names_its_images() {
        let spec = |image: &str| {
            json!({"initContainers": [{"image": format!("{image}-init")}],
                "containers": [{"image": image, "env": [{"name": "RELATED_IMAGE_A", "value": format!("{image}-related")}]}]})
        };
        let object = |kind: &str, spec: Value| json!({"kind": kind, "metadata": {"name": "n"}, "spec": spec});
        let kinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];
        let mut objects: Vec<Value> = kinds
            .iter()
            .map(|kind| object(kind, json!({"template": {"spec": spec(kind)}})))
            .collect();
        objects.push(object(
            "CronJob",
            json!({"jobTemplate": {"spec": {"template": {"spec": spec("CronJob")}}}}),
        ));
        objects.push(object("Pod", spec("Pod")));
        objects.push(object("ConfigMap", spec("none")));
        let mut expected: Vec<String> = kinds
            .into_iter()
            .chain(["CronJob", "Pod"])
            .flat_map(|kind| ["", "-init", "-related"].map(|end| format!("{kind}{end}")))
            .collect();
        expected.sort();
        assert_eq!(images(&Desired::default(), &desired(objects)).added, expected);
    }

    #[test]
    fn only_workloads_with_another_template_restart() {
        let object = |kind: &str, name: &str, image: &str| json!({"kind": kind, "metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
        let side = |image: &str| {
            desired(vec![
                object("Deployment", "same", "a:1"),
                object("Deployment", "other", image),
                object("ReplicaSet", "none", image),
                json!({"kind": "ConfigMap", "metadata": {"name": "c"}}),
            ])
        };
        let found = restarts(&side("a:1"), &side("a:2"));
        let names: Vec<&str> = found.iter().map(|one| one.object.name.as_str()).collect();
        assert_eq!(names, ["other"]);
    }
}
