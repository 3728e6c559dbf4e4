//! Table of texts, the same on a terminal and on a page.

use crate::style::Paint;

/// Rows under heads.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Title.
    pub(crate) title: &'static str,
    /// Heads of the columns, with a capital first letter as on pages.
    pub(crate) heads: &'static [&'static str],
    /// Rows, one text for each column.
    pub(crate) rows: Vec<(Paint, Vec<String>)>,
}

impl Listing {
    /// Creates a table.
    pub(crate) fn new<const N: usize>(
        title: &'static str,
        heads: &'static [&'static str; N],
        rows: impl Iterator<Item = (Paint, [String; N])>,
    ) -> Self {
        Self {
            title,
            heads,
            rows: rows.map(|(paint, cells)| (paint, cells.into())).collect(),
        }
    }
}
