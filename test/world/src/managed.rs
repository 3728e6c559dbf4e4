//! Field managers: who owns which field of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::kinds::Resource;
use crate::status::Refusal;
use crate::types::{self, Set};
use crate::value::{items, metadata, text};

/// Manager of the fields of an object that was never applied before.
const BEFORE: &str = "before-first-apply";
/// Maximum number of managers that update; older ones are joined.
const MAX_UPDATERS: usize = 10;
/// Manager of joined updaters.
const ANCIENT: &str = "ancient-changes";
/// Metadata that no manager owns.
const UNOWNED: [&str; 8] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Identity of a manager. An applier has no version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    manager: String,
    applies: bool,
    version: String,
    subresource: String,
}

#[derive(Clone, Debug)]
struct Owned {
    version: String,
    time: String,
    set: Set,
}

type Managers = BTreeMap<Id, Owned>;

/// A write by a field manager.
pub(crate) struct Writer<'a> {
    pub resource: &'a Resource,
    pub manager: &'a str,
    /// Name of the subresource; empty for the object.
    pub subresource: &'a str,
    /// Time of the write as in objects.
    pub time: &'a str,
}

impl Writer<'_> {
    fn id(&self, applies: bool) -> Id {
        let manager = if self.manager.is_empty() {
            "unknown"
        } else {
            self.manager
        };
        Id {
            manager: manager.to_owned(),
            applies,
            version: if applies {
                String::new()
            } else {
                self.resource.api_version()
            },
            subresource: self.subresource.to_owned(),
        }
    }

    /// Returns the fields that this write never changes.
    fn ignored(&self) -> Set {
        let mut out = Set::default();
        let field = |name: &str| format!("f:{name}");
        let custom = self.resource.traits.custom;
        match self.subresource {
            "status" => {
                out.insert(&[field("spec")]);
                if custom {
                    out.insert(&[field("metadata")]);
                } else if self.resource.kind == "Deployment" {
                    out.insert(&[field("metadata"), field("labels")]);
                }
            }
            _ if self.resource.status => out.insert(&[field("status")]),
            _ => {}
        }
        out
    }

    /// Returns an object of the kind without any value.
    fn empty(&self) -> Value {
        let mut out = json!({"apiVersion": self.resource.api_version(), "kind": self.resource.kind});
        if !self.resource.traits.custom {
            crate::write::structs(&mut out, self.resource);
        }
        out
    }

    fn strip(set: &Set) -> Set {
        let mut unowned = Set::default();
        for name in ["apiVersion", "kind", "metadata"] {
            unowned.insert(&[format!("f:{name}")]);
        }
        for name in UNOWNED {
            unowned.insert(&["f:metadata".to_owned(), format!("f:{name}")]);
        }
        set.difference(&unowned)
    }

    /// Records the fields that an update changed, in `new`.
    pub(crate) fn update(&self, live: Option<&Value>, new: &mut Value) {
        let mut managers = match (
            self.subresource.is_empty(),
            new.pointer("/metadata/managedFields"),
        ) {
            (true, Some(Value::Array(entries))) if is_reset(entries) => Managers::new(),
            (true, Some(Value::Array(entries))) => decode(entries),
            _ => Managers::new(),
        };
        let reset = self.subresource.is_empty()
            && matches!(new.pointer("/metadata/managedFields"), Some(Value::Array(entries)) if is_reset(entries));
        if managers.is_empty() && !reset {
            managers = live
                .map(|live| decode(items(live, "/metadata/managedFields")))
                .unwrap_or_default();
        }
        // An object whose managers were reset is tracked again from its first apply on.
        if managers.is_empty() && live.is_some() {
            metadata(new).remove("managedFields");
            return;
        }
        let empty = self.empty();
        let before = without_managers(live.unwrap_or(&empty));
        let after = without_managers(new);
        self.record(&before, &after, &mut managers, self.id(false));
        encode(&managers, new);
    }

    /// Records in `managers` the change from `before` to `after` by the updater `id`.
    fn record(&self, before: &Value, after: &Value, managers: &mut Managers, id: Id) {
        let changes = self.compare(before, after);
        for owned in managers.values_mut() {
            let taken = changes.modified.union(&changes.added).union(&changes.removed);
            owned.set = owned.set.difference(&taken);
        }
        let own = Self::strip(&changes.modified.union(&changes.added).without(&self.ignored()));
        managers.retain(|_, owned| !owned.set.is_empty());
        if !own.is_empty() {
            let entry = managers.entry(id).or_insert_with(|| Owned {
                version: self.resource.api_version(),
                time: String::new(),
                set: Set::default(),
            });
            entry.set = entry.set.union(&own);
            self.time.clone_into(&mut entry.time);
        }
        cap(managers);
    }

    fn compare(&self, before: &Value, after: &Value) -> types::Comparison {
        let ignored = self.ignored();
        let all = types::compare(before, after, &self.resource.fields);
        types::Comparison {
            removed: all.removed.without(&ignored),
            modified: all.modified.without(&ignored),
            added: all.added.without(&ignored),
        }
    }

    /// Returns the object after an apply. The object has the new managers.
    pub(crate) fn apply(&self, live: Option<&Value>, config: &Value, force: bool) -> Result<Value, Refusal> {
        let fields = &self.resource.fields;
        let schema =
            |error: String| Refusal::unknown(format!("failed to create typed patch object: {error}"));
        let empty = self.empty();
        let mut managers = live
            .map(|live| decode(items(live, "/metadata/managedFields")))
            .unwrap_or_default();
        let base = without_managers(live.unwrap_or(&empty));
        if let (Some(_), true) = (live, managers.is_empty()) {
            let id = Id {
                manager: BEFORE.into(),
                applies: false,
                version: self.resource.api_version(),
                subresource: self.subresource.to_owned(),
            };
            self.record(&empty, &base, &mut managers, id);
        }
        let config_set = types::to_set(config, fields).map_err(schema)?;
        let merged = types::merge(&base, config, fields).map_err(schema)?;
        let id = self.id(true);
        let last = managers.get(&id).cloned();
        let set = Self::strip(&config_set.without(&self.ignored()));
        let owned = Owned {
            version: self.resource.api_version(),
            time: last.as_ref().map_or_else(String::new, |last| last.time.clone()),
            set: config_set.without(&self.ignored()),
        };
        managers.insert(id.clone(), owned);
        let pruned = match &last {
            Some(last) if !last.set.is_empty() => self.prune(&merged, &managers, &last.set)?,
            _ => merged,
        };
        let changes = self.compare(&base, &pruned);
        let gained = changes.modified.union(&changes.added);
        let mut conflicts = Vec::new();
        for (other, owned) in managers.iter_mut().filter(|(other, _)| **other != id) {
            let taken = owned.set.intersection(&gained);
            if !taken.is_empty() {
                conflicts.push((other.clone(), taken.clone()));
            }
            owned.set = owned.set.difference(&taken).difference(&changes.removed);
        }
        if !force && !conflicts.is_empty() {
            return Err(refuse(&conflicts));
        }
        let unchanged = pruned == base;
        if let Some(own) = managers.get_mut(&id) {
            own.set = set;
            if !unchanged {
                self.time.clone_into(&mut own.time);
            }
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        let mut out = pruned;
        encode(&managers, &mut out);
        Ok(out)
    }

    /// Removes what this manager applied last time and nobody owns now.
    fn prune(&self, merged: &Value, managers: &Managers, last: &Set) -> Result<Value, Refusal> {
        let fields = &self.resource.fields;
        let failed = |error: String| Refusal::unknown(format!("failed to prune fields: {error}"));
        let set = |value: &Value| types::to_set(value, fields).map_err(failed);
        let without = |out: &Set| types::remove(merged, out, fields).unwrap_or_else(|| json!({}));
        let last = last.with_named_fields(fields);
        let pruned = without(&last);
        let owned = managers
            .values()
            .fold(Set::default(), |all, owned| all.union(&owned.set));
        let merged_set = set(merged)?.with_named_fields(fields);
        let kept = set(&pruned)?
            .with_named_fields(fields)
            .union(&owned.with_named_fields(fields));
        let pruned = without(&merged_set.difference(&kept));
        let pruned_set = set(&pruned)?.with_named_fields(fields);
        Ok(without(&merged_set.difference(&pruned_set).intersection(&last)))
    }
}

fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_none_or(Map::is_empty),
        _ => false,
    }
}

fn refuse(conflicts: &[(Id, Set)]) -> Refusal {
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for (id, set) in conflicts {
        let name = if id.subresource.is_empty() {
            format!("{:?}", id.manager)
        } else {
            format!("{:?} with subresource {:?}", id.manager, id.subresource)
        };
        let using = if id.applies {
            String::new()
        } else {
            format!(" using {}", id.version)
        };
        let paths: Vec<String> = set.paths().iter().map(|path| shown(path)).collect();
        for path in &paths {
            causes.push(json!({
                "reason": "FieldManagerConflict", "field": path,
                "message": format!("conflict with {name}{using}"),
            }));
        }
        match paths.as_slice() {
            [one] => lines.push(format!("conflict with {name}{using}: {one}")),
            many => lines.push(format!("conflicts with {name}{using}:\n- {}", many.join("\n- "))),
        }
    }
    Refusal::managers(&lines.join("\n"), &causes)
}

/// Returns a path as conflicts show it: `.spec.list[name="x"].value`.
fn shown(path: &[String]) -> String {
    let mut out = String::new();
    for element in path {
        match element.split_once(':') {
            Some(("f", name)) => {
                out.push('.');
                out.push_str(name);
            }
            Some(("k", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                out.push('[');
                out.push_str(&keys.join(","));
                out.push(']');
            }
            Some((_, value)) => {
                out.push_str("[=");
                out.push_str(value);
                out.push(']');
            }
            None => {}
        }
    }
    out
}

fn without_managers(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    out
}

/// Joins the oldest updaters if there are too many.
fn cap(managers: &mut Managers) {
    let mut updaters: Vec<(String, Id)> = managers
        .iter()
        .filter(|(id, _)| !id.applies)
        .map(|(id, owned)| (owned.time.clone(), id.clone()))
        .collect();
    let mut count = updaters.len();
    updaters.sort();
    let mut first: Option<Id> = None;
    for (time, id) in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(oldest) = &first else {
            first = Some(id);
            continue;
        };
        let bucket = Id {
            manager: ANCIENT.into(),
            applies: false,
            version: id.version.clone(),
            subresource: String::new(),
        };
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(oldest)
        {
            managers.insert(bucket.clone(), owned);
        }
        if let Some(owned) = managers.remove(&id)
            && let Some(into) = managers.get_mut(&bucket)
        {
            into.set = into.set.union(&owned.set);
            into.time = time;
        }
        count -= 1;
    }
}

