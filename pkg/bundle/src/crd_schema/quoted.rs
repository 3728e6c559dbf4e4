//! Quotation of values in findings.

use olm_text::head;
use serde_json::Value;

/// Maximum length of a quoted value, in bytes.
const QUOTED: usize = 80;

/// Returns a value as a finding quotes it.
pub(super) fn quoted(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= QUOTED {
        return text;
    }
    format!("{}…", head(&text, QUOTED))
}
