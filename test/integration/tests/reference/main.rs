//! The pages of docs/reference, which are generated from the code. `cargo xtask generate` runs this suite with
//! `OLM_WRITE_REFERENCE=1` to write the pages. Without this variable, the suite fails if a page is stale.

mod api;
mod flags;
mod metrics;
mod texts;
mod upstream;

use std::fs;

use anyhow::Result;
use olm_harness::workspace;

const FOLDER: &str = "docs/reference";
const VARIABLE: &str = "OLM_WRITE_REFERENCE";

/// Returns the pages by file name.
fn pages() -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("api.md", api::page()?),
        ("conditions.md", texts::conditions()),
        ("events.md", texts::events()),
        ("flags.md", flags::page()?),
        ("metrics.md", metrics::page()),
    ])
}

/// Returns the beginning of a page.
fn head(title: &str, introduction: &str) -> String {
    format!(
        "# {title}\n\n<!-- Made by `cargo xtask generate` from the code. Do not edit. -->\n\n{introduction}\n"
    )
}

/// Returns a row of a table. A line break or a vertical bar would end a cell, so line breaks become spaces and bars are escaped.
fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells
        .iter()
        .map(|cell| {
            cell.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace('|', "\\|")
        })
        .collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the head of a table.
fn table(columns: &[&str]) -> String {
    row(columns) + &row(&vec!["---"; columns.len()])
}

/// Returns text in backticks; an empty text stays empty.
fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("`{text}`")
    }
}

#[test]
fn the_reference_is_fresh() {
    let folder = workspace::root().join(FOLDER);
    let pages = pages().unwrap();
    if std::env::var_os(VARIABLE).is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, page) in &pages {
            fs::write(folder.join(name), page).unwrap();
        }
    }
    let stale: Vec<&str> = pages
        .iter()
        .filter(|(name, page)| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(page))
        .map(|(name, _)| *name)
        .collect();
    assert!(
        stale.is_empty(),
        "stale in {FOLDER}: {stale:?}; run `cargo xtask generate` and commit the result"
    );
    let known: Vec<&str> = pages.iter().map(|(name, _)| *name).collect();
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(
            known.contains(&name.to_str().unwrap()),
            "nothing generates {FOLDER}/{name:?}"
        );
    }
}
