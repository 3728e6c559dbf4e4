//! JSON as Go's encoder writes it: sorted keys, no white space, `<`, `>`, `&`, U+2028 and U+2029 escaped, numbers in Go's form.
//!
//! An integer outside the signed 64-bit range is a float to Kubernetes, so it is written as one.

use serde_json::{Number, Value};

/// The bytes of `value` in Go's form, without a trailing newline.
#[must_use]
pub fn to_go_json(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    write(&mut out, value);
    out.into_bytes()
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            // Sorted here as well, so that the bytes do not depend on the features serde_json was built with.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write(out, item);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let code = u32::from(c);
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    out.push(char::from_digit((code >> shift) & 0xf, 16).unwrap_or('0'));
                }
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn write_number(out: &mut String, number: &Number) {
    if let Some(integer) = number.as_i64() {
        out.push_str(&integer.to_string());
    } else if let Some(float) = number.as_f64() {
        write_float(out, float);
    } else {
        out.push_str(&number.to_string());
    }
}

/// The shortest digits that give the same float back; with an exponent below 1e-6 and from 1e21 on.
fn write_float(out: &mut String, float: f64) {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                out.push_str(digits);
                out.push_str("e+");
                out.push_str(exponent);
            }
            _ => out.push_str(&text),
        }
    } else {
        out.push_str(&float.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(text: &str) -> String {
        let value: Value = serde_json::from_str(text).unwrap();
        String::from_utf8(to_go_json(&value)).unwrap()
    }

    #[test]
    fn numbers_are_written_as_go_does() {
        for (input, want) in [
            ("1.0", "1"),
            ("-0.0", "-0"),
            ("100", "100"),
            ("0.5", "0.5"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1.5e-9", "1.5e-9"),
            ("12345678901234567890", "12345678901234567000"),
            ("9223372036854775807", "9223372036854775807"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            assert_eq!(go(input), want, "{input}");
        }
    }

    #[test]
    fn text_is_escaped_for_html_and_keys_are_sorted() {
        assert_eq!(
            go(r#"{"b":"<a&b>","a":"\u2028\u0001\b\f\n\"\\é\u007f"}"#),
            "{\"a\":\"\\u2028\\u0001\\b\\f\\n\\\"\\\\é\u{7f}\",\"b\":\"\\u003ca\\u0026b\\u003e\"}"
        );
    }
}
