//! Patches of kustomize: JSON patches of selected objects, and `$patch: delete`.

use olm_text::object::ObjectId;
use regex::Regex;
use serde_json::Value;

use crate::kustomization::Target;

/// Applies a patch to the objects that it selects.
pub(crate) fn apply(objects: &mut Vec<Value>, target: Option<&Target>, text: &Value) -> Result<(), String> {
    if text["$patch"] == "delete" {
        return delete(objects, text);
    }
    let target = target.ok_or("a JSON patch needs a target")?;
    let operations: json_patch::Patch =
        serde_json::from_value(text.clone()).map_err(|error| error.to_string())?;
    let selector = Selector::new(target)?;
    for object in objects.iter_mut().filter(|object| selector.matches(object)) {
        // kustomize creates the map that an annotation or label is added to.
        for map in ["annotations", "labels"] {
            if operations.iter().any(|operation| adds_to(operation, map)) && object["metadata"][map].is_null()
            {
                object["metadata"][map] = Value::Object(serde_json::Map::new());
            }
        }
        json_patch::patch(object, &operations).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn adds_to(operation: &json_patch::PatchOperation, map: &str) -> bool {
    matches!(operation, json_patch::PatchOperation::Add(_))
        && operation
            .path()
            .as_str()
            .starts_with(&format!("/metadata/{map}/"))
}

fn delete(objects: &mut Vec<Value>, text: &Value) -> Result<(), String> {
    let id = ObjectId::of(text);
    let before = objects.len();
    objects.retain(|object| {
        let other = ObjectId::of(object);
        (other.group, other.kind, other.name) != (id.group, id.kind, id.name)
    });
    if objects.len() == before {
        return Err(format!("there is no {} {} to delete", id.kind, id.name));
    }
    Ok(())
}

/// Compiled [`Target`].
struct Selector {
    group: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
}

impl Selector {
    fn new(target: &Target) -> Result<Self, String> {
        let pattern = |text: &Option<String>| match text {
            Some(text) => Regex::new(&format!("^(?:{text})$"))
                .map(Some)
                .map_err(|error| error.to_string()),
            None => Ok(None),
        };
        Ok(Self {
            group: pattern(&target.group)?,
            kind: pattern(&target.kind)?,
            name: pattern(&target.name)?,
        })
    }

    fn matches(&self, object: &Value) -> bool {
        let id = ObjectId::of(object);
        [
            (&self.group, id.group),
            (&self.kind, id.kind),
            (&self.name, id.name),
        ]
        .into_iter()
        .all(|(pattern, text)| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text)))
    }
}
