//! Translation of RE2's regular expressions, which Kubernetes uses, for the `regex` crate.
//!
//! Both languages are nearly equal. In RE2, `\d`, `\s`, `\w` and `\b` know only ASCII; in the crate, they know all of Unicode. A
//! bracket in a bracketed class and `&&`, `--` and `~~` are plain characters in RE2, and operators in the crate.

/// Returns a pattern for the `regex` crate that matches the same texts as `pattern` in RE2. Some patterns that RE2 refuses, such as `a**`,
/// become valid; the API server accepts no CRD with one.
pub fn rust_pattern(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '\\' => escape(rest, &mut out),
            '[' => class(rest, &mut out),
            _ => take(rest, c.len_utf8(), &mut out),
        };
    }
    out
}

/// Moves the first bytes of `text` to `out`, and returns the others.
fn take<'a>(text: &'a str, bytes: usize, out: &mut String) -> &'a str {
    let (taken, rest) = text.split_at_checked(bytes).unwrap_or((text, ""));
    out.push_str(taken);
    rest
}

/// Returns the class that an escape such as `\d` stands for. RE2's `\s` lacks the vertical tab.
fn perl(escape: &str) -> Option<&'static str> {
    Some(match escape.as_bytes() {
        [b'\\', b'd', ..] => "[0-9]",
        [b'\\', b'D', ..] => "[^0-9]",
        [b'\\', b's', ..] => r"[\t\n\f\r ]",
        [b'\\', b'S', ..] => r"[^\t\n\f\r ]",
        [b'\\', b'w', ..] => "[0-9A-Za-z_]",
        [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// Returns the length of the character or the escape at the start of `text`, in bytes.
fn length(text: &str) -> usize {
    let mut chars = text.chars();
    let first = chars.next().map_or(0, char::len_utf8);
    if text.starts_with('\\') {
        first + chars.next().map_or(0, char::len_utf8)
    } else {
        first
    }
}

/// Translates an escape outside of brackets.
fn escape<'a>(text: &'a str, out: &mut String) -> &'a str {
    let other = match text.as_bytes() {
        [_, b'b', ..] => Some(r"(?-u:\b)"),
        [_, b'B', ..] => Some(r"(?-u:\B)"),
        // In the crate, these are the ends of a word.
        [_, b'<', ..] => Some("<"),
        [_, b'>', ..] => Some(">"),
        _ => perl(text),
    };
    match other {
        Some(other) => {
            out.push_str(other);
            text.get(2..).unwrap_or_default()
        }
        None => take(text, length(text), out),
    }
}

/// Translates a bracketed class.
fn class<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut rest = take(text, 1, out);
    if rest.starts_with('^') {
        rest = take(rest, 1, out);
    }
    let mut is_first = true;
    while !rest.is_empty() {
        if rest.starts_with(']') && !is_first {
            return take(rest, 1, out);
        }
        is_first = false;
        let named = rest.strip_prefix("[:").and_then(|name| name.find(":]"));
        if let Some(end) = named {
            rest = take(rest, end + "[::]".len(), out);
        } else if let Some(perl) = perl(rest) {
            out.push_str(perl);
            rest = rest.get(2..).unwrap_or_default();
        } else {
            rest = member(rest, out);
            let is_range = rest.strip_prefix('-').is_some_and(|end| !end.starts_with(']'));
            if is_range {
                rest = take(rest, 1, out);
                rest = member(rest, out);
            }
        }
    }
    rest
}

/// Translates one character of a class: the crate reads some of them as operators.
fn member<'a>(text: &'a str, out: &mut String) -> &'a str {
    if text.starts_with(['[', ']', '&', '~', '-', '^']) {
        out.push('\\');
    }
    take(text, length(text), out)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Regex::new(&rust_pattern(pattern)).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_those_of_ascii() {
        for (pattern, ascii, other) in [
            (r"^\d$", "7", "٣"),
            (r"^\w$", "a", "é"),
            (r"^\s$", "\t", "\u{a0}"),
            (r"^\s$", " ", "\u{b}"),
            (r"^[\d.]$", ".", "٣"),
            (r"^[^\W_]$", "a", "é"),
            (r"^\D$", "é", "3"),
            (r"^[\W]$", "é", "a"),
            (r"^\bé|^a", "a", "é"),
            (r"^\Bé", "é", "a"),
            ("^[[:alpha:]]$", "a", "é"),
        ] {
            assert!(matches(pattern, ascii), "{pattern} {ascii}");
            assert!(!matches(pattern, other), "{pattern} {other}");
        }
        // Go folds the cases of a class as of a letter: the Kelvin sign is a K.
        assert!(matches(r"(?i)^\w$", "\u{212a}"));
        assert!(!matches(r"(?i)^\W$", "\u{212a}"));
    }

    #[test]
    fn other_characters_are_those_of_unicode() {
        for (pattern, text) in [
            ("^.$", "é"),
            ("^é+$", "éé"),
            (r"^\p{Greek}$", "λ"),
            ("(?i)^É$", "é"),
        ] {
            assert!(matches(pattern, text), "{pattern}");
        }
    }

    #[test]
    fn brackets_and_operators_in_a_class_are_characters() {
        for (pattern, text) in [
            (r"^[a[b]c]$", "[c]"),
            ("^[[]$", "["),
            ("^[]a]$", "]"),
            ("^[^]a]$", "b"),
            ("^[a&&b]$", "&"),
            (r"^[\w-.]$", "-"),
            ("^[+--]$", ","),
            ("^[a-]$", "-"),
            (r"^[\]\\]$", "\\"),
            (r"^\<a\>$", "<a>"),
            ("^[a^]$", "^"),
        ] {
            assert!(matches(pattern, text), "{pattern}");
        }
        assert!(!matches("^[a&&b]$", "c"));
    }

    #[test]
    fn invalid_patterns_stay_invalid() {
        for pattern in ["[", "[a", r"[A-\d]", r"\", "(", "(?<=x)y", "[z-a]", "[é"] {
            assert!(Regex::new(&rust_pattern(pattern)).is_err(), "{pattern}");
        }
    }

    #[test]
    fn ordinary_patterns_do_not_change() {
        for pattern in [
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            r"^(([^:/?#]+):)?[^\s]*\.x$",
            r"\x{41}\.\*\pL",
        ] {
            let text = rust_pattern(pattern).replace(r"\-", "-");
            assert_eq!(text, pattern.replace(r"\s", r"[\t\n\f\r ]"));
        }
    }
}