fn decode(entries: &[Value]) -> Managers {
    let entries = entries.iter().map(|entry| {
        let applies = entry["operation"] == "Apply";
        let version = text(entry, "/apiVersion").to_owned();
        let id = Id {
            manager: text(entry, "/manager").to_owned(),
            applies,
            version: if applies { String::new() } else { version.clone() },
            subresource: text(entry, "/subresource").to_owned(),
        };
        let owned = Owned {
            version,
            time: text(entry, "/time").to_owned(),
            set: Set::decode(&entry["fieldsV1"]),
        };
        (id, owned)
    });
    entries.collect()
}

fn encode(managers: &Managers, object: &mut Value) {
    let mut sorted: Vec<(&Id, &Owned)> = managers.iter().collect();
    sorted.sort_by(|(a, x), (b, y)| {
        (!a.applies, &x.time, &a.manager, &x.version, &a.subresource).cmp(&(
            !b.applies,
            &y.time,
            &b.manager,
            &y.version,
            &b.subresource,
        ))
    });
    let entries: Vec<Value> = sorted
        .into_iter()
        .map(|(id, owned)| {
            let mut entry = json!({
                "manager": id.manager, "operation": if id.applies { "Apply" } else { "Update" },
                "apiVersion": owned.version, "fieldsType": "FieldsV1", "fieldsV1": owned.set.encode(),
            });
            if !owned.time.is_empty() {
                entry["time"] = owned.time.clone().into();
            }
            if !id.subresource.is_empty() {
                entry["subresource"] = id.subresource.clone().into();
            }
            entry
        })
        .collect();
    if entries.is_empty() {
        metadata(object).remove("managedFields");
    } else {
        metadata(object).insert("managedFields".into(), Value::Array(entries));
    }
}
