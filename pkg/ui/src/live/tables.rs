//! Tables, facts and choices as HTML.

use maud::{Markup, html};
use olm_status::overview::Mood;

use super::views::{ChoiceView, Fact, Row, TableView};
use crate::layout;
use crate::text::shown;

/// Maximum number of rows of a table.
const ROWS: usize = 1000;

/// Returns the class of a mood. Colours never say more than the words do.
pub(super) fn class(mood: Mood) -> Option<&'static str> {
    match mood {
        Mood::Good => Some("good"),
        Mood::Plain => None,
        Mood::Waiting => Some("waiting"),
        Mood::Bad => Some("bad"),
    }
}

/// Returns a table, or a sentence if it is empty.
pub(super) fn table(table: &TableView, empty: &str) -> Markup {
    let rows = html! { @for row in table.rows.iter().take(ROWS) { (self::row(row)) } };
    let heads: Vec<String> = table.heads.iter().map(|head| shown(head)).collect();
    let more = table.more + table.rows.len().saturating_sub(ROWS);
    html! {
        @if table.rows.is_empty() {
            p { (empty) }
        } @else {
            (layout::table(&shown(&table.title), &heads, &rows))
        }
        @if more > 0 { p { "and " (more) " more" } }
    }
}

fn row(row: &Row) -> Markup {
    let mut cells = row.cells.iter();
    html! {
        tr class=[class(row.mood)] {
            @if let Some(name) = cells.next() { th scope="row" { (shown(name)) } }
            @for cell in cells { td { (long(cell)) } }
        }
    }
}

/// Returns a text in full: messages say at their end what to do.
pub(super) fn long(text: &str) -> String {
    olm_text::printable(&olm_text::cut(text, 16 * 1024)).into_owned()
}

/// Returns facts as a list of terms.
pub(super) fn facts(facts: &[Fact]) -> Markup {
    html! {
        dl class="terms" {
            @for fact in facts.iter().filter(|fact| !fact.text.is_empty()) {
                div {
                    dt { (fact.name) }
                    dd class=[class(fact.mood)] { (long(&fact.text)) }
                }
            }
        }
    }
}

/// Returns a choice with its reasons.
pub(super) fn choice(choice: &ChoiceView) -> Markup {
    html! {
        (facts(&choice.facts))
        @if !choice.suggestion.is_empty() { p class="notice" { (long(&choice.suggestion)) } }
        @for note in &choice.notes { p { (long(note)) } }
        @for catalog in &choice.catalogs {
            h3 { (shown(&catalog.title)) }
            (table(catalog, "No bundle is named."))
        }
    }
}

/// Returns what was read, or a sentence that says why it could not be.
pub(super) fn read<T>(found: &Result<T, String>, show: impl Fn(&T) -> Markup) -> Markup {
    match found {
        Ok(found) => show(found),
        Err(reason) => html! { p class="notice" { "Not shown: " (long(reason)) } },
    }
}
