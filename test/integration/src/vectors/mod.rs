//! Vectors: recorded real inputs with upstream's answers, which are compared with this project's answers.
//!
//! A folder of vectors has one file or folder for each kind of vectors. Any of them may be absent or have only some of the cases.
//! Every kind returns a [`Report`]. `docs/deviations.md` lists the cases with intended deviations ([`deviations`]). A listed case
//! that does not deviate is also wrong, so that the list stays current.

pub mod canonical;
mod catalogs;
mod content;
pub mod crdsafety;
pub mod deviations;
pub mod graphql;
mod mended;
pub mod metas;
pub mod render;
pub mod resolution;
pub mod revision;
pub mod skip_ranges;
pub mod version_ranges;

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Write as _};
use std::path::{Path, PathBuf};

/// Results of one kind of vectors.
#[derive(Debug, Default)]
pub struct Report {
    /// The kind.
    pub kind: &'static str,
    /// Number of cases.
    pub cases: usize,
    /// Number of cases with upstream's answer.
    pub equal: usize,
    /// Number of cases whose answer deviates as listed.
    pub deviating: usize,
    /// A line for each case that is unreadable or has a wrong answer.
    pub wrong: Vec<String>,
    /// Number of skipped cases, by the missing input.
    pub skipped: BTreeMap<String, usize>,
}

/// A kind of vectors.
pub struct Kind {
    /// Name in tables.
    pub name: &'static str,
    /// File or folder with the cases, in the folder of vectors.
    pub path: &'static str,
    /// Runs the cases.
    pub run: fn(&Path) -> Report,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "version-ranges",
        path: "version-ranges.jsonl",
        run: version_ranges::run,
    },
    Kind {
        name: "skip-ranges",
        path: "skip-ranges.jsonl",
        run: skip_ranges::run,
    },
    Kind {
        name: "canonical",
        path: "metas.jsonl",
        run: canonical::run,
    },
    Kind {
        name: "content-api",
        path: "metas.jsonl",
        run: metas::run,
    },
    Kind {
        name: "graphql",
        path: "metas.jsonl",
        run: graphql::run,
    },
    Kind {
        name: "resolution",
        path: "resolution.jsonl",
        run: resolution::run,
    },
    Kind {
        name: "render",
        path: "render",
        run: render::run,
    },
    Kind {
        name: "revision",
        path: "render",
        run: revision::run,
    },
    Kind {
        name: "crdsafety",
        path: "crdsafety.jsonl",
        run: crdsafety::run,
    },
    Kind {
        name: "crdsafety-upstream",
        path: "crdsafety.jsonl",
        run: crdsafety::run_upstream,
    },
    Kind {
        name: crate::api_validation::KIND,
        path: crate::api_validation::KIND,
        run: crate::api_validation::run,
    },
    Kind {
        name: "resolution-upstream",
        path: "resolution.jsonl",
        run: resolution::run_upstream,
    },
];

/// Runs all kinds that `dir` has, except the one that needs an API server. That kind has its own test.
pub fn run_all(dir: &Path) -> Vec<Report> {
    KINDS
        .iter()
        .filter(|kind| kind.name != crate::api_validation::KIND && dir.join(kind.path).exists())
        .map(|kind| (kind.run)(dir))
        .collect()
}

/// Says what a test skips, and why, past the test runner's capture. `cargo xtask test` counts the test as skipped.
pub fn skipped(reason: &str) {
    let _ = std::io::stderr().write_all(format!("SKIPPED: {reason}\n").as_bytes());
}

/// Returns the folder of vectors in `OLM_VECTORS`. Without it, says that `what` is skipped.
pub fn folder(what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("OLM_VECTORS").map(PathBuf::from);
    if folder.is_none() {
        skipped(&format!("OLM_VECTORS is not set, so {what}"));
    }
    folder
}

impl Report {
    /// Returns an empty report of `kind`.
    pub fn new(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Counts a case. `difference` is the difference from upstream's answer, if any.
    pub fn count(&mut self, difference: Option<String>) {
        self.cases += 1;
        match difference {
            None => self.equal += 1,
            Some(difference) => self.wrong.push(difference),
        }
    }

    /// Counts a case that may be listed as a deviation. `ours` is the actual answer, and `stated` is the listed one.
    pub fn count_listed(&mut self, id: &str, difference: Option<String>, ours: &str, stated: Option<&str>) {
        match (difference, stated) {
            (difference, None) => self.count(difference.map(|text| format!("{id}: {text}"))),
            (Some(_), Some(stated)) if stated == ours => {
                self.cases += 1;
                self.deviating += 1;
            }
            (None, Some(_)) => self.count(Some(format!("{id}: listed as a deviation, but equal"))),
            (Some(text), Some(stated)) => {
                self.count(Some(format!(
                    "{id}: listed as {stated:?}, ours is {ours:?}: {text}"
                )));
            }
        }
    }

    /// Counts a case that cannot run without `missing`.
    pub fn skip(&mut self, missing: impl Into<String>) {
        *self.skipped.entry(missing.into()).or_default() += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<24} {:>7} {:>7} {:>10} {:>6}",
            self.kind,
            self.cases,
            self.equal,
            self.deviating,
            self.wrong.len()
        )
    }
}

/// Reads a file with one JSON value per line. An invalid line counts as a wrong case.
pub(crate) fn rows<T: DeserializeOwned>(path: &Path, report: &mut Report) -> Vec<T> {
    let file = match std::fs::File::open(path) {
        Ok(file) => std::io::BufReader::new(file),
        Err(error) => {
            report
                .wrong
                .push(format!("cannot open {}: {error}", path.display()));
            return Vec::new();
        }
    };
    let mut rows = Vec::new();
    for (number, line) in file.lines().enumerate() {
        let row = line
            .map_err(anyhow::Error::from)
            .and_then(|line| Ok(serde_json::from_str(&line)?));
        match row {
            Ok(row) => rows.push(row),
            Err(error) => report
                .wrong
                .push(format!("{}:{}: {error}", path.display(), number + 1)),
        }
    }
    rows
}
