//! Decides if an operator holds its own upgrade.
//!
//! An operator says so by the condition `Upgradeable`: on an `OperatorCondition`, read by the rules of OLM Classic, or on an object that
//! its bundle names.

use std::fmt;

use olm_api::condition::Status;
use olm_api::condition::external::Operator;
use olm_api::condition::untyped::{self, UntypedCondition};
use olm_api::names::Segment;
use olm_text::{cut, dns, printable};
use olm_version::BundleVersion;
use serde_json::Value;

use crate::step::Step;

/// Group of the kind `OperatorCondition`.
pub const OPERATOR_CONDITION_GROUP: &str = "operators.coreos.com";
/// Version of the kind `OperatorCondition`.
pub const OPERATOR_CONDITION_VERSION: &str = "v2";
/// The kind `OperatorCondition` of OLM Classic.
pub const OPERATOR_CONDITION_KIND: &str = "OperatorCondition";
/// Resource of the kind `OperatorCondition`.
pub const OPERATOR_CONDITION_PLURAL: &str = "operatorconditions";

/// Maximum length of a reason, in bytes.
const REASON_LIMIT: usize = 128;
/// Maximum length of a message, in bytes.
const MESSAGE_LIMIT: usize = 1024;
/// Maximum length of the name of an object that a bundle names, in bytes.
const NAMED_LIMIT: usize = 512;

/// Returns true for an upgrade of the installed version. Installations, downgrades, changes of the same version and changes of a
/// version that is rolling out are none.
#[must_use]
pub fn begins_upgrade(
    installed: Option<&BundleVersion>,
    rolling_out: Option<&BundleVersion>,
    to: &BundleVersion,
) -> bool {
    let rises = |from| matches!(Step::between(from, to), Step::Patch | Step::Minor | Step::Major);
    installed.is_some_and(rises) && rolling_out.is_none_or(rises)
}

/// Condition with which an operator holds its upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Field of the object that has the condition.
    field: &'static str,
    status: Status,
    reason: String,
    message: String,
    /// True if the condition describes another generation of its object.
    outdated: bool,
}

impl Hold {
    fn new(field: &'static str, condition: &UntypedCondition<'_>, outdated: bool) -> Self {
        let text = |text: Option<&str>, limit: usize| {
            let shown = printable(cut(text.unwrap_or_default(), limit).trim()).into_owned();
            shown.replace(['\n', '\t'], " ")
        };
        Self {
            field,
            status: condition.status.unwrap_or(Status::Unknown),
            reason: text(condition.reason, REASON_LIMIT),
            message: text(condition.message, MESSAGE_LIMIT),
            outdated,
        }
    }

    /// Returns true if an administrator set the condition in `spec.overrides`.
    #[must_use]
    pub fn is_override(&self) -> bool {
        self.field == OVERRIDES
    }
}

/// Writes the condition as a phrase: `Upgradeable=False in spec.conditions (Migration: the data moves)`.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let type_ = Operator::Upgradeable;
        write!(f, "{type_}={} in {}", self.status, self.field)?;
        if self.outdated {
            f.write_str(", which is outdated")?;
        }
        match (self.reason.as_str(), self.message.as_str()) {
            ("", "") => Ok(()),
            ("", text) | (text, "") => write!(f, " ({text})"),
            (reason, message) => write!(f, " ({reason}: {message})"),
        }
    }
}

const OVERRIDES: &str = "spec.overrides";

/// Verdict of an object on the upgrade; `H` is the hold, with the object where a caller needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion<H = Hold> {
    /// It holds nothing.
    Silent,
    /// An administrator permits the upgrade, whatever another object says.
    Permits,
    /// It holds the upgrade.
    Holds(H),
}

impl<H> Opinion<H> {
    /// Combines the verdicts of two objects: a permission of either counts, else the first hold.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Permits, _) | (_, Self::Permits) => Self::Permits,
            (Self::Silent, next) => next,
            (held, _) => held,
        }
    }

    /// Returns the hold; `None` if there is none.
    #[must_use]
    pub fn hold(self) -> Option<H> {
        match self {
            Self::Holds(hold) => Some(hold),
            Self::Silent | Self::Permits => None,
        }
    }

    /// Turns the hold into another value.
    #[must_use]
    pub fn map<T>(self, with: impl FnOnce(H) -> T) -> Opinion<T> {
        match self {
            Self::Silent => Opinion::Silent,
            Self::Permits => Opinion::Permits,
            Self::Holds(hold) => Opinion::Holds(with(hold)),
        }
    }
}

impl Opinion {
    fn of(hold: Option<Hold>) -> Self {
        hold.map_or(Self::Silent, Self::Holds)
    }
}

/// Returns the verdict of an `OperatorCondition`, by the rules of OLM Classic.
///
/// An override decides alone, and any but True holds. Else the operator's condition in `spec.conditions` holds if it is False.
/// Without that, its condition in `status.conditions` holds if it is False or describes another generation.
#[must_use]
pub fn of_operator_condition(object: &Value) -> Opinion {
    if let Some(set) = upgradeable(object, "/spec/overrides") {
        return if set.is_true() {
            Opinion::Permits
        } else {
            Opinion::Holds(Hold::new(OVERRIDES, &set, false))
        };
    }
    if let Some(said) = upgradeable(object, "/spec/conditions") {
        return Opinion::of(is_false(&said).then(|| Hold::new("spec.conditions", &said, false)));
    }
    let Some(copied) = upgradeable(object, "/status/conditions") else {
        return Opinion::Silent;
    };
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let outdated = copied.observed_generation.unwrap_or_default() != generation.unwrap_or_default();
    let holds = outdated || is_false(&copied);
    Opinion::of(holds.then(|| Hold::new("status.conditions", &copied, outdated)))
}

/// Returns the verdict of an object that a bundle names: it holds if its condition in `status.conditions` is False.
#[must_use]
pub fn of_named_object(object: &Value) -> Opinion {
    let said = upgradeable(object, "/status/conditions").filter(is_false);
    Opinion::of(said.map(|said| Hold::new("status.conditions", &said, false)))
}

fn upgradeable<'a>(object: &'a Value, pointer: &str) -> Option<UntypedCondition<'a>> {
    untyped::all_at(object, pointer).find(|condition| *condition.type_ == Operator::Upgradeable)
}

fn is_false(condition: &UntypedCondition<'_>) -> bool {
    condition.status == Some(Status::False)
}

/// Object that a bundle names for its condition `Upgradeable`: cluster-scoped, or in the install namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

impl NamedObject {
    /// Parses `Kind.version.group/name`; `None` if the text cannot name an object.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.trim().split_once('/')?;
        let mut parts = kind.splitn(3, '.');
        let (kind, version, group) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let valid = text.len() <= NAMED_LIMIT
            && is_word(kind)
            && is_word(version)
            && (group.is_empty() || dns::is_subdomain(group))
            && Segment::new(name).is_ok();
        valid.then(|| Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
