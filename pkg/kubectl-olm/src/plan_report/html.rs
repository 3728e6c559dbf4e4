//! Plan as an HTML page without scripts and external resources.

use std::fmt::Write as _;

use olm_text::printable;

use super::document::{Document, Section};
use crate::style::Paint;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;color:#1f2937;margin:2em auto;max-width:80em;padding:0 1em}\
    table{border-collapse:collapse}td,th{border:1px solid #e2e8f0;padding:.2em .6em;text-align:left;vertical-align:top;\
    overflow-wrap:anywhere}th{background:#f8fafc}code,td{font-family:ui-monospace,monospace;font-size:12px}\
    .bad{color:#b91c1c}.warn{color:#b45309}.good{color:#15803d}";

/// Returns the document as HTML.
pub(crate) fn html(document: &Document) -> String {
    let title = escaped(&document.title);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body>\n<h1>{title}</h1>\n<p class=\"{}\"><strong>{}</strong></p>\n<table>\n",
        class(document.paint),
        escaped(&document.verdict)
    );
    for (key, value) in &document.facts {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "<tr><th>{key}</th><td>{}</td></tr>", escaped(value));
    }
    text.push_str("</table>\n");
    for section in &document.sections {
        write_section(&mut text, section);
    }
    text.push_str("</body>\n</html>\n");
    text
}

fn write_section(text: &mut String, section: &Section) {
    let _ = writeln!(
        text,
        "<h2>{}</h2>\n<table class=\"{}\">",
        escaped(section.title),
        class(section.paint)
    );
    let heads: Vec<String> = section
        .heading
        .iter()
        .map(|head| format!("<th>{head}</th>"))
        .collect();
    let _ = writeln!(text, "<tr>{}</tr>", heads.concat());
    for row in &section.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| format!("<td>{}</td>", escaped(cell)))
            .collect();
        let _ = writeln!(text, "<tr>{}</tr>", cells.concat());
    }
    text.push_str("</table>\n");
    if section.more > 0 {
        let _ = writeln!(text, "<p>and {} more</p>", section.more);
    }
}

fn class(paint: Paint) -> &'static str {
    match paint {
        Paint::Good => "good",
        Paint::Warn => "warn",
        Paint::Bad => "bad",
        Paint::Plain | Paint::Bold | Paint::Dim => "plain",
    }
}

/// Escapes text for elements and attributes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
