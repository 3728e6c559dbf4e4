//! The documented version expressions and their matches, one case a row.
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use olm_version::{VersionRange, VersionRelease};

/// Major, minor and patch number.
type Numbers = (u64, u64, u64);

/// A comparison of a version with a base.
type Holds = fn(&Numbers, &Numbers) -> bool;

/// Returns the versions to try in every case: those around all numbers of the cases.
fn versions() -> impl Iterator<Item = Numbers> {
    (0..5).flat_map(|major| (0..18).flat_map(move |minor| (0..6).map(move |patch| (major, minor, patch))))
}

fn range(text: &str) -> VersionRange {
    text.parse().expect(text)
}

fn matches(range: &VersionRange, (major, minor, patch): Numbers) -> bool {
    let version = format!("{major}.{minor}.{patch}");
    range.matches(&VersionRelease::parse_legacy(&version).expect("a version"))
}

fn check(text: &str, expected: impl Fn(Numbers) -> bool) {
    let read = range(text);
    for version in versions() {
        assert_eq!(
            matches(&read, version),
            expected(version),
            "{text} on {version:?}"
        );
    }
}

#[test]
fn comparison_operators() {
    let base = (1, 11, 1);
    let rows: [(&str, Holds); 6] = [
        ("=", Numbers::eq),
        ("!=", Numbers::ne),
        (">", Numbers::gt),
        ("<", Numbers::lt),
        (">=", Numbers::ge),
        ("<=", Numbers::le),
    ];
    for (operator, holds) in rows {
        check(&format!("{operator}1.11.1"), |version| holds(&version, &base));
        check(&format!("{operator} 1.11.1"), |version| holds(&version, &base));
    }
}

/// An expression, its comparison, its lowest version, and the lowest version above it.
type Row = (&'static str, &'static str, Numbers, Option<Numbers>);

fn check_rows(rows: &[Row]) {
    for &(text, same, low, high) in rows {
        let within = |version| low <= version && high.is_none_or(|high| version < high);
        check(text, within);
        check(same, within);
    }
}

#[test]
fn wildcards() {
    check_rows(&[
        ("1.11.x", ">=1.11.0, <1.12.0", (1, 11, 0), Some((1, 12, 0))),
        (">=1.12.X", ">=1.12.0", (1, 12, 0), None),
        ("<=2.x", "<3", (0, 0, 0), Some((3, 0, 0))),
        ("*", ">=0.0.0", (0, 0, 0), None),
    ]);
}

#[test]
fn patch_releases() {
    check_rows(&[
        ("~1.11.0", ">=1.11.0, <1.12.0", (1, 11, 0), Some((1, 12, 0))),
        ("~1", ">=1, <2", (1, 0, 0), Some((2, 0, 0))),
        ("~1.12", ">=1.12, <1.13", (1, 12, 0), Some((1, 13, 0))),
        ("~1.12.x", ">=1.12.0, <1.13.0", (1, 12, 0), Some((1, 13, 0))),
        ("~1.x", ">=1, <2", (1, 0, 0), Some((2, 0, 0))),
    ]);
}

#[test]
fn major_releases() {
    check_rows(&[
        ("^0", ">=0.0.0, <1.0.0", (0, 0, 0), Some((1, 0, 0))),
        ("^0.0", ">=0.0.0, <0.1.0", (0, 0, 0), Some((0, 1, 0))),
        ("^0.0.3", ">=0.0.3, <0.0.4", (0, 0, 3), Some((0, 0, 4))),
        ("^0.2", ">=0.2.0, <0.3.0", (0, 2, 0), Some((0, 3, 0))),
        ("^0.2.3", ">=0.2.3, <0.3.0", (0, 2, 3), Some((0, 3, 0))),
        ("^1.2.x", ">= 1.2.0, < 2.0.0", (1, 2, 0), Some((2, 0, 0))),
        ("^1.2.3", ">= 1.2.3, < 2.0.0", (1, 2, 3), Some((2, 0, 0))),
        ("^2.x", ">= 2.0.0, < 3", (2, 0, 0), Some((3, 0, 0))),
        ("^2.3", ">= 2.3, < 3", (2, 3, 0), Some((3, 0, 0))),
    ]);
}

#[test]
fn ranges_and_alternatives() {
    check_rows(&[
        (">=1.11, <1.13", ">=1.11 <1.13", (1, 11, 0), Some((1, 13, 0))),
        ("1.11.1", "=1.11.1", (1, 11, 1), Some((1, 11, 2))),
        (">1.11.1", ">=1.11.2", (1, 11, 2), None),
        ("1.14.x", ">=1.14.0, <1.15.0", (1, 14, 0), Some((1, 15, 0))),
        (">=1.16", ">=1.16.0", (1, 16, 0), None),
    ]);
    check("~1.11.0 || 3.x", |version| {
        ((1, 11, 0)..(1, 12, 0)).contains(&version) || version.0 == 3
    });
}
