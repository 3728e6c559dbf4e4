//! Recorded objects that no API server accepts, and that this project renders in another way.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Stored {
    sha256: String,
    object: Value,
}

/// Reads the recorded objects of a bundle, by the hash of their canonical JSON.
pub(super) fn recorded(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let text = std::fs::read_to_string(folder.join("objects.jsonl"))?;
    text.lines()
        .map(|line| {
            let stored: Stored = serde_json::from_str(line)?;
            Ok((stored.sha256, stored.object))
        })
        .collect()
}

/// Returns the object as this project renders it, and the difference in the words of `docs/deviations.md`; `None` if there
/// is none.
pub(super) fn mended(recorded: &Value) -> Option<(Value, &'static str)> {
    let mut object = recorded.clone();
    set_ports(&mut object);
    if object != *recorded {
        return Some((object, "with port 443"));
    }
    remove_dangling_mounts(&mut object);
    (object != *recorded).then_some((object, "without a mount"))
}

fn set_ports(object: &mut Value) {
    for client in ["/webhooks/0", "/spec/conversion/webhook"] {
        let port = object.pointer_mut(&format!("{client}/clientConfig/service/port"));
        if let Some(port) = port.filter(|port| **port == 0) {
            *port = 443.into();
        }
    }
}

/// Removes mounts of init containers whose volume the pod lacks.
fn remove_dangling_mounts(object: &mut Value) {
    let Some(pod) = object.pointer_mut("/spec/template/spec") else {
        return;
    };
    let volumes = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let volumes: Vec<Option<Value>> = volumes.map(|volume| volume.get("name").cloned()).collect();
    let containers = pod.get_mut("initContainers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(Value::Array(mounts)) = container.get_mut("volumeMounts") else {
            continue;
        };
        mounts.retain(|mount| volumes.contains(&mount.get("name").cloned()));
        if mounts.is_empty() {
            container.remove("volumeMounts");
        }
    }
}
