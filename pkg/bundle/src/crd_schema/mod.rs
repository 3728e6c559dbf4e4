//! Validation of an object against a version of a CRD, like the API server on a write.
//!
//! A schema is compiled once ([`Schema::compile`]) and applied to many objects ([`Schema::check`]). Like the API
//! server, it first drops unknown fields and meaningless nulls and fills in defaults; then it checks types, bounds,
//! patterns, formats, `allOf` and the like, lists as sets and maps, embedded resources, and the CEL rules of
//! `x-kubernetes-validations`.
//!
//! A verdict has three values: valid, invalid and unknown. [`Verdict::unknown`] names every format, pattern or rule
//! that the libraries cannot decide. Such a check neither passes nor fails.
//!
//! Two features of the API server are left out: transition rules (`oldSelf`), because nothing changes; and ratcheting,
//! which admits an update of an invalid object while the invalid field stays the same.

mod compile;
mod constraints;
mod embedded;
mod format;
mod node;
mod number;
mod prepare;
mod quoted;
mod rules;
mod targets;
mod unique;
mod value_type;

use std::collections::BTreeSet;

use serde_json::Value;

use node::Node;

pub use rules::escape;
pub use targets::{Plan, Target, plan};

/// Maximum number of reported faults of an object.
const FAULTS: usize = 32;
/// Maximum number of reported undecided checks.
const UNKNOWN: usize = 64;

/// Compiled schema of one version.
#[derive(Debug)]
pub struct Schema {
    root: Node,
    unknown: BTreeSet<String>,
}

/// Defect of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The field: `spec.list[2].name`; empty for the object itself.
    pub path: String,
    /// Description of the defect, as one phrase.
    pub cause: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.cause)
    }
}

/// Result of the validation of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The first 32 defects.
    pub faults: Vec<Fault>,
    /// Undecided checks, each with its path and reason.
    pub unknown: BTreeSet<String>,
    /// The first 32 fields whose values the API server drops, because the schema has no such fields.
    pub lost: Vec<Fault>,
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a version. [`Schema::unknown`] names the parts that cannot be compiled.
    pub fn compile(schema: &Value) -> Self {
        let mut unknown = UndecidedChecks::default();
        let root = compile::root(schema, &mut unknown);
        Self {
            root,
            unknown: unknown.0,
        }
    }

    /// Returns the checks that are undecided for every object: rules and patterns that do not compile.
    pub fn unknown(&self) -> &BTreeSet<String> {
        &self.unknown
    }

    /// Changes an object as a write in this version does: drops unknown fields and meaningless nulls, fills in defaults.
    pub fn prepare(&self, object: &mut Value) {
        prepare::prepare(object, &self.root, &mut Findings::default());
    }

    /// Fills in the defaults of absent fields, and of nulls that the schema does not allow. Keeps everything else.
    pub fn fill_defaults(&self, object: &mut Value) {
        prepare::fill_defaults(object, &self.root);
    }

    /// Validates an object as if it were written in this version.
    pub fn check(&self, mut object: Value) -> Verdict {
        let mut lost = Findings::default();
        prepare::prepare(&mut object, &self.root, &mut lost);
        let mut findings = self.values(&object);
        // The API server skips the rules of an object whose fields have wrong types.
        if findings.faults.is_empty() {
            rules::check(&self.root, &object, &mut findings);
        }
        Verdict {
            lost: lost.faults,
            ..findings.into()
        }
    }

    /// Validates the values of an object as the object is, without its rules.
    pub fn check_values(&self, object: &Value) -> Verdict {
        self.values(object).into()
    }

    /// Validates the lists and embedded resources of an object as the object is.
    pub fn check_lists(&self, object: &Value) -> Verdict {
        let mut findings = Findings::default();
        self.lists(object, &mut findings);
        findings.into()
    }

    /// Evaluates the rules on an object as the object is.
    pub fn check_rules(&self, object: &Value) -> Verdict {
        let mut findings = Findings::default();
        rules::check(&self.root, object, &mut findings);
        findings.into()
    }

    fn values(&self, object: &Value) -> Findings {
        let mut findings = Findings::default();
        constraints::check(&self.root, object, &mut findings);
        self.lists(object, &mut findings);
        findings
    }

    fn lists(&self, object: &Value, findings: &mut Findings) {
        unique::check(&self.root, object, findings);
        embedded::check(&self.root, object, findings);
    }
}

impl From<Findings> for Verdict {
    fn from(findings: Findings) -> Self {
        Self {
            faults: findings.faults,
            unknown: findings.unknown.0,
            lost: Vec::new(),
        }
    }
}

/// Findings so far, with the path of the current value.
#[derive(Debug, Default)]
struct Findings {
    faults: Vec<Fault>,
    unknown: UndecidedChecks,
    /// Path of the current value.
    path: String,
}

impl Findings {
    fn fault(&mut self, cause: impl Into<String>) {
        if self.faults.len() < FAULTS {
            self.faults.push(Fault {
                path: self.path.clone(),
                cause: cause.into(),
            });
        }
    }

    /// Records an undecided check.
    fn undecided(&mut self, why: &str) {
        let place = place(&self.path);
        self.unknown.add(&place, why);
    }

    /// Returns empty findings at the same path, for an alternative of `anyOf` and the like.
    fn branch(&self) -> Self {
        Self {
            path: self.path.clone(),
            ..Self::default()
        }
    }

    fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.unknown.0.is_empty()
    }

    /// Runs `check` with the path extended by `step`.
    fn within<T>(&mut self, step: &PathSegment<'_>, check: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        step.append(&mut self.path);
        let out = check(self);
        self.path.truncate(length);
        out
    }
}

/// Part of the path to a value.
enum PathSegment<'a> {
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl PathSegment<'_> {
    fn append(&self, path: &mut String) {
        use std::fmt::Write as _;
        // Writing to a String does not fail.
        let _ = match self {
            Self::Field(name) if path.is_empty() => write!(path, "{name}"),
            Self::Field(name) => write!(path, ".{name}"),
            Self::Key(key) => write!(path, "[{key}]"),
            Self::Index(at) => write!(path, "[{at}]"),
        };
    }
}

/// Undecided checks, each once.
#[derive(Debug, Default)]
struct UndecidedChecks(BTreeSet<String>);

impl UndecidedChecks {
    fn add(&mut self, place: &str, why: &str) {
        if self.0.len() < UNKNOWN {
            self.0.insert(if place.is_empty() {
                why.to_owned()
            } else {
                format!("{place}: {why}")
            });
        }
    }
}

/// Returns a path without its indices and keys, so that a check of every list element is reported once.
fn place(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut inside = 0_u32;
    for c in path.chars() {
        match c {
            '[' => {
                if inside == 0 {
                    out.push_str("[]");
                }
                inside += 1;
            }
            ']' => inside = inside.saturating_sub(1),
            _ if inside > 0 => {}
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
