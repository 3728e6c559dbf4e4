//! Pages about the types and reasons of conditions, and about the reasons of events.

use olm_api::condition::{reasons, types};
use olm_api::event::Reason;

use crate::{code, head, row, table};

pub(crate) fn events() -> String {
    let mut page = head(
        "Events",
        "Reasons of events. [status.md](../status.md#events) lists them by object and type; a ClusterObjectSet also has events with \
         the reasons of its condition `Progressing`.",
    );
    page += "\n";
    page += &rows(
        "reason",
        Reason::ALL
            .iter()
            .map(|reason| (reason.as_str(), reason.meaning())),
    );
    page
}

pub(crate) fn conditions() -> String {
    let mut page = head(
        "Conditions",
        "Types and reasons of conditions by kind. [status.md](../status.md) explains how to wait for them.",
    );
    macro_rules! kind {
        ($kind:literal, $name:ident) => {
            page += &format!("\n## {}\n\n", $kind);
            page += &rows(
                "type",
                types::$name::ALL
                    .iter()
                    .map(|it| (it.as_str(), it.meaning())),
            );
            page += "\n";
            page += &rows(
                "reason",
                reasons::$name::ALL
                    .iter()
                    .map(|it| (it.as_str(), it.meaning())),
            );
        };
    }
    kind!("ClusterCatalog", Catalog);
    kind!("ClusterExtension", Extension);
    kind!("ClusterObjectSet", ObjectSet);
    page
}

fn rows<'a>(what: &str, texts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows: String = texts
        .map(|(name, meaning)| row(&[&code(name), meaning]))
        .collect();
    table(&[what, "meaning"]) + &rows
}
