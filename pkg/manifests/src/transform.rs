//! Changes that a kustomization makes to all its objects: labels, annotations, replicas, images.

use serde_json::Value;

use crate::kustomization::{Image, Kustomization};

/// Applies the changes to `objects`.
pub(crate) fn apply(objects: &mut [Value], kustomization: &Kustomization) {
    for object in objects {
        for (key, value) in kustomization.labels.iter().flat_map(|labels| &labels.pairs) {
            object["metadata"]["labels"][key] = value.as_str().into();
        }
        for (key, value) in &kustomization.common_annotations {
            object["metadata"]["annotations"][key] = value.as_str().into();
        }
        if object["kind"] == "Deployment" {
            deployment(object, kustomization);
        }
    }
}

fn deployment(object: &mut Value, kustomization: &Kustomization) {
    for (key, value) in &kustomization.common_annotations {
        object["spec"]["template"]["metadata"]["annotations"][key] = value.as_str().into();
    }
    for replicas in &kustomization.replicas {
        if object["metadata"]["name"] == replicas.name.as_str() {
            object["spec"]["replicas"] = replicas.count.into();
        }
    }
    let containers = object["spec"]["template"]["spec"]["containers"].as_array_mut();
    for container in containers.into_iter().flatten() {
        for Image {
            name,
            new_name,
            new_tag,
        } in &kustomization.images
        {
            if container["image"] == name.as_str() {
                container["image"] = format!("{new_name}:{new_tag}").into();
            }
        }
    }
}
