//! Page of a plan: everything that the next change of an extension would change.

use maud::{Markup, html};

use super::tables::{facts, long, read, table};
use super::views::{Fact, TableView};
use crate::layout::{Medium, Place, page};
use crate::paths::extension_path;
use crate::text::shown;

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanView {
    /// Facts, the verdict among them.
    pub facts: Vec<Fact>,
    /// What changes, the gravest first.
    pub sections: Vec<TableView>,
}

/// Returns the page of the plan of an extension; a plan that cannot be made is the reason, as a sentence.
pub fn plan_page(extension: &str, plan: &Result<PlanView, String>) -> Markup {
    let root = Place::Plan.root();
    let title = format!("Plan of {extension}");
    let content = html! {
        h1 { (shown(&title)) }
        p class="ways" { a href={ (root) (extension_path(extension)) } { "The extension" } }
        (read(plan, |plan| html! {
            (facts(&plan.facts))
            @for section in &plan.sections {
                h2 { (long(&section.title)) }
                (table(section, "Nothing."))
            }
        }))
    };
    page(Medium::Live, Place::Plan, &title, &content)
}
