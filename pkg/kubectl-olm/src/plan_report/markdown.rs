//! Plan in Markdown, for the comment of a pull request.

use std::fmt::Write as _;

use olm_text::{counted, cut, printable};

use super::document::{Document, Section};

/// Maximum size of the text in bytes. GitHub accepts comments of 65,536 characters.
const LIMIT: usize = 64_000;
/// Maximum length of a value in bytes, before it is escaped.
const VALUE_LIMIT: usize = 400;
/// Size of the lines around the rows of a section: title, heading and the number of omitted rows.
const FRAME: usize = 300;

/// Returns the document as Markdown of at most [`LIMIT`] bytes. Rows that do not fit are omitted and counted.
pub(crate) fn markdown(document: &Document) -> String {
    let mut text = format!("### {}\n\n", escaped(&document.title));
    // Writing into a String cannot fail.
    let _ = writeln!(text, "**{}**\n", escaped(&document.verdict));
    for (key, value) in &document.facts {
        let _ = writeln!(text, "- {key}: {}", code(value));
    }
    let mut reserved = FRAME * document.sections.len();
    for section in &document.sections {
        reserved -= FRAME;
        let room = LIMIT.saturating_sub(text.len() + reserved + FRAME);
        write_section(&mut text, section, room);
    }
    text
}

/// Writes a section whose rows have at most `room` bytes.
fn write_section(text: &mut String, section: &Section, room: usize) {
    let _ = writeln!(text, "\n#### {}\n", section.title);
    let _ = writeln!(text, "| {} |", section.heading.join(" | "));
    let _ = writeln!(text, "|{}", " --- |".repeat(section.heading.len()));
    let (mut used, mut written) = (0, 0);
    for row in &section.rows {
        let cells: Vec<String> = row.iter().map(|cell| code(cell)).collect();
        let line = format!("| {} |\n", cells.join(" | "));
        if used + line.len() > room {
            break;
        }
        used += line.len();
        written += 1;
        text.push_str(&line);
    }
    let omitted = section.rows.len() - written + section.more;
    if omitted > 0 {
        let _ = writeln!(text, "\nand {}", counted(omitted, "more row"));
    }
}

/// Returns a value as code: no mention or link in it takes effect.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("<code>{}</code>", escaped(&cut(text, VALUE_LIMIT)))
}

/// Escapes text for a line of Markdown, inside and outside of tables.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '&' | '<' | '>' | '|' | '`' | '*' | '_' | '[' | ']' | '~' | '@' | '#' | '\\' | '$' | '!' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
