//! The tree of a schema that values are checked against.

use std::collections::BTreeMap;

use olm_cel::Expression;
use regex::Regex;
use serde_json::Value;

use super::format::Format;
use super::number::Bound;
use super::value_type::Type;

/// CEL rule that can be evaluated, with the message of its failure.
#[derive(Debug)]
pub(super) struct Rule {
    pub expression: Expression,
    pub message: String,
}

/// Values of an object's unnamed fields.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// The schema does not specify them: unnamed fields are dropped, unless unknown fields are kept.
    #[default]
    Unspecified,
    /// Unnamed fields may have any value.
    Any,
    /// Unnamed fields are forbidden.
    Forbidden,
    /// Unnamed fields have values of this schema.
    Schema(Box<Node>),
}

/// Identity of list elements.
#[derive(Debug, Default)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// A pattern as written, and compiled if possible.
#[derive(Debug)]
pub(super) struct Pattern {
    pub source: String,
    pub regex: Option<Regex>,
}

/// The schema of one value.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of schemas, or tells if one is below"
)]
pub(super) struct Node {
    pub kind: Option<Type>,
    pub int_or_string: bool,
    pub nullable: bool,
    pub keeps_unknown: bool,
    /// True for a whole resource: the root, or an embedded one.
    pub is_resource: bool,
    pub default: Option<Value>,
    pub choices: Vec<Value>,
    pub minimum: Option<Bound>,
    pub maximum: Option<Bound>,
    pub multiple_of: Option<f64>,
    /// Minimum and maximum number of characters, elements and fields.
    pub length: (Option<u64>, Option<u64>),
    pub items_count: (Option<u64>, Option<u64>),
    pub fields_count: (Option<u64>, Option<u64>),
    pub unique_items: bool,
    pub pattern: Option<Pattern>,
    pub format: Option<Format>,
    pub required: Vec<String>,
    pub properties: BTreeMap<String, Self>,
    pub additional: Additional,
    pub items: Option<Box<Self>>,
    pub list: ListType,
    pub all_of: Vec<Self>,
    pub any_of: Vec<Self>,
    pub one_of: Vec<Self>,
    pub not: Option<Box<Self>>,
    pub rules: Vec<Rule>,
    /// True if this schema or one below has rules, list types or embedded resources. Otherwise these checks are
    /// skipped.
    pub has_rules: bool,
    pub has_lists: bool,
    pub has_resources: bool,
}

impl Node {
    /// Returns the schemas directly below this one that belong to the structural schema.
    pub(super) fn structure(&self) -> impl Iterator<Item = &Self> {
        let additional = match &self.additional {
            Additional::Schema(node) => Some(&**node),
            _ => None,
        };
        self.properties
            .values()
            .chain(self.items.as_deref())
            .chain(additional)
    }

    /// Sets the `has_*` flags from this schema and the schemas below it.
    pub(super) fn set_flags(&mut self) {
        self.has_rules = !self.rules.is_empty() || self.structure().any(|node| node.has_rules);
        self.has_lists =
            !matches!(self.list, ListType::Atomic) || self.structure().any(|node| node.has_lists);
        self.has_resources = self.is_resource || self.structure().any(|node| node.has_resources);
    }

    /// Returns the schema of a field: its own, or the schema of all unnamed fields.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        })
    }
}
