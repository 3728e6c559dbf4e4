//! Untrusted text in messages: bounded, and without control characters.

use std::borrow::Cow;

/// Mark at the end of a text that was cut.
const CUT: &str = "…";

/// Returns `text` with at most `limit` bytes; a longer text is cut at a character and ends in `…`.
#[must_use]
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let start = head(text, limit.saturating_sub(CUT.len()));
    Cow::Owned(format!("{start}{CUT}"))
}

/// Returns the start of `text`, cut at a character: at most `limit` bytes.
#[must_use]
pub fn head(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
}

/// Returns `text` with every control character but line feed and tab, and every character that changes the direction of
/// writing, as its escape (`\u{1b}`).
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_control(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Returns an untrusted name in quotes, escaped and cut to about `limit` bytes.
#[must_use]
pub fn quoted(text: &str, limit: usize) -> String {
    let shown = cut(text, limit);
    let plain: String = shown
        .chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .collect();
    format!("\"{}\"", printable(&plain))
}

/// Returns true for control characters, except line feed and tab, and for characters that change the writing direction.
fn is_control(character: char) -> bool {
    changes_direction(character) || character.is_control() && !matches!(character, '\n' | '\t')
}

/// Returns true for characters that change the writing direction, and so can make text look like another one.
#[must_use]
pub fn changes_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("ääää", 7), "ää…");
        assert_eq!(cut("ä", 1), "…");
    }

    #[test]
    fn terminals_do_not_act_on_foreign_text() {
        assert_eq!(printable("two\nlines\tof ä"), "two\nlines\tof ä");
        assert_eq!(
            printable("a\x1b[31m\0b\r\u{202e}"),
            "a\\u{1b}[31m\\u{0}b\\u{d}\\u{202e}"
        );
        assert_eq!(quoted("a\x1b[31m\n\0b", 100), "\"a\\u{1b}[31m \\u{0}b\"");
        assert_eq!(quoted(&"x".repeat(200), 13), "\"xxxxxxxxxx…\"");
    }
}
