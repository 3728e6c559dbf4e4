//! Ranges of `spec.source.catalog.version`. The API server checks their length and a pattern, the controller a grammar. Each
//! side refuses some that the other accepts: the API server only longer ones.

use olm_api::schema::{VERSION_RANGE, VERSION_RANGE_LENGTH, VERSION_RANGE_REFUSED};
use olm_version::VersionRange;
use regex::RegexBuilder;

/// Path of the field.
const FIELD: &str = "spec.source.catalog.version";

/// Parses a range that both accept.
///
/// # Errors
/// A sentence with the refusing side and the reason.
pub(crate) fn read(text: &str) -> Result<VersionRange, String> {
    match (text.parse::<VersionRange>(), refusal(text)) {
        (Ok(range), None) => Ok(range),
        (Ok(_), Some(refusal)) => Err(format!(
            "range {text:?} parses, but the API server refuses it in {FIELD}: {refusal}; write a shorter range, such as \
             \">=1.2.0 <2.0.0\""
        )),
        (Err(error), None) => Err(format!(
            "range {text:?} is malformed: {error}; the API server admits it in {FIELD}, but nothing is resolved with it"
        )),
        (Err(error), Some(refusal)) => Err(format!(
            "range {text:?} is malformed: {error}; the API server refuses it in {FIELD}, too: {refusal}"
        )),
    }
}

/// Parses the value of a flag; an empty value means no range.
///
/// # Errors
/// Like [`read`].
pub(crate) fn flag(text: &str) -> Result<String, String> {
    if !text.is_empty() {
        read(text)?;
    }
    Ok(text.to_owned())
}

/// Returns the reason why the API server refuses the range; none if it accepts the range.
fn refusal(text: &str) -> Option<String> {
    let length = text.chars().count();
    if length > VERSION_RANGE_LENGTH {
        return Some(format!(
            "it has {length} characters, at most {VERSION_RANGE_LENGTH} are allowed"
        ));
    }
    // The API server's classes of characters are ASCII.
    let pattern = RegexBuilder::new(VERSION_RANGE).unicode(false).build();
    let admitted = pattern.is_ok_and(|pattern| pattern.is_match(text));
    (!admitted).then(|| VERSION_RANGE_REFUSED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::io::Write as _;

    #[test]
    fn the_refusing_side_is_named() {
        let said = |text: &str| read(text).err().unwrap_or_default();
        for admitted in [
            ">=1.2, <2 || ~3.1",
            "1.x",
            "*",
            "^1.2.3-rc.1",
            ">=1.11, <=1.12.*",
            "<1 || *",
            "1.2 - 2.3",
        ] {
            assert_eq!(said(admitted), "");
        }
        let long = said(&format!(">={}.0.0, <2.0.0 || >3.0.0", "1".repeat(50)));
        assert!(
            long.contains("too: it has 74 characters, at most 64 are allowed"),
            "{long}"
        );
        let long = said(&[">=1.0.0"; 9].join(", "));
        assert!(
            long.contains("parses, but the API server refuses it") && long.contains("it has 79 characters"),
            "{long}"
        );
        let zeros = said("1.2.3-01");
        assert!(
            zeros.contains("is malformed: constraint parser error; the API server admits it"),
            "{zeros}"
        );
        let neither = said(">=a");
        assert!(
            neither.contains("improper constraint: \">=a\"; the API server refuses it"),
            "{neither}"
        );
        assert_eq!(flag("").as_deref(), Ok(""));
        assert!(flag(">=a").is_err());
    }

    #[test]
    fn the_pattern_admits_every_range_that_parses() {
        let Some(vectors) = std::env::var_os("OLM_VECTORS").map(std::path::PathBuf::from) else {
            writeln!(
                std::io::stderr(),
                "SKIPPED: OLM_VECTORS is not set, so no recorded answer was compared"
            )
            .unwrap();
            return;
        };
        let text = std::fs::read_to_string(vectors.join("api-validation/version-field.jsonl")).unwrap();
        let mut compared = 0;
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let range = row["range"].as_str().unwrap();
            let (accepted, parses) = (row["accepted"] == true, row["mastermindsParses"] == true);
            let short = range.len() <= VERSION_RANGE_LENGTH;
            // Upstream's pattern refuses some ranges that its controller would parse.
            assert_eq!(refusal(range).is_none(), accepted || parses && short, "{range:?}");
            if short {
                assert_eq!(range.parse::<VersionRange>().is_ok(), parses, "{range:?}");
            }
            compared += 1;
        }
        assert!(compared > 1000, "{compared} ranges were compared");
    }
}
