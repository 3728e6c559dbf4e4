//! Text of a plan: as a table, Markdown or HTML.
//!
//! [`Document`] is the content, and the only input of every format. Names and values are untrusted: each format escapes them by its
//! own rules.

mod document;
mod html;
mod markdown;

use std::fmt::Write as _;

use olm_plan::Plan;

pub(crate) use document::Document;

use crate::cli::Format;
use crate::style::{Paint, Style};
use crate::table::{Table, clean};

/// Returns the plan in a format for people.
pub(crate) fn text(plan: &Plan, format: Format, style: Style) -> String {
    let document = Document::new(plan);
    match format {
        Format::Markdown => markdown::markdown(&document),
        Format::Html => html::html(&document),
        Format::Table | Format::Wide | Format::Json | Format::Yaml => table(&document, style),
    }
}

fn table(document: &Document, style: Style) -> String {
    // Writing into a String cannot fail.
    let mut text = String::new();
    for (key, value) in &document.facts {
        let value = clean(value);
        let _ = writeln!(text, "{key:<11}{value}");
    }
    let line = style.paint(document.paint, &clean(&document.verdict));
    let _ = writeln!(text, "{:<11}{line}", "Verdict");
    for section in &document.sections {
        let _ = writeln!(text, "\n{}", style.paint(Paint::Bold, section.title));
        let mut table = Table::new(section.heading);
        for row in &section.rows {
            table.row(section.paint, row);
        }
        text.push_str(&table.text(style, "  "));
        if section.more > 0 {
            let _ = writeln!(text, "  and {} more", section.more);
        }
    }
    text
}

#[cfg(test)]
mod tests;
