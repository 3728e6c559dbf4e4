//! Quoting like Go's `%q`, as in upstream's messages.

use std::fmt::Write as _;

/// Returns `text` in double quotes, with unprintable characters escaped like in Go.
///
/// ```
/// assert_eq!(olm_version::go_quote("a\"\u{a0}"), "\"a\\\"\\u00a0\"");
/// ```
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out.push('"');
    out
}

fn push_escaped(out: &mut String, c: char) {
    let short = match c {
        '"' => Some('"'),
        '\\' => Some('\\'),
        '\u{7}' => Some('a'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{b}' => Some('v'),
        _ => None,
    };
    if let Some(letter) = short {
        out.push('\\');
        out.push(letter);
        return;
    }
    let code = u32::from(c);
    let printable = match code {
        0x20..=0x7e => true,
        0..=0x7f => false,
        // The debug form escapes what has no glyph; its escape starts with a backslash.
        _ => c.escape_debug().next() != Some('\\'),
    };
    // Writing to a String cannot fail.
    let _ = match code {
        _ if printable => out.write_char(c),
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::go_quote;

    #[test]
    fn escapes_what_does_not_print() {
        assert_eq!(go_quote("1.2.3\0"), r#""1.2.3\x00""#);
        assert_eq!(go_quote("é１\u{2028}\u{1f600}\n"), "\"é１\\u2028\u{1f600}\\n\"");
    }
}
