//! Values that pages show.

use olm_status::overview::Mood;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableView {
    /// Title.
    pub title: String,
    /// Heads of the columns.
    pub heads: Vec<String>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Number of rows that are left out.
    pub more: usize,
}

/// Row of a table: the first cell is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// How good it is.
    pub mood: Mood,
    /// Texts, one for each column.
    pub cells: Vec<String>,
}

/// A fact with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// How good it is.
    pub mood: Mood,
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// Why a bundle is chosen, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceView {
    /// The request and the answer.
    pub facts: Vec<Fact>,
    /// What becomes of the bundles of each catalog.
    pub catalogs: Vec<TableView>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Change of the request that gives another answer, as a sentence; empty if nothing has to change.
    pub suggestion: String,
}
