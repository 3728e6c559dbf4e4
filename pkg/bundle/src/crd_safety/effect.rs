//! Effect of a change on objects and clients.

use serde_json::Value;

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// Old and new schema have the same meaning.
    Same,
    /// More is allowed; nothing that was valid is refused.
    Looser,
    /// The change may break objects or clients, or its effect is unknown.
    Unsafe,
}

/// Returns the boolean of a keyword; an absent one is false.
pub(super) fn truth(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool).unwrap_or(false)
}
