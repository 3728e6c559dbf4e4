//! Small parts of an SVG text: numbers, escaped texts, groups.

use std::fmt::{self, Write as _};

use crate::misleads;

/// Number with at most one decimal.
#[derive(Clone, Copy)]
pub(super) struct N(pub(super) f64);

impl fmt::Display for N {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

/// Group of neighbouring elements with equal attributes, which are written once.
#[derive(Default)]
pub(super) struct Group {
    attributes: String,
}

impl Group {
    /// Opens a group for the next elements, unless the open one has these attributes.
    pub(super) fn of(&mut self, out: &mut String, attributes: &str) {
        if self.attributes != attributes {
            self.close(out);
            // Writing into a String cannot fail.
            let _ = writeln!(out, "<g {attributes}>");
            attributes.clone_into(&mut self.attributes);
        }
    }

    /// Closes the open group.
    pub(super) fn close(&mut self, out: &mut String) {
        if !self.attributes.is_empty() {
            out.push_str("</g>\n");
            self.attributes.clear();
        }
    }
}

/// Escapes text for XML; replaces characters that XML does not allow.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            c if misleads(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
