//! Order of API versions: alpha before beta before stable, then by number.

use std::cmp::Ordering;

/// Compares two version names, the less mature first. Other names come first.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    match (parse(left), parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Names in other formats sort in reverse alphabetical order, by Kubernetes' own rule.
        (None, None) => right.cmp(left),
    }
}

/// Parses maturity, major number and minor number.
fn parse(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(digits);
    let major = major.parse().ok()?;
    if stage.is_empty() {
        return Some((2, major, 0));
    }
    if let Some(minor) = stage.strip_prefix("alpha") {
        return Some((0, major, minor.parse().ok()?));
    }
    Some((1, major, stage.strip_prefix("beta")?.parse().ok()?))
}
