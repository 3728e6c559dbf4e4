//! JSON text as it has always been hashed and stored.

use serde_json::Value;

/// Compact JSON in which the characters that matter to HTML and JavaScript are escaped too.
pub(crate) fn escaped(value: &Value) -> String {
    // These characters occur in strings only, so that replacing them in the whole text is safe.
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn escapes_markup() {
        assert_eq!(escaped(&"<&>\u{2028}".into()), "\"\\u003c\\u0026\\u003e\\u2028\"");
    }
}
