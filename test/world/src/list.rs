//! Lists, with limits and continuation.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::form::Form;
use crate::selector::Selector;
use crate::status::Refusal;
use crate::store::Key;
use crate::value::text;
use crate::world::{Call, Target, World};

impl World {
    /// Lists the objects of a kind.
    pub(crate) fn list(&self, call: &Call, target: &Target, form: Form) -> Result<Value, Refusal> {
        let resource = &target.resource;
        let selector = Selector::of(&call.parameters)?;
        if let Some(field) = selector.unsupported(&resource.kind) {
            return Err(Refusal::bad_request(format!(
                "field label not supported: {field}"
            )));
        }
        let limit = call
            .parameters
            .get("limit")
            .and_then(|limit| limit.parse::<usize>().ok())
            .unwrap_or(0);
        let (start, revision) = match call.parameters.get("continue") {
            Some(token) => self.continued(token, call)?,
            None => (String::new(), self.asked_revision(call)?),
        };
        let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
        let all = self
            .store
            .list_at(&resource.group, &resource.plural, namespace, revision);
        let mut items = Vec::new();
        let mut last = None;
        let mut remaining = 0;
        for (key, object) in select(&all, &start) {
            if limit > 0 && items.len() == limit {
                remaining += 1;
                continue;
            }
            if selector.selects(object) {
                let mut shown = Value::clone(&*resource.at_version(object));
                if let (false, Form::Full, Some(map)) = (resource.traits.custom, form, shown.as_object_mut())
                {
                    // Elements of typed lists have no kind.
                    map.remove("apiVersion");
                    map.remove("kind");
                }
                items.push(form.object(shown));
                last = Some(key);
            }
        }
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if resource.traits.custom && form == Form::Full {
            metadata["continue"] = "".into();
        }
        if let (true, Some(last)) = (remaining > 0, last) {
            metadata["continue"] = token(revision, &format!("{}\0", place(last))).into();
            if selector.is_empty() {
                metadata["remainingItemCount"] = remaining.into();
            }
        }
        Ok(match form {
            Form::Full => json!({
                "kind": resource.list_kind, "apiVersion": resource.api_version(), "metadata": metadata, "items": items,
            }),
            Form::Metadata => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items,
            }),
        })
    }

    /// Returns the resource version of a list that does not continue.
    fn asked_revision(&self, call: &Call) -> Result<u64, Refusal> {
        let now = self.store.revision();
        let asked = match call.parameters.get("resourceVersion") {
            None | Some("0") => return Ok(now),
            Some(asked) => asked,
        };
        let revision = parsed(asked)?;
        if revision > now {
            return Err(Refusal::timeout(format!(
                "Too large resource version: {revision}, current: {now}"
            )));
        }
        if call.parameters.get("resourceVersionMatch") == Some("Exact") {
            if revision < self.store.compacted() {
                return Err(Refusal::expired(format!(
                    "The resourceVersion for the provided list is too old: {revision}"
                )));
            }
            return Ok(revision);
        }
        Ok(now)
    }

    fn continued(&self, given: &str, call: &Call) -> Result<(String, u64), Refusal> {
        let invalid = || Refusal::bad_request("continue key is not valid: the token cannot be read");
        if call
            .parameters
            .get("resourceVersion")
            .is_some_and(|version| version != "0")
        {
            return Err(Refusal::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let bytes = URL_SAFE_NO_PAD.decode(given).map_err(|_| invalid())?;
        let read: Value = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
        let start = text(&read, "/start").to_owned();
        let revision = read["rv"].as_i64().ok_or_else(invalid)?;
        let Ok(revision) = u64::try_from(revision) else {
            return Ok((start, self.store.revision()));
        };
        if revision < self.store.compacted() {
            let mut refusal = Refusal::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
            );
            refusal.continuation = Some(inconsistent(&start));
            return Err(refusal);
        }
        Ok((start, revision))
    }
}

/// Reads a resource version.
pub(crate) fn parsed(version: &str) -> Result<u64, Refusal> {
    version
        .parse()
        .map_err(|_| Refusal::bad_request(format!("invalid resource version {version:?}")))
}

fn place(key: &Key) -> String {
    if key.namespace.is_empty() {
        key.name.clone()
    } else {
        format!("{}/{}", key.namespace, key.name)
    }
}

fn select<'a>(
    all: &'a BTreeMap<Arc<Key>, Arc<Value>>,
    start: &'a str,
) -> impl Iterator<Item = (&'a Arc<Key>, &'a Arc<Value>)> {
    all.iter().filter(move |(key, _)| place(key).as_str() >= start)
}

fn token(revision: u64, start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
}

fn inconsistent(start: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).to_string())
}
