//! Specs of one extension for the pairs, made from the schema of the CRD.

use olm_world::World;
use serde_json::{Value, json};

use crate::scenario::extension;

/// Fields that delay a rollout until somebody acts, or that depend on the time of day. No spec has them.
const WAITING: [&str; 9] = [
    "approval",
    "approvedPlan",
    "automatic",
    "jointPlan",
    "paused",
    "requireApprovalFor",
    "rollBackTo",
    "soak",
    "windows",
];

/// Returns the specs: every choice of a bundle, and every other field of the CRD's schema with some of these choices.
pub(crate) fn specs(world: &World) -> Vec<Value> {
    let mut sources = Vec::new();
    // No range selects 2.1.0, which never becomes available.
    for version in ["1.0.0", "1.1.0", "2.0.0", "<2.0.0", ">=1.1.0 <2.1.0", "<=2.0.0"] {
        for channels in [None, Some("stable"), Some("edge")] {
            for policy in [None, Some("CatalogProvided"), Some("SelfCertified")] {
                for catalog in [None, Some("first"), Some("second")] {
                    let mut source = json!({"packageName": "alpha"});
                    let mut set = |name: &str, value: Option<Value>| {
                        if let Some(value) = value {
                            source[name] = value;
                        }
                    };
                    set("version", Some(version.into()));
                    set("channels", channels.map(|channel| json!([channel])));
                    set("upgradeConstraintPolicy", policy.map(Value::from));
                    let label =
                        |catalog| json!({"matchLabels": {"olm.operatorframework.io/metadata.name": catalog}});
                    set("selector", catalog.map(label));
                    sources.push(source);
                }
            }
        }
    }
    let crd = world.objects().map(|(_, object)| object);
    let crd = crd
        .into_iter()
        .find(|object| object["metadata"]["name"] == "clusterextensions.olm.operatorframework.io");
    let schema = crd.and_then(|crd| {
        crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
            .cloned()
    });
    let mut others = Vec::new();
    leaves(&schema.unwrap_or_default(), &mut Vec::new(), &mut others);
    let mut specs: Vec<Value> = sources
        .iter()
        .map(|source| extension("alpha", source, &json!({})))
        .collect();
    for (at, other) in others.iter().enumerate() {
        // Every field gets a few sources, and the next field gets others.
        for source in sources.iter().skip(at % 7).step_by(13) {
            specs.push(extension("alpha", source, other));
        }
    }
    specs
}

/// Adds an object to `out` for each value of each optional field in the schema of the object at `path`.
fn leaves(schema: &Value, path: &mut Vec<String>, out: &mut Vec<Value>) {
    let values: Vec<Value> = match (schema["type"].as_str(), path.last().map(String::as_str)) {
        (_, Some("source" | "namespace" | "serviceAccount" | "configType")) => Vec::new(),
        (_, Some(name)) if WAITING.contains(&name) => Vec::new(),
        (_, Some("inline")) => {
            let inline = |inline: Value| json!({"configType": "Inline", "inline": inline});
            for config in [
                json!({"watchNamespace": "ops"}),
                json!({"deploymentConfig": {"nodeSelector": {"disk": "fast"}}}),
                json!({"deploymentConfig": {"env": [{"name": "MODE", "value": "loud"}]}}),
            ] {
                out.push(json!({"config": inline(config)}));
            }
            Vec::new()
        }
        (Some("string"), _) => schema["enum"].as_array().cloned().unwrap_or_default(),
        (Some("boolean"), _) => vec![json!(true), json!(false)],
        (Some("integer"), _) => schema["minimum"].as_i64().map(Value::from).into_iter().collect(),
        (Some("object"), _) => {
            let first = out.len();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                path.push(name.clone());
                leaves(schema, path, out);
                path.pop();
            }
            complete(schema, path, &mut out[first..]);
            Vec::new()
        }
        _ => Vec::new(),
    };
    let wrapped = |value: Value| path.iter().rev().fold(value, |value, name| json!({name: value}));
    out.extend(values.into_iter().map(wrapped));
}

/// Completes the objects at `path`: a missing required field gets the first value of its enum.
fn complete(schema: &Value, path: &[String], objects: &mut [Value]) {
    let pointer = path
        .iter()
        .fold(String::new(), |pointer, name| pointer + "/" + name);
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        let choice = &schema["properties"][name]["enum"][0];
        for object in objects
            .iter_mut()
            .filter_map(|object| object.pointer_mut(&pointer))
        {
            if object[name].is_null() && !choice.is_null() {
                object[name] = choice.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Stage;
    use crate::user::{self, Action};

    #[test]
    fn the_schema_gives_enough_specs() {
        let stage = Stage::new().unwrap();
        let specs = specs(&stage.world);
        assert!(specs.len() >= 300, "{}", specs.len());
        let mut world = stage.world;
        for spec in &specs {
            let mut request = user::request(&Action::Apply(spec.clone()));
            request.query.push_str("&dryRun=All");
            let answer = world.handle(&request, jiff::Timestamp::UNIX_EPOCH);
            assert!(
                matches!(
                    answer,
                    olm_world::Answer::Response {
                        status: 200 | 201,
                        ..
                    }
                ),
                "{answer:?}"
            );
        }
    }
}
