//! Random objects of the project's kinds.

use serde_json::{Value, json};

use crate::kinds::some;
use crate::rng::Rng;

/// Returns random fields of an object of one of the project's kinds.
pub(crate) fn fields(rng: &mut Rng, kind: &str, rare: bool) -> Value {
    match kind {
        "ClusterCatalog" => {
            let references = [
                "example.com/a/b:1",
                "example.com/a/c:2",
                "x y",
                "example.com/A:1",
                "example.com/a",
            ];
            let reference = rng.pick(&references[..if rare { 5 } else { 2 }]);
            let mut out = json!({"spec": {"source": {"type": "Image", "image": {"ref": reference}}}});
            if rng.chance(30) {
                out["spec"]["priority"] = json!(rng.below(5));
            }
            if rng.chance(20) {
                out["spec"]["availabilityMode"] = json!(rng.pick(&["Available", "Unavailable"]));
            }
            if rare && rng.chance(20) {
                out["spec"]["source"] = json!({"type": "Image"});
            }
            if rng.chance(20) {
                out["spec"]["source"]["image"]["pollIntervalMinutes"] =
                    json!(rng.below(if rare { 3 } else { 2 }) + usize::from(!rare));
            }
            out
        }
        "ClusterExtension" => {
            let mut catalog = json!({"packageName": rng.pick(&["x", "y"])});
            if rng.chance(40) {
                catalog["version"] = json!(rng.pick(&["1.0.0", ">=1.0.0", "1.x"]));
            }
            if rng.chance(30) {
                catalog["channels"] = json!([rng.pick(&["stable", "beta"])]);
            }
            if rng.chance(20) {
                catalog["upgradeConstraintPolicy"] = json!(rng.pick(&["CatalogProvided", "SelfCertified"]));
            }
            if rng.chance(20) {
                catalog["selector"] = json!({"matchLabels": some(rng, &["a"], |_| json!("b"))});
            }
            if rare && rng.chance(30) {
                catalog["packageName"] = json!(rng.pick(&["", "X", "x..y"]));
            }
            let mut spec = json!({"namespace": if rng.chance(90) { "x" } else { "y" }, "source": {"sourceType": "Catalog", "catalog": catalog}});
            if rng.chance(80) {
                spec["serviceAccount"] = json!({"name": if rng.chance(90) { "x" } else { "y" }});
            }
            if rare && rng.chance(20) {
                spec["source"] = json!({"sourceType": rng.pick(&["Catalog", "Other"])});
            }
            json!({ "spec": spec })
        }
        _ => {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": rng.pick(&["x", "y"]), "namespace": "x"}});
            let phase = json!({"name": rng.pick(&["a", "b"]), "objects": [{"object": object, "collisionProtection": "Prevent"}]});
            json!({"spec": {
                "lifecycleState": if rng.chance(80) { "Active" } else { "Archived" },
                "revision": if rng.chance(90) { 1 } else { 2 },
                "collisionProtection": "Prevent",
                "phases": if rng.chance(80) { json!([phase]) } else { json!([]) },
            }})
        }
    }
}
