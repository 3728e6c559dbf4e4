//! Parses a bundle's properties into requirements.

use olm_fbc::Property;
use olm_text::head;
use olm_version::{SkipRangeError, go_quote};
use serde_json::{Map, Value};

use super::{CelRule, Gvk, PackageRange, Requirement, Test, cel};

/// Types of dependency properties.
pub(crate) const TYPES: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];

/// Maximum size of an `olm.constraint`, in bytes of JSON; OLM's own limit.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum nesting of compound constraints.
const MAX_DEPTH: usize = 16;
/// Maximum number of constraints of a bundle, nested ones included.
const MAX_COUNT: usize = 1024;
/// Maximum length of a failure message, in bytes.
const MAX_MESSAGE: usize = 512;

/// Failure to parse a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// The property is larger than 64 KiB.
    #[error("property {property} is larger than {MAX_BYTES} bytes")]
    TooLarge {
        /// The property's type.
        property: String,
    },
    /// The property holds too many constraints, or nests them too deeply.
    #[error(
        "property {property}: there are more than {MAX_COUNT} constraints, or they are nested more than {MAX_DEPTH} deep"
    )]
    TooMany {
        /// The property's type.
        property: String,
    },
    /// A field has an unexpected shape.
    #[error("property {property}: {place} {fault}")]
    Shape {
        /// The property's type.
        property: String,
        /// Path of the defect: `constraint`, `all.constraints[1].gvk`.
        place: String,
        /// Description of the defect.
        fault: String,
    },
    /// A range of versions does not parse.
    #[error(
        "property {property}: {place}: the version range {} is invalid: {source}",
        go_quote(range)
    )]
    Range {
        /// The property's type.
        property: String,
        /// Path of the range.
        place: String,
        /// The range as written.
        range: String,
        /// Syntax error of the range; part of the sentence.
        source: Box<SkipRangeError>,
    },
    /// An expression cannot be used.
    #[error("property {property}: {place}: the CEL rule cannot be used: {reason}")]
    Cel {
        /// The property's type.
        property: String,
        /// Path of the expression.
        place: String,
        /// Reason why the expression cannot be compiled.
        reason: String,
    },
}

/// Parses the dependencies of a bundle with these properties, in their order.
///
/// # Errors
/// [`ConstraintError`] for the first property that cannot be read: a bundle with unknown dependencies is not installed.
pub fn parse(properties: &[Property]) -> Result<Vec<Requirement>, ConstraintError> {
    let mut count = 0;
    let needs = properties
        .iter()
        .filter(|property| TYPES.contains(&property.type_.as_str()));
    needs
        .map(|property| {
            let mut reader = Reader {
                property: &property.type_,
                count: &mut count,
            };
            reader.property(&property.value)
        })
        .collect()
}

struct Reader<'a> {
    property: &'a str,
    count: &'a mut usize,
}

