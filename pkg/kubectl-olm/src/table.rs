//! Tables like kubectl's. Text of catalogs is untrusted: control characters never reach a terminal.

mod wrap;

use olm_text::changes_direction;

use crate::observed::Listing;
use crate::style::{Paint, Style};

/// Spaces between two columns.
const GAP: usize = 3;

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<(String, Paint)>>,
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new(heading: &[&'static str]) -> Self {
        Self {
            heading: heading.iter().map(|title| (*title).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Creates the table of a listing, with its heads in capitals.
    pub(crate) fn of(listing: &Listing) -> Self {
        let mut table = Self {
            heading: listing.heads.iter().map(|head| head.to_uppercase()).collect(),
            rows: Vec::new(),
        };
        for (paint, cells) in &listing.rows {
            table.row(*paint, cells);
        }
        table
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

    /// Returns true if the table has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the text, each line after `indent`. Columns are as wide as their widest cell; on a narrow terminal, the
    /// widest cells wrap.
    pub(crate) fn text(&self, style: Style, indent: &str) -> String {
        let mut lines: Vec<Vec<(String, Paint)>> = vec![
            self.heading
                .iter()
                .map(|title| (title.clone(), Paint::Bold))
                .collect(),
        ];
        lines.extend(self.rows.iter().cloned());
        let mut widths = self.widths(&lines, |cell| cell.chars().count());
        if let Some(width) = style.width() {
            let words = |cell: &str| cell.split(' ').map(|word| word.chars().count()).max();
            let least = self.widths(&lines, |cell| words(cell).unwrap_or_default());
            let gaps = GAP * widths.len().saturating_sub(1);
            wrap::shrink(&mut widths, &least, width.saturating_sub(indent.len() + gaps));
        }
        let mut text = String::new();
        for line in &lines {
            let cells: Vec<(Vec<String>, Paint)> = line
                .iter()
                .zip(&widths)
                .map(|((cell, paint), width)| (wrap::lines(cell, *width), *paint))
                .collect();
            let height = cells
                .iter()
                .map(|(parts, _)| parts.len())
                .max()
                .unwrap_or_default();
            for part in 0..height {
                let parts = cells
                    .iter()
                    .map(|(parts, paint)| (parts.get(part).map_or("", String::as_str), *paint));
                write_line(&mut text, &parts.collect::<Vec<_>>(), &widths, style, indent);
            }
        }
        text
    }

    /// Returns the maximum `size` of the cells of each column.
    fn widths(&self, lines: &[Vec<(String, Paint)>], size: impl Fn(&str) -> usize) -> Vec<usize> {
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|(cell, _)| size(cell)).max().unwrap_or_default()
        };
        (0..self.heading.len()).map(width).collect()
    }
}

/// Writes one line without trailing spaces.
fn write_line(text: &mut String, cells: &[(&str, Paint)], widths: &[usize], style: Style, indent: &str) {
    text.push_str(indent);
    let last = cells
        .iter()
        .rposition(|(cell, _)| !cell.is_empty())
        .unwrap_or_default();
    for ((index, (cell, paint)), width) in cells.iter().enumerate().zip(widths).take(last + 1) {
        text.push_str(&style.paint(*paint, cell));
        if index < last {
            let gap = width.saturating_sub(cell.chars().count()) + GAP;
            text.extend(std::iter::repeat_n(' ', gap));
        }
    }
    text.push('\n');
}

/// Returns `text` on one line, without control characters and marks of writing direction.
pub(crate) fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() || changes_direction(c) => '\u{fffd}',
        c => c,
    };
    text.trim_end().chars().map(harmless).collect()
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
    fn cells_wrap_on_a_terminal_only() {
        let message = "all of these words matter, those at the end most of all";
        let mut table = Table::new(&["NAME", "MESSAGE", "LAST"]);
        table.row(Paint::Plain, ["kite-with-a-long-name", message, "z"]);
        let narrow = table.text(Style::of_width(50), "");
        assert_eq!(
            narrow,
            "NAME                    MESSAGE               LAST\n\
             kite-with-a-long-name   all of these words    z\n\
             \u{20}                       matter, those at\n\
             \u{20}                       the end most of all\n"
        );
        assert_eq!(
            table.text(Style::of_width(200), ""),
            table.text(Style::plain(), "")
        );
        assert!(table.text(Style::plain(), "").contains(message));
    }
}
