//! Values of the cluster as tables of pages.

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use olm_api::ClusterObjectSet;
use olm_status::overview::Mood;
use olm_ui::live::{ChoiceView, ClusterUpgradeView, Fact, PlanView, Row, TableView};

use crate::observed::{CatalogChoice, ClusterUpgrade, EventRow, Listing, RevisionRow, Tree};
use crate::plan_report::Document;
use crate::resolve_report::ResolveReport;
use crate::style::{Paint, Style};

impl From<Paint> for Mood {
    fn from(paint: Paint) -> Self {
        match paint {
            Paint::Good => Self::Good,
            Paint::Warn => Self::Waiting,
            Paint::Bad => Self::Bad,
            Paint::Plain | Paint::Bold | Paint::Dim => Self::Plain,
        }
    }
}

fn row<const N: usize>(mood: Mood, cells: [&str; N]) -> Row {
    Row {
        mood,
        cells: cells.map(ToOwned::to_owned).into(),
    }
}

fn table(title: &str, heads: &[&str], rows: Vec<Row>) -> TableView {
    TableView {
        title: title.to_owned(),
        heads: heads.iter().map(|head| (*head).to_owned()).collect(),
        rows,
        more: 0,
    }
}

/// Returns the conditions as a table.
pub(super) fn conditions(conditions: &[Condition]) -> TableView {
    let rows = conditions.iter().map(|condition| {
        let since = condition.last_transition_time.0.to_string();
        let cells = [
            condition.type_.as_str(),
            &condition.status,
            &condition.reason,
            &condition.message,
            &since,
        ];
        row(Mood::Plain, cells)
    });
    let heads = ["Condition", "Status", "Reason", "Message", "Since"];
    table("Conditions of the extension", &heads, rows.collect())
}

/// Returns a table of objects for each phase.
pub(super) fn phases(tree: &Tree) -> Vec<TableView> {
    let phases = tree.phases.iter().map(|(name, objects)| {
        let rows = objects
            .iter()
            .map(|object| row(object.mood, [&object.title(), object.health, &object.message]));
        table(name, &["Object", "Health", "Reason"], rows.collect())
    });
    phases.collect()
}

/// Returns the revisions, newest first.
pub(super) fn revisions(sets: &[ClusterObjectSet]) -> TableView {
    let rows = sets.iter().rev().map(RevisionRow::new).map(|found| {
        let number = found.number.to_string();
        let cells = [
            number.as_str(),
            found.version.as_str(),
            &found.bundle,
            &found.catalog,
            &found.state,
            &found.created,
        ];
        row(found.mood, cells)
    });
    let heads = ["Revision", "Version", "Bundle", "Catalog", "State", "Created"];
    table("Revisions, newest first", &heads, rows.collect())
}

/// Returns the events, newest first.
pub(super) fn events(events: &[Event]) -> TableView {
    let rows = events.iter().rev().map(EventRow::new).map(|event| {
        let count = event.count.to_string();
        let cells = [
            event.seen.as_str(),
            event.type_,
            event.reason,
            event.object,
            event.note,
            &count,
        ];
        row(event.mood, cells)
    });
    let heads = ["Last seen", "Type", "Reason", "Object", "Note", "Times"];
    table("Events, newest first", &heads, rows.collect())
}

/// Returns a resolution with its reasons.
pub(super) fn choice(report: &ResolveReport) -> ChoiceView {
    let explanation = report.explanation();
    let catalogs = CatalogChoice::of(explanation, false, |_| true);
    ChoiceView {
        facts: facts(report.facts()),
        catalogs: catalogs.iter().map(catalog).collect(),
        notes: explanation.notes.iter().map(|note| format!("{note}.")).collect(),
        suggestion: report.suggestion_text(None, Style::plain()).trim().to_owned(),
    }
}

fn catalog(choice: &CatalogChoice) -> TableView {
    TableView {
        title: format!(
            "Catalog {} (priority {}): {}",
            choice.name, choice.priority, choice.outcome.1
        ),
        more: choice.more,
        ..listing(&choice.candidates)
    }
}

/// Returns the table of a listing.
fn listing(listing: &Listing) -> TableView {
    let rows = listing.rows.iter().map(|(paint, cells)| Row {
        mood: (*paint).into(),
        cells: cells.clone(),
    });
    table(listing.title, listing.heads, rows.collect())
}

fn facts(facts: Vec<(Paint, &'static str, String)>) -> Vec<Fact> {
    let facts = facts.into_iter().map(|(paint, name, text)| Fact {
        mood: paint.into(),
        name,
        text,
    });
    facts.collect()
}

/// Returns a plan.
pub(super) fn plan(document: Document) -> PlanView {
    let verdict = (document.paint, "Verdict", document.verdict);
    let plain = document
        .facts
        .into_iter()
        .map(|(name, text)| (Paint::Plain, name, text));
    let sections = document.sections.into_iter().map(|section| {
        let mood = Mood::from(section.paint);
        TableView {
            title: section.title.to_owned(),
            heads: section.heading.iter().map(|head| capitalised(head)).collect(),
            rows: section
                .rows
                .into_iter()
                .map(|cells| Row { mood, cells })
                .collect(),
            more: section.more,
        }
    });
    PlanView {
        facts: facts(std::iter::once(verdict).chain(plain).collect()),
        sections: sections.collect(),
    }
}

/// Returns the head of a column as pages write it: the tables of commands have capitals only.
fn capitalised(head: &str) -> String {
    let words = head.split(' ').enumerate().map(|(place, word)| {
        let kept = match word {
            "API" | "CRD" => word.len(),
            _ => usize::from(place == 0),
        };
        let (first, rest) = word.split_at_checked(kept).unwrap_or((word, ""));
        format!("{first}{}", rest.to_lowercase())
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns what an upgrade of the cluster means.
pub(super) fn cluster_upgrade(upgrade: &ClusterUpgrade) -> ClusterUpgradeView {
    let unchecked = upgrade.waiting.unchecked.iter();
    let unchecked = unchecked.map(|sentence| format!("Not checked: {sentence}"));
    ClusterUpgradeView {
        current: upgrade.current.to_string(),
        target: upgrade.target.to_string(),
        free: upgrade.is_free(),
        tables: vec![
            listing(&upgrade.blocker_listing()),
            listing(&upgrade.removed_listing()),
            listing(&upgrade.waiting_listing()),
        ],
        remarks: upgrade.errors.iter().cloned().chain(unchecked).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::capitalised;

    #[test]
    fn heads_of_commands_become_heads_of_pages() {
        for (head, on_page) in [
            ("API VERSION", "API version"),
            ("CRD", "CRD"),
            ("HOW", "How"),
            ("OBJECT", "Object"),
        ] {
            assert_eq!(capitalised(head), on_page);
        }
    }
}
