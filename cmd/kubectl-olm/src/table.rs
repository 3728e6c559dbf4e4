//! Tables for people, as kubectl prints them. Catalogs are foreign: control characters never reach a terminal.

use crate::style::{Paint, Style};

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<(String, Paint)>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(heading: &[&'static str]) -> Self {
        Self {
            heading: heading.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row in one colour.
    pub(crate) fn row<S: AsRef<str>>(&mut self, paint: Paint, cells: impl IntoIterator<Item = S>) {
        self.rows.push(
            cells
                .into_iter()
                .map(|cell| (clean(cell.as_ref()), paint))
                .collect(),
        );
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text, each line behind `indent`; columns are as wide as their widest cell.
    pub(crate) fn text(&self, style: Style, indent: &str) -> String {
        let mut lines: Vec<Vec<(String, Paint)>> = vec![
            self.heading
                .iter()
                .map(|title| ((*title).to_owned(), Paint::Bold))
                .collect(),
        ];
        lines.extend(self.rows.iter().cloned());
        let width = |column: usize| {
            lines
                .iter()
                .filter_map(|line| line.get(column))
                .map(|(cell, _)| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            text.push_str(indent);
            let last = line
                .iter()
                .rposition(|(cell, _)| !cell.is_empty())
                .unwrap_or_default();
            for ((index, (cell, paint)), width) in line.iter().enumerate().zip(&widths) {
                if index > last {
                    break;
                }
                text.push_str(&style.paint(*paint, cell));
                if index < last {
                    let gap = width.saturating_sub(cell.chars().count()) + 3;
                    text.extend(std::iter::repeat_n(' ', gap));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// `text` on one line, without characters that steer a terminal or turn the direction of writing.
pub(crate) fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.trim_end().chars().map(harmless).collect()
}

/// The first `limit` characters of the first line.
pub(crate) fn brief(text: &str, limit: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    if line.chars().count() <= limit {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(limit.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// What a description says first, within `limit` characters: headings, pictures and markup say little.
pub(crate) fn summary(text: &str, limit: usize) -> String {
    let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', '<', '!', '[', '=', '-', '*', '|']);
    let prose = text.lines().map(str::trim).find(says);
    brief(
        prose.unwrap_or_else(|| text.trim().trim_start_matches(['#', ' '])),
        limit,
    )
}

/// The first `limit` of `items`, and how many more there are.
pub(crate) fn list(items: &[String], limit: usize) -> String {
    let named = items.iter().take(limit).cloned().collect::<Vec<_>>().join(", ");
    match items.len() {
        count if count > limit => format!("{named} and {} more", count - limit),
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let mut table = Table::new(&["A", "B", "C"]);
        table.row(Paint::Plain, ["long cell", "x", ""]);
        table.row(Paint::Bad, ["é", "\u{1b}[31mred", "z"]);
        let text = table.text(Style::plain(), "  ");
        assert_eq!(
            text,
            "  A           B          C\n  long cell   x\n  é           \u{fffd}[31mred   z\n"
        );
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(brief("one two\nthree", 20), "one two");
        assert_eq!(brief("one two three", 8), "one two…");
        assert_eq!(summary("# Title\n\nSays it.", 20), "Says it.");
        assert_eq!(summary("## Title", 20), "Title");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()], 2), "a, b and 1 more");
    }
}
