//! Plan of the validation of stored objects before a CRD is replaced.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Fault, Schema, Verdict};

/// Keys of a schema that only describe.
const DESCRIPTIONS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Objects to validate, and the schemas to use.
#[derive(Debug)]
pub struct Plan {
    /// The group of the kind.
    pub group: String,
    /// The name of its objects in the API.
    pub plural: String,
    /// The versions to read and the schemas to check against; empty if no schema changes.
    pub targets: Vec<Target>,
    /// Objects that cannot be validated, each as one phrase.
    pub notes: Vec<String>,
}

impl Plan {
    /// Counts a field whose value the new CRD drops as a defect, as a return to a former CRD must.
    #[must_use]
    pub fn refusing_loss(mut self) -> Self {
        for target in &mut self.targets {
            target.refuses_loss = true;
        }
        self
    }
}

/// A version whose schema changes.
#[derive(Debug)]
pub struct Target {
    /// Version in which objects are read; the cluster serves it now.
    pub read: String,
    /// Version whose schema they are validated against.
    pub version: String,
    before: Schema,
    after: Schema,
    /// True if a field whose value is dropped is a defect.
    refuses_loss: bool,
}

impl Target {
    /// Returns the defects that the new CRD adds to those that the object already has.
    pub fn check(&self, object: Value) -> Verdict {
        let mut verdict = self.after.check(object.clone());
        if !self.refuses_loss {
            verdict.lost.clear();
        }
        if verdict != Verdict::default() {
            let known = self.before.check(object);
            verdict.faults.append(&mut verdict.lost);
            let had = |fault: &Fault| known.faults.contains(fault) || known.lost.contains(fault);
            verdict.faults.retain(|fault| !had(fault));
            verdict.unknown.retain(|unknown| !known.unknown.contains(unknown));
        }
        verdict
    }

    /// Returns the undecided checks that the new schema adds.
    pub fn unknown(&self) -> impl Iterator<Item = &String> {
        self.after.unknown().difference(self.before.unknown())
    }
}

/// Plans the validation of stored objects before `new` replaces `old`, which is on the cluster.
///
/// Objects are read in each version that stays served and whose schema changes in more than descriptions. Objects of
/// the stored version are also validated against versions that are new, if versions differ in nothing but their names.
pub fn plan(old: &Value, new: &Value) -> Plan {
    let text = |crd: &Value, pointer: &str| {
        let found = crd.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let mut plan = Plan {
        group: text(old, "/spec/group"),
        plural: text(old, "/spec/names/plural"),
        targets: Vec::new(),
        notes: Vec::new(),
    };
    let (before, after) = (versions(old), versions(new));
    let is = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool).unwrap_or(false);
    let converts = text(new, "/spec/conversion/strategy") == "Webhook";
    // The schema is that of the stored version.
    let mut served = before.iter().filter(|(_, version)| is(version, "served"));
    let stored = served
        .clone()
        .find(|(_, version)| is(version, "storage"))
        .or_else(|| served.next());
    for (name, version) in &after {
        if !is(version, "served") && !is(version, "storage") {
            continue;
        }
        let same = before.get(name).filter(|version| is(version, "served"));
        let (read, known) = match (same, stored) {
            (Some(known), _) => (*name, *known),
            (None, Some((_, _))) if converts => {
                plan.notes.push(format!(
                    "version {name} is new, and a webhook will convert its objects"
                ));
                continue;
            }
            (None, Some((read, known))) => (*read, *known),
            (None, None) => {
                plan.notes
                    .push(format!("version {name}: no version is served to read objects in"));
                continue;
            }
        };
        let (known, version) = (schema(known), schema(version));
        if without_descriptions(known) != without_descriptions(version) {
            plan.targets.push(Target {
                read: read.to_owned(),
                version: (*name).to_owned(),
                before: Schema::compile(known),
                after: Schema::compile(version),
                refuses_loss: false,
            });
        }
    }
    plan
}

fn versions(crd: &Value) -> BTreeMap<&str, &Value> {
    let list = crd.pointer("/spec/versions").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|version| Some((version.get("name")?.as_str()?, version)))
        .collect()
}

fn schema(version: &Value) -> &Value {
    version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null)
}

/// Returns a schema without its descriptions. Keys below `properties` are names of fields and stay.
fn without_descriptions(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept = map
                .iter()
                .filter(|(key, _)| !DESCRIPTIONS.contains(&key.as_str()));
            let clean = kept.map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("properties", Value::Object(fields)) => {
                        let fields = fields
                            .iter()
                            .map(|(name, field)| (name.clone(), without_descriptions(field)));
                        Value::Object(fields.collect())
                    }
                    // Values, not schemas.
                    ("default" | "enum", value) => value.clone(),
                    (_, value) => without_descriptions(value),
                };
                (key.clone(), value)
            });
            Value::Object(clean.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_descriptions).collect()),
        other => other.clone(),
    }
}
