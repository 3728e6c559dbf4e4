//! Compares the code that a report covers with the code of the checkout.

use std::collections::BTreeMap;

use olm_proof::Ran;

use super::part::Part;
use crate::code::{self, Checkout, Files};

/// Maximum number of changed folders that the page names for a report.
const MOST: usize = 3;

/// Relation of a report to the code in the checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// The code that the part covers is the same.
    Same,
    /// The code in these folders differs.
    Changed(Vec<String>),
    /// The code of the report is unknown.
    Unknown,
}

impl Holds {
    /// Compares the digests of a report's code with those of the checkout, both by folder.
    fn compare(then: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Self {
        if then.is_empty() {
            return Self::Unknown;
        }
        let names = then
            .keys()
            .chain(now.keys().filter(|name| !then.contains_key(*name)));
        let mut changed: Vec<String> = names
            .filter(|name| then.get(*name) != now.get(*name))
            .cloned()
            .collect();
        changed.sort();
        if changed.is_empty() {
            Self::Same
        } else {
            Self::Changed(changed)
        }
    }

    /// Compares the code of a report with the checkout. If the report has no digests, its code is that of its commit.
    pub(super) fn of(part: &Part, ran: &Ran, checkout: &Checkout) -> anyhow::Result<Self> {
        let then = if ran.code.is_empty() {
            let covered = part.covered(&checkout.packages)?;
            Files::at(&ran.commit).map_or_else(|_| BTreeMap::new(), |files| code::digests(&files, &covered))
        } else {
            ran.code.clone()
        };
        Ok(Self::compare(&then, &part.digests(checkout)?))
    }

    /// Returns the text for the page.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Same => "this code".to_owned(),
            Self::Changed(folders) => {
                let shown = folders.get(..MOST).unwrap_or(folders).join(", ");
                let more = folders.len().saturating_sub(MOST);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("changed since: {shown}{more}")
            }
            Self::Unknown => "not known".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_while_every_folder_is_the_same() {
        let digests = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            owned.collect()
        };
        let then = digests(&[("a", "1"), ("b", "2"), ("d", "4")]);
        assert_eq!(Holds::compare(&then, &then), Holds::Same);
        let now = digests(&[("a", "1"), ("b", "3"), ("c", "3")]);
        let changed = Holds::compare(&then, &now);
        assert_eq!(changed.text(), "changed since: b, c, d");
        let all = digests(&[("e", "1")]);
        assert_eq!(
            Holds::compare(&then, &all).text(),
            "changed since: a, b, d and 1 more"
        );
        assert_eq!(Holds::compare(&BTreeMap::new(), &now), Holds::Unknown);
    }
}
