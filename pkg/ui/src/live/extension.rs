//! Page of one extension.

use maud::{Markup, html};
use olm_status::overview::{Mood, Overview};

use super::tables::{choice, class, facts, long, read, table};
use super::views::{ChoiceView, Fact, TableView};
use super::what_if::WhatIf;
use crate::layout::{Medium, Place, page};
use crate::paths::{package_path, plan_path};
use crate::text::shown;

/// An extension with what can be read about it; a part that cannot be read is the reason, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionView {
    /// What people see first.
    pub overview: Overview,
    /// Its conditions.
    pub conditions: TableView,
    /// The phases of its newest revision, each with its objects.
    pub phases: Result<Vec<TableView>, String>,
    /// Its revisions.
    pub revisions: Result<TableView, String>,
    /// Its events.
    pub events: Result<TableView, String>,
    /// Why this version.
    pub choice: Result<ChoiceView, String>,
    /// Its request, for other answers; none without a catalog source.
    pub request: Option<WhatIf>,
}

/// Returns the page of an extension.
pub fn extension_page(view: &ExtensionView) -> Markup {
    let overview = &view.overview;
    let root = Place::Extension.root();
    let content = html! {
        article {
            div class="head" {
                h1 { (shown(&overview.name)) }
                strong class=[class(overview.state.mood)] { (shown(&overview.state.word)) }
            }
            @for remark in &overview.remarks {
                p class="notice" { strong { (shown(&remark.about)) ". " } (long(&remark.message)) }
            }
            (facts(&first(overview)))
            p class="ways" {
                @if !overview.catalog.is_empty() {
                    a href={ (root) (package_path(&overview.catalog, &overview.package)) } { "The package and its upgrades" }
                }
                @if let Some(request) = &view.request {
                    a href={ (root) "what-if.html?" (request.query()) } { "What if?" }
                    a href={ (root) (plan_path(&overview.name)) } { "What would change: the plan" }
                }
            }
            section aria-labelledby="objects" {
                h2 id="objects" { "Objects" }
                (read(&view.phases, |phases| phases_of(phases)))
            }
            section aria-labelledby="conditions" {
                h2 id="conditions" { "Conditions" }
                (table(&view.conditions, "The controller has not reported yet."))
            }
            section aria-labelledby="choice" {
                h2 id="choice" { "Why this version" }
                (read(&view.choice, choice))
            }
            section aria-labelledby="revisions" {
                h2 id="revisions" { "Revisions" }
                (read(&view.revisions, |revisions| table(revisions, "There is no revision.")))
            }
            section aria-labelledby="events" {
                h2 id="events" { "Events" }
                (read(&view.events, |events| table(events, "There are no events.")))
            }
        }
    };
    page(Medium::Live, Place::Extension, &overview.name, &content)
}

fn first(overview: &Overview) -> Vec<Fact> {
    let fact = |name, text: &str| Fact {
        mood: Mood::Plain,
        name,
        text: text.to_owned(),
    };
    vec![
        fact("Package", &overview.package),
        fact("Version", overview.version.as_str()),
        fact("Bundle", &overview.bundle),
        fact("Catalog", &overview.catalog),
        fact("Namespace", &overview.namespace),
        fact("Held back", &overview.held_back),
    ]
}

/// Returns the objects as a tree: a list of phases, each open if something in it is not healthy.
fn phases_of(phases: &[TableView]) -> Markup {
    html! {
        @if phases.is_empty() { p { "The revision has no object." } }
        ol class="phases" {
            @for phase in phases {
                @let healthy = phase.rows.iter().filter(|row| row.mood == Mood::Good).count();
                li {
                    details id={ "phase-" (shown(&phase.title)) } open[healthy < phase.rows.len()] {
                        summary { (shown(&phase.title)) ": " (healthy) " of " (phase.rows.len()) " healthy" }
                        (table(phase, "The phase has no object."))
                    }
                }
            }
        }
    }
}
