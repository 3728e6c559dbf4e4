//! Label and field selectors.

use serde_json::Value;

use crate::request::Parameters;
use crate::status::Refusal;
use crate::value::text;

/// Selection of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, String, bool)>,
}

/// Requirement for a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// Reads the selectors of a list, watch or deletion.
    pub(crate) fn of(parameters: &Parameters) -> Result<Self, Refusal> {
        let mut out = Self::default();
        for part in parameters.get("labelSelector").map(split).unwrap_or_default() {
            let requirement = requirement(part.trim());
            let requirement = requirement
                .ok_or_else(|| Refusal::bad_request(format!("unable to parse requirement: {part}")))?;
            out.labels.push(requirement);
        }
        for part in parameters.get("fieldSelector").map(split).unwrap_or_default() {
            let pair = part
                .split_once("!=")
                .map(|(field, value)| (field, value, false))
                .or_else(|| part.split_once("==").map(|(field, value)| (field, value, true)))
                .or_else(|| part.split_once('=').map(|(field, value)| (field, value, true)));
            let Some((field, value, equal)) = pair else {
                return Err(Refusal::bad_request(format!(
                    "invalid selector: {part:?}; can't understand {part:?}"
                )));
            };
            out.fields.push((field.to_owned(), value.to_owned(), equal));
        }
        Ok(out)
    }

    /// Restricts the selection to one name.
    pub(crate) fn require_name(&mut self, name: &str) {
        self.fields.push(("metadata.name".into(), name.into(), true));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns a field that objects cannot be selected by.
    pub(crate) fn unsupported(&self, kind: &str) -> Option<&str> {
        let fields = self.fields.iter().map(|(field, _, _)| field.as_str());
        let more: &[&str] = match kind {
            "Pod" => &["status.phase", "spec.nodeName", "spec.serviceAccountName"],
            "Secret" => &["type"],
            "Namespace" => &["status.phase"],
            "Event" => &[
                "involvedObject.name",
                "involvedObject.kind",
                "involvedObject.uid",
                "reason",
                "type",
            ],
            _ => &[],
        };
        fields
            .into_iter()
            .find(|field| !matches!(*field, "metadata.name" | "metadata.namespace") && !more.contains(field))
    }

    pub(crate) fn selects(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let value = |key: &str| labels.get(key).and_then(Value::as_str);
        let by_labels = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                value(key).is_some_and(|found| values.iter().any(|value| value == found))
            }
            Requirement::NotIn(key, values) => {
                value(key).is_none_or(|found| values.iter().all(|value| value != found))
            }
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Absent(key) => value(key).is_none(),
        });
        by_labels
            && self.fields.iter().all(|(field, value, equal)| {
                (text(object, &format!("/{}", field.replace('.', "/"))) == value) == *equal
            })
    }
}

/// Splits at commas that are not between parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out.retain(|part| !part.trim().is_empty());
    out
}

fn requirement(part: &str) -> Option<Requirement> {
    let owned = |text: &str| text.trim().to_owned();
    if let Some((key, values)) = part.split_once('(') {
        let values: Vec<String> = values.strip_suffix(')')?.split(',').map(owned).collect();
        let mut words = key.split_whitespace();
        let (key, operator) = (words.next()?, words.next()?);
        return match operator {
            "in" => Some(Requirement::In(owned(key), values)),
            "notin" => Some(Requirement::NotIn(owned(key), values)),
            _ => None,
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(owned(key), vec![owned(value)]));
    }
    if let Some((key, value)) = part.split_once('=') {
        return Some(Requirement::In(
            owned(key),
            vec![owned(value.trim_start_matches('='))],
        ));
    }
    if let Some(key) = part.strip_prefix('!') {
        return Some(Requirement::Absent(owned(key)));
    }
    let plain = !part.is_empty() && !part.contains(char::is_whitespace);
    plain.then(|| Requirement::Exists(owned(part)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Selector;
    use crate::request::Request;

    fn selects(selector: &str) -> bool {
        let query = format!("/x?labelSelector={selector}");
        let request = Request::new(olm_proof::Actor::Controller(0), "GET", &query);
        let object = json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}});
        Selector::of(&request.parameters()).unwrap().selects(&object)
    }

    #[test]
    fn labels_are_selected() {
        for yes in ["a", "a%3D1", "a==1,b", "a in (1,3),!c", "a notin (2)", "c!=1"] {
            assert!(selects(yes), "{yes}");
        }
        for no in ["c", "a=2", "a in (2,3)", "!a", "b!=2", "a=1,c"] {
            assert!(!selects(no), "{no}");
        }
    }
}
