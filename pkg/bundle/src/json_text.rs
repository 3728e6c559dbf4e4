//! JSON text as Go's encoder writes it, the form in which objects are hashed and stored.
//!
//! Catalogs have their own encoder (`olm_fbc`), which keeps the digits of integers of up to 64 bits.
//!
//! Keys are sorted, there is no white space, U+2028 and U+2029 are escaped, and numbers have Go's form: an
//! integer outside of 64 signed bits is a float.

use std::io;

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use sha2::{Digest, Sha256};

/// Returns compact JSON with `<`, `>` and `&` escaped, as Go's encoder does by default.
pub fn escaped_json(value: &Value) -> String {
    encode(value, true)
}

/// Returns the JSON `text` without white space and with the escapes of [`escaped_json`]; the order of keys and the form
/// of numbers stay.
pub(crate) fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            ' ' | '\t' | '\r' | '\n' if !quoted => continue,
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        if matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns canonical JSON: equal objects have equal bytes. `<`, `>` and `&` are not escaped.
pub fn canonical_json(value: &Value) -> String {
    encode(value, false)
}

/// Returns the hash of a rendered list, independent of its order: the hex SHA-256 of all objects' [`canonical_json`],
/// sorted bytewise and joined by line feeds.
pub fn list_hash(objects: &[Value]) -> String {
    let mut texts: Vec<String> = objects.iter().map(canonical_json).collect();
    texts.sort_unstable();
    let mut hash = Sha256::new();
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            hash.update(b"\n");
        }
        hash.update(text);
    }
    HEXLOWER.encode(&hash.finalize())
}

fn encode(value: &Value, html: bool) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail, nor does serializing a value with text keys.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, Go { html }));
    String::from_utf8(out).unwrap_or_default()
}

struct Go {
    html: bool,
}

impl Formatter for Go {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let is_special =
            |c| matches!(c, '\u{2028}' | '\u{2029}') || self.html && matches!(c, '<' | '>' | '&');
        let mut rest = fragment;
        while let Some(at) = rest.find(is_special) {
            let (before, tail) = rest.split_at(at);
            let mut chars = tail.chars();
            let code = chars.next().map_or(0, u32::from);
            write!(out, "{before}\\u{code:04x}")?;
            rest = chars.as_str();
        }
        out.write_all(rest.as_bytes())
    }

    fn write_u64<W: io::Write + ?Sized>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        if i64::try_from(value).is_ok() {
            return write!(out, "{value}");
        }
        #[expect(clippy::cast_precision_loss, reason = "Go's reader loses the same precision")]
        self.write_f64(out, value as f64)
    }

    /// Writes the shortest digits that read back as the same float; with an exponent below 1e-6 and from 1e21.
    fn write_f64<W: io::Write + ?Sized>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            return write!(out, "{value}");
        }
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => write!(out, "{digits}e+{exponent}"),
            _ => out.write_all(text.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn escapes_markup() {
        let value = Value::from("a<&>\u{2028}\u{1}\u{8}b");
        assert_eq!(
            escaped_json(&value),
            "\"a\\u003c\\u0026\\u003e\\u2028\\u0001\\bb\""
        );
        assert_eq!(canonical_json(&value), "\"a<&>\\u2028\\u0001\\bb\"");
    }

    #[test]
    fn compact_text_keeps_order_and_numbers() {
        assert_eq!(
            compact("{ \"b\" : \"a \\\" <\" ,\n\"a\":\t1.50 }"),
            "{\"b\":\"a \\\" \\u003c\",\"a\":1.50}"
        );
    }

    #[test]
    fn keys_are_sorted() {
        let value: Value = serde_json::from_str(r#"{"b":"<a>","a":"\u2028\b\f\n\"\\é\u007f"}"#).unwrap();
        assert_eq!(
            escaped_json(&value),
            "{\"a\":\"\\u2028\\b\\f\\n\\\"\\\\é\u{7f}\",\"b\":\"\\u003ca\\u003e\"}"
        );
    }

    #[test]
    fn numbers_have_gos_form() {
        for (input, want) in [
            ("-0.0", "-0"),
            ("0.5", "0.5"),
            ("0.00001", "0.00001"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("0.0000001", "1e-7"),
            ("-1.5e-9", "-1.5e-9"),
            ("12345678901234567890", "12345678901234567000"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            let value: Value = serde_json::from_str(input).unwrap();
            assert_eq!(canonical_json(&value), want, "{input}");
        }
    }

    #[test]
    fn a_list_has_no_order() {
        let (one, two) = (json!({"b": 1, "a": 2}), json!({}));
        assert_eq!(list_hash(&[one.clone(), two.clone()]), list_hash(&[two, one]));
        // sha256 of the empty text, and of `{}`.
        assert!(list_hash(&[]).starts_with("e3b0c44298fc1c14"));
        assert!(list_hash(&[json!({})]).starts_with("44136fa355b3678a"));
    }
}
