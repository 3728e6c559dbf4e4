//! Properties of versions and ranges that hold for every input.
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use olm_version::{Release, SkipRange, VersionRange, VersionRelease, parse_version};
use proptest::prelude::*;
use std::cmp::Ordering;

fn version_text() -> impl Strategy<Value = String> {
    "(0|[1-9][0-9]{0,2})\\.(0|[1-9][0-9]?)\\.(0|[1-9][0-9]?)(-(0|[1-9]|rc|alpha)(\\.(0|[1-9]|z1))?)?(\\+(1|2|10|01|git\\.a))?"
}

proptest! {
    #[test]
    fn no_text_breaks_a_parser(text in ".{0,40}") {
        let _ = parse_version(&text);
        let _ = text.parse::<Release>();
        let _ = text.parse::<SkipRange>().map(|range| range.matches(&semver::Version::new(1, 2, 3)));
        let _ = text.parse::<VersionRange>();
    }

    #[test]
    fn no_text_of_range_characters_breaks_a_parser(text in "[ ,|<>=!~^.vxX*0-9a+\\-]{0,30}") {
        let _ = text.parse::<SkipRange>();
        if let Ok(range) = text.parse::<VersionRange>() {
            let version = VersionRelease::parse_legacy("1.2.3").expect("a version");
            range.matches(&version);
            prop_assert_eq!(range.to_string(), text);
        }
    }

    #[test]
    fn what_is_written_reads_back(text in version_text()) {
        prop_assert_eq!(parse_version(&text).expect("strict").to_string(), text.clone());
        let read = VersionRelease::parse_legacy(&text).expect("strict");
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn precedence_is_a_total_order(a in version_text(), b in version_text(), c in version_text()) {
        let [a, b, c] = [a, b, c].map(|text| VersionRelease::parse_legacy(&text).expect("strict"));
        prop_assert_eq!(a.cmp_precedence(&b), b.cmp_precedence(&a).reverse());
        if a.cmp_precedence(&b) != Ordering::Greater && b.cmp_precedence(&c) != Ordering::Greater {
            prop_assert_ne!(a.cmp_precedence(&c), Ordering::Greater);
        }
    }

    #[test]
    fn ranges_agree_with_precedence(base in version_text(), other in version_text()) {
        let version = parse_version(&other).expect("strict");
        let order = version.cmp_precedence(&parse_version(&base).expect("strict"));
        for (operator, holds) in [
            (">", order == Ordering::Greater),
            (">=", order != Ordering::Less),
            ("<", order == Ordering::Less),
            ("<=", order != Ordering::Greater),
            ("=", order == Ordering::Equal),
            ("!=", order != Ordering::Equal),
        ] {
            let text = format!("{operator}{base}");
            let skip: SkipRange = text.parse().expect("a skip range");
            prop_assert_eq!(skip.matches(&version), holds, "skip range {}", &text);
            let range: VersionRange = text.parse().expect("a range");
            let admitted = version.pre.is_empty() || base.contains('-');
            let inside = range.matches(&VersionRelease { version: version.clone(), release: None });
            prop_assert_eq!(inside, holds && admitted, "range {}", &text);
        }
    }
}

#[test]
fn releases_order_bundles_of_one_version() {
    let mut versions = [
        "1.0.0+10",
        "1.0.0",
        "1.0.1-rc.1",
        "1.0.0+alpha",
        "1.0.0+2",
        "1.0.0+2.1",
    ]
    .map(|text| VersionRelease::parse_legacy(text).expect("strict"));
    versions.sort_by(VersionRelease::cmp_precedence);
    let written: Vec<_> = versions.iter().map(ToString::to_string).collect();
    assert_eq!(
        written,
        [
            "1.0.0",
            "1.0.0+2",
            "1.0.0+2.1",
            "1.0.0+10",
            "1.0.0+alpha",
            "1.0.1-rc.1"
        ]
    );
}

#[test]
fn build_metadata_that_is_not_a_release_is_ignored() {
    let odd = VersionRelease::parse_legacy("1.0.0+01").expect("strict");
    assert_eq!(
        (odd.release.clone(), odd.to_string()),
        (None, "1.0.0+01".to_owned())
    );
    let plain = VersionRelease::parse_legacy("1.0.0").expect("strict");
    assert_eq!(odd.cmp_precedence(&plain), Ordering::Equal);
    let long = VersionRelease::parse_legacy("1.0.0+123456789012345678901").expect("strict");
    assert_eq!(long.release, None);
}

#[test]
fn ranges_by_example() {
    let inside = [
        ("^1.2", "1.9.0"),
        ("~1.2", "1.2.9"),
        ("1.x", "1.0.0"),
        ("*", "3.4.5"),
        ("1.2 - 1.4", "1.4.7"),
        (">=1 <2 || 5", "5.1.0"),
        ("^0.2.3", "0.2.9"),
        (">=1.0.0-0", "1.0.0-rc.1"),
        ("1.2.3", "1.2.3+7"),
    ];
    let outside = [
        ("^1.2", "2.0.0"),
        ("~1.2", "1.3.0"),
        (">1", "1.9.9"),
        ("^0.2.3", "0.3.0"),
        ("^0.0.3", "0.0.4"),
        (">=1", "1.1.0-rc.1"),
        ("!=1.x", "1.5.0"),
    ];
    let test = |(range, version): (&str, &str)| {
        let version = VersionRelease::parse_legacy(version).expect("strict");
        range.parse::<VersionRange>().expect("a range").matches(&version)
    };
    for case in inside {
        assert!(test(case), "{case:?}");
    }
    for case in outside {
        assert!(!test(case), "{case:?}");
    }
}

/// A version without pre-release, close to the others.
fn plain_text() -> impl Strategy<Value = String> {
    "[0-3]\\.[0-3]\\.[0-3]"
}

/// A range of any form without pre-releases.
fn range_text() -> impl Strategy<Value = String> {
    "(=|!=|>|<|>=|<=|~|\\^|)[0-3](\\.[0-3](\\.[0-3])?)?"
}

fn inside(range: &str, version: &str) -> bool {
    let version = VersionRelease::parse_legacy(version).expect("strict");
    range.parse::<VersionRange>().expect("a range").matches(&version)
}

proptest! {
    #[test]
    fn and_is_the_intersection_and_or_the_union(a in range_text(), b in range_text(), v in plain_text()) {
        let (in_a, in_b) = (inside(&a, &v), inside(&b, &v));
        for and in [format!("{a} {b}"), format!("{a},{b}"), format!("{b}, {a}")] {
            prop_assert_eq!(inside(&and, &v), in_a && in_b, "{} in {}", v, and);
        }
        for or in [format!("{a}||{b}"), format!("{b} || {a}")] {
            prop_assert_eq!(inside(&or, &v), in_a || in_b, "{} in {}", v, or);
        }
    }

    #[test]
    fn opposite_comparators_exclude_each_other(base in "[0-3](\\.[0-3](\\.[0-3])?)?", v in plain_text()) {
        for (one, other) in [("=", "!="), (">", "<="), ("<", ">=")] {
            let (one, other) = (format!("{one}{base}"), format!("{other}{base}"));
            prop_assert_ne!(inside(&one, &v), inside(&other, &v), "{} in {} and {}", v, one, other);
        }
    }

    #[test]
    fn caret_and_tilde_are_bounds(x in 0_u64..4, y in 0_u64..4, z in 0_u64..4, v in plain_text()) {
        let caret = match (x, y) {
            (0, 0) => format!("<0.0.{}", z + 1),
            (0, _) => format!("<0.{}.0", y + 1),
            _ => format!("<{}.0.0", x + 1),
        };
        let base = format!("{x}.{y}.{z}");
        let explicit = format!(">={base} {caret}");
        prop_assert_eq!(inside(&format!("^{base}"), &v), inside(&explicit, &v), "{} in {}", v, explicit);
        // A tilde at zero admits everything, as upstream's does.
        if (x, y, z) != (0, 0, 0) {
            let explicit = format!(">={base} <{x}.{}.0", y + 1);
            for tilde in ["~", "~>"] {
                prop_assert_eq!(inside(&format!("{tilde}{base}"), &v), inside(&explicit, &v), "{} in {}", v, explicit);
            }
        }
        let whole = format!(">={x}.0.0 <{}.0.0", x + 1);
        for major in [format!("^{x}"), format!("~{x}"), format!("{x}.x"), format!("{x}")] {
            prop_assert_eq!(inside(&major, &v), inside(&whole, &v), "{} in {}", v, major);
        }
    }

    #[test]
    fn hyphens_are_two_bounds(a in plain_text(), b in plain_text(), v in plain_text()) {
        let explicit = format!(">={a} <={b}");
        prop_assert_eq!(inside(&format!("{a} - {b}"), &v), inside(&explicit, &v));
    }

    #[test]
    fn skip_ranges_intersect_and_unite(
        a in "(=|!=|>|<|>=|<=)[0-3]\\.[0-3]\\.[0-3]",
        b in "(=|!=|>|<|>=|<=)[0-3]\\.[0-3]\\.[0-3]",
        v in plain_text(),
    ) {
        let version = parse_version(&v).expect("strict");
        let inside = |text: &str| text.parse::<SkipRange>().expect("a skip range").matches(&version);
        prop_assert_eq!(inside(&format!("{a} {b}")), inside(&a) && inside(&b));
        prop_assert_eq!(inside(&format!("{a} || {b}")), inside(&a) || inside(&b));
    }

    #[test]
    fn releases_read_back_and_are_totally_ordered(
        a in "(0|[1-9]|rc|a1)(\\.(0|[1-9]|z))?",
        b in "(0|[1-9]|rc|a1)(\\.(0|[1-9]|z))?",
    ) {
        let [one, other] = [&a, &b].map(|text| text.parse::<Release>().expect("a release"));
        prop_assert_eq!(one.to_string(), a.clone());
        prop_assert_eq!(one.cmp(&other), other.cmp(&one).reverse());
        prop_assert_eq!(one == other, a == b);
        let bundles = [a, b].map(|text| VersionRelease::parse("1.0.0", &text).expect("strict"));
        prop_assert_eq!(bundles[0].cmp_precedence(&bundles[1]), one.cmp(&other));
    }
}