impl Reader<'_> {
    fn property(&mut self, value: &Value) -> Result<Requirement, ConstraintError> {
        if value.to_string().len() > MAX_BYTES {
            return Err(ConstraintError::TooLarge {
                property: self.property.to_owned(),
            });
        }
        self.tally(0)?;
        let test = match self.property {
            "olm.gvk.required" => self.gvk(value, "value")?,
            "olm.package.required" => self.package(value, "value")?,
            _ => return self.constraint(value, "constraint", 0),
        };
        Ok(Requirement {
            message: String::new(),
            test,
        })
    }

    fn constraint(
        &mut self,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> Result<Requirement, ConstraintError> {
        self.tally(depth)?;
        let map = self.map(value, place)?;
        let message = match map.get("failureMessage") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => head(text, MAX_MESSAGE).to_owned(),
            Some(_) => return Err(self.fault(place, "has a failureMessage that is not a string")),
        };
        let kinds: Vec<(&String, &Value)> = map
            .iter()
            .filter(|(key, value)| *key != "failureMessage" && !value.is_null())
            .collect();
        let (key, value) = match kinds.as_slice() {
            [one] => *one,
            [] => {
                return Err(self.fault(
                    place,
                    "has no constraint: set one of gvk, package, cel, all, any, not",
                ));
            }
            _ => {
                return Err(self.fault(
                    place,
                    "has several constraints: set only one of gvk, package, cel, all, any, not",
                ));
            }
        };
        let below = format!("{place}.{key}");
        let test = match key.as_str() {
            "gvk" => self.gvk(value, &below)?,
            "package" => self.package(value, &below)?,
            "cel" => self.cel(value, &below)?,
            "all" => Test::All(self.list(value, &below, depth)?),
            "any" => Test::Any(self.list(value, &below, depth)?),
            // Older name of the same constraint.
            "not" | "none" => Test::Not(self.list(value, &below, depth)?),
            _ => {
                return Err(self.fault(
                    &below,
                    "is not a known constraint: use one of gvk, package, cel, all, any, not",
                ));
            }
        };
        Ok(Requirement { message, test })
    }

    fn list(
        &mut self,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> Result<Vec<Requirement>, ConstraintError> {
        let map = self.map(value, place)?;
        let list = match map.get("constraints") {
            Some(Value::Array(list)) if !list.is_empty() => list,
            _ => return Err(self.fault(place, "has no list of constraints")),
        };
        let each = list.iter().enumerate();
        each.map(|(at, one)| self.constraint(one, &format!("{place}.constraints[{at}]"), depth + 1))
            .collect()
    }

    fn gvk(&self, value: &Value, place: &str) -> Result<Test, ConstraintError> {
        let map = self.map(value, place)?;
        // The core group has no name.
        let group = map.get("group").and_then(Value::as_str).unwrap_or_default();
        Ok(Test::Gvk(Gvk {
            group: group.to_owned(),
            version: self.text(map, "version", place)?,
            kind: self.text(map, "kind", place)?,
        }))
    }

    fn package(&self, value: &Value, place: &str) -> Result<Test, ConstraintError> {
        let map = self.map(value, place)?;
        // The documentation uses `name`, bundles use `packageName`.
        let key = if map.contains_key("packageName") {
            "packageName"
        } else {
            "name"
        };
        let name = self.text(map, key, place)?;
        let range = self.text(map, "versionRange", place)?;
        match range.parse() {
            Ok(parsed) => Ok(Test::Package(PackageRange {
                name: name.into(),
                range,
                parsed,
            })),
            Err(source) => Err(ConstraintError::Range {
                property: self.property.to_owned(),
                place: place.to_owned(),
                range,
                source: Box::new(source),
            }),
        }
    }

    fn cel(&self, value: &Value, place: &str) -> Result<Test, ConstraintError> {
        let map = self.map(value, place)?;
        let source = self.text(map, "rule", place)?;
        let rule = cel::Rule::parse(&source).map_err(|reason| ConstraintError::Cel {
            property: self.property.to_owned(),
            place: place.to_owned(),
            reason,
        })?;
        Ok(Test::Cel(CelRule(rule)))
    }

    fn map<'v>(&self, value: &'v Value, place: &str) -> Result<&'v Map<String, Value>, ConstraintError> {
        value
            .as_object()
            .ok_or_else(|| self.fault(place, "is not an object"))
    }

    fn text(&self, map: &Map<String, Value>, key: &str, place: &str) -> Result<String, ConstraintError> {
        match map.get(key).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(self.fault(place, &format!("has no {key}"))),
        }
    }

    fn fault(&self, place: &str, fault: &str) -> ConstraintError {
        ConstraintError::Shape {
            property: self.property.to_owned(),
            place: place.to_owned(),
            fault: fault.to_owned(),
        }
    }

    fn tally(&mut self, depth: usize) -> Result<(), ConstraintError> {
        *self.count += 1;
        if *self.count > MAX_COUNT || depth > MAX_DEPTH {
            return Err(ConstraintError::TooMany {
                property: self.property.to_owned(),
            });
        }
        Ok(())
    }
}
