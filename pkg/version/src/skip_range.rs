//! Range grammar of `skipRange` in a channel entry.
//!
//! A range consists of groups joined by `||`; a group consists of comparators separated by spaces. The parser has the
//! same results as upstream's, also for its peculiarities: a token of one character is dropped, a space after `>`, `<`
//! or `=` does not separate, `x` is a wildcard only in the last component, a comma never separates, and pre-releases
//! are compared like other versions.

use crate::error::ParseError;
use crate::go_quote;
use crate::parse::parse_version;
use semver::Version;
use std::cmp::Ordering;
use std::str::FromStr;

/// A range of versions, as in `olm.skipRange`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipRange {
    /// Alternatives: all comparators of one group must match.
    groups: Vec<Vec<Comparator>>,
}

/// Reason why a range cannot be parsed. Terminal; upstream ignores such a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkipRangeError {
    /// The text before the first `||` is empty.
    #[error("First element in range is '||'")]
    NothingBefore,
    /// The text after the last `||` is empty, or the whole text is.
    #[error("Last element in range is '||'")]
    NothingAfter,
    /// A comparator without a digit.
    #[error("Could not get version from string: {}", go_quote(text))]
    NoVersion {
        /// The comparator.
        text: String,
    },
    /// The text before the version is not an operator.
    #[error(
        "Could not parse Range {}: Could not parse comparator {} in {}",
        go_quote(text),
        go_quote(operator),
        go_quote(text)
    )]
    Operator {
        /// The comparator.
        text: String,
        /// Text before the version.
        operator: String,
    },
    /// The version of a comparator is not strict semver.
    #[error(
        "Could not parse Range {}: Could not parse version {} in {}: {source}",
        go_quote(text),
        go_quote(version),
        go_quote(text)
    )]
    Version {
        /// The comparator.
        text: String,
        /// Its version part.
        version: String,
        /// Syntax error of the version. Part of the text, because upstream's sentence contains it.
        source: ParseError,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparator {
    operator: Operator,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl SkipRange {
    /// Returns true if the range contains `version`; build metadata is ignored.
    pub fn matches(&self, version: &Version) -> bool {
        self.groups
            .iter()
            .any(|group| group.iter().all(|comparator| comparator.matches(version)))
    }
}

impl Comparator {
    fn matches(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        match self.operator {
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
        }
    }
}

impl Operator {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "" | "=" | "==" => Self::Equal,
            "!" | "!=" => Self::NotEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            _ => return None,
        })
    }
}

impl FromStr for SkipRange {
    type Err = SkipRangeError;

    fn from_str(text: &str) -> Result<Self, SkipRangeError> {
        let tokens = tokens(text);
        if tokens.first().is_some_and(|token| token == "||") {
            return Err(SkipRangeError::NothingBefore);
        }
        if tokens.last().is_none_or(|token| token == "||") {
            return Err(SkipRangeError::NothingAfter);
        }
        // Wildcards of the whole range come first: their faults are reported before those of versions.
        let mut expanded = Vec::new();
        for group in tokens.split(|token| token == "||") {
            let mut comparators = Vec::new();
            for token in group {
                expand(token, &mut comparators)?;
            }
            expanded.push(comparators);
        }
        let groups = expanded
            .iter()
            .map(|group| group.iter().map(|token| comparator(token)).collect())
            .collect::<Result<_, _>>()?;
        Ok(Self { groups })
    }
}

/// Splits at spaces, but not after `>`, `<` or `=`; drops tokens of one byte and spaces inside tokens.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        if byte != b' ' {
            before = byte;
        } else if !matches!(before, b'>' | b'<' | b'=') {
            keep(text.get(start..at), &mut found);
            start = at + 1;
        }
    }
    keep(text.get(start..), &mut found);
    found
}

fn keep(token: Option<&str>, found: &mut Vec<String>) {
    if let Some(token) = token.filter(|token| token.len() > 1) {
        found.push(token.replace(' ', ""));
    }
}

/// Splits a comparator at its first digit.
fn split(token: &str) -> Result<(&str, &str), SkipRangeError> {
    token
        .find(|c: char| c.is_numeric())
        .map(|at| token.split_at(at))
        .ok_or_else(|| SkipRangeError::NoVersion {
            text: token.to_owned(),
        })
}

fn comparator(token: &str) -> Result<Comparator, SkipRangeError> {
    let (operator_text, version_text) = split(token)?;
    let operator = Operator::read(operator_text.trim()).ok_or_else(|| SkipRangeError::Operator {
        text: token.to_owned(),
        operator: operator_text.to_owned(),
    })?;
    let version = parse_version(version_text).map_err(|source| SkipRangeError::Version {
        text: token.to_owned(),
        version: version_text.to_owned(),
        source,
    })?;
    Ok(Comparator { operator, version })
}

/// Rewrites a comparator with an `x` to comparators without.
fn expand(token: &str, out: &mut Vec<String>) -> Result<(), SkipRangeError> {
    if !token.contains('x') {
        out.push(token.to_owned());
        return Ok(());
    }
    let (operator, version) = split(token)?;
    let floor = floor_of(version);
    let ceiling = || ceiling_of(version, &floor).unwrap_or_default();
    match operator.trim() {
        ">" => out.push(format!(">={}", ceiling())),
        ">=" => out.push(format!(">={floor}")),
        "<" => out.push(format!("<{floor}")),
        "<=" => out.push(format!("<{}", ceiling())),
        "" | "=" | "==" => out.extend([format!(">={floor}"), format!("<{}", ceiling())]),
        "!" | "!=" => out.extend([format!("<{floor}"), format!(">={}", ceiling())]),
        _ => out.push(floor),
    }
    Ok(())
}

/// Returns the lowest version of a wildcard: `1.x` and `1.x.x` are 1.0.0.
fn floor_of(version: &str) -> String {
    let floor = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if floor.split('.').count() == 2 {
        format!("{floor}.0")
    } else {
        floor
    }
}

/// Returns the lowest version above a wildcard; none without a wildcard.
fn ceiling_of(version: &str, floor: &str) -> Option<String> {
    let parts: Vec<&str> = version.split('.').collect();
    let raised = match parts.as_slice() {
        [_, "x"] => 0,
        [_, _, "x"] => 1,
        _ => return None,
    };
    let mut numbers: Vec<String> = floor.split('.').map(str::to_owned).collect();
    let number = numbers.get_mut(raised)?;
    *number = number.parse::<i64>().ok()?.checked_add(1)?.to_string();
    Some(numbers.join("."))
}
