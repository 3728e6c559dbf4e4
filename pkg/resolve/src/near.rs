//! Near misses: names and versions that the user may have meant.

use olm_version::VersionRelease;

/// Maximum number of suggested names or versions.
const MAX_SUGGESTIONS: usize = 3;
/// Shortest name that counts as part of a longer one.
const MIN_PART: usize = 3;

/// Returns the names that `wanted` may be a misspelling or a part of, the nearest first, at most three.
///
/// A name is near if one typing error per four characters, at most three, leads to it (an extra, missing, wrong or
/// swapped character), or if it has `wanted` among its words.
pub fn near_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let letters: Vec<char> = wanted.chars().collect();
    let limit = (letters.len() / 4).clamp(1, 3);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let errors = errors(&letters, &lower.chars().collect::<Vec<_>>(), limit);
            let part = || (letters.len() >= MIN_PART && has_words(&lower, &wanted)).then_some(limit + 1);
            Some((errors.or_else(part)?, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter()
        .map(|(_, name)| name)
        .take(MAX_SUGGESTIONS)
        .collect()
}

/// Returns true if `name` contains the words of `part` in sequence.
fn has_words(name: &str, part: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut places = name.match_indices(part);
    places.any(|(at, found)| {
        let (before, after) = (name.get(..at), name.get(at + found.len()..));
        !word(before.and_then(|before| before.chars().next_back()))
            && !word(after.and_then(|after| after.chars().next()))
    })
}

/// Returns the number of typing errors between two words; none if there are more than `limit`. Only the part of the
/// table that could stay within the limit is computed, so that long names cost little.
fn errors(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let far = limit + 1;
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).map(|at| at.min(far)).collect();
    for (row, letter) in a.iter().enumerate() {
        let mut next = vec![far; b.len() + 1];
        if let Some(first) = next.first_mut() {
            *first = (row + 1).min(far);
        }
        for column in row.saturating_sub(limit)..(row + limit + 1).min(b.len()) {
            let cost = |cells: &[usize], at: usize| cells.get(at).copied().unwrap_or(far);
            let other = b.get(column);
            let changed = cost(&last, column) + usize::from(other != Some(letter));
            let mut errors = changed
                .min(cost(&last, column + 1) + 1)
                .min(cost(&next, column) + 1);
            let swapped =
                row > 0 && column > 0 && a.get(row - 1) == other && b.get(column - 1) == Some(letter);
            if swapped {
                errors = errors.min(cost(&before, column - 1) + 1);
            }
            if let Some(cell) = next.get_mut(column + 1) {
                *cell = errors.min(far);
            }
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().filter(|errors| *errors <= limit)
}

/// Returns the versions next to `wanted`, at most two lower and two higher ones, highest first.
pub fn near_versions(wanted: &VersionRelease, present: &[VersionRelease]) -> Vec<VersionRelease> {
    let mut sorted: Vec<&VersionRelease> = present.iter().collect();
    sorted.sort_by(|a, b| b.cmp_precedence(a));
    sorted.dedup_by(|a, b| a.cmp_precedence(b).is_eq());
    let higher = sorted.partition_point(|version| version.cmp_precedence(wanted).is_gt());
    let near = sorted.into_iter().skip(higher.saturating_sub(2));
    near.take(higher.min(2) + 2).cloned().collect()
}

/// Returns `Did you mean ...?` with these names; none if there are none.
pub fn did_you_mean<S: AsRef<str>>(names: &[S]) -> Option<String> {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| olm_version::go_quote(name.as_ref()))
        .collect();
    let (last, others) = quoted.split_last()?;
    Some(if others.is_empty() {
        format!("Did you mean {last}?")
    } else {
        format!("Did you mean {} or {last}?", others.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 7] = [
        "sample-operator",
        "simple-operator",
        "strimzi-kafka-operator",
        "kafkax",
        "argocd-operator",
        "a",
        "b",
    ];

    #[test]
    fn misspelt_names_are_found() {
        let near = |wanted: &str| near_names(wanted, NAMES);
        assert_eq!(near("sample-operatr"), ["sample-operator", "simple-operator"]);
        assert_eq!(near("smaple-operator"), ["sample-operator", "simple-operator"]);
        assert_eq!(near("Sample_Operator"), ["sample-operator", "simple-operator"]);
        assert_eq!(near("kafka"), ["kafkax", "strimzi-kafka-operator"]);
        assert_eq!(near("argocd"), ["argocd-operator"]);
        assert_eq!(
            near("operator"),
            ["argocd-operator", "sample-operator", "simple-operator"]
        );
        assert_eq!(near("afka"), ["kafkax"; 0], "a part of a word is no word");
        assert_eq!(near("whale"), [""; 0]);
        assert_eq!(near_names("x", [""; 0]), [""; 0]);
        assert_eq!(near_names("sample", ["sampel", "sampel"]), ["sampel"]);
    }

    #[test]
    fn errors_are_counted_within_the_limit() {
        let count = |a: &str, b: &str| {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            errors(&letters(a), &letters(b), 3)
        };
        for (a, b, expected) in [
            ("abc", "abc", Some(0)),
            ("abc", "acb", Some(1)),
            ("abc", "ab", Some(1)),
            ("abc", "xabc", Some(1)),
            ("abcdef", "badcfe", Some(3)),
            ("abcdef", "uvwxyz", None),
            ("", "abc", Some(3)),
            ("", "abcd", None),
        ] {
            assert_eq!(count(a, b), expected, "{a} {b}");
            assert_eq!(count(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn neighbours_of_a_version() {
        let version = |text: &str| VersionRelease::parse_legacy(text).unwrap();
        let present: Vec<_> = ["1.0.0", "3.0.0", "2.0.0", "2.0.0", "4.0.0", "5.0.0"]
            .map(version)
            .into();
        let near = |wanted: &str| -> Vec<String> {
            let near = near_versions(&version(wanted), &present);
            near.iter().map(ToString::to_string).collect()
        };
        assert_eq!(near("2.5.0"), ["4.0.0", "3.0.0", "2.0.0", "1.0.0"]);
        assert_eq!(near("9.0.0"), ["5.0.0", "4.0.0"]);
        assert_eq!(near("0.1.0"), ["2.0.0", "1.0.0"]);
    }

    #[test]
    fn did_you_mean_lists_the_names() {
        assert_eq!(did_you_mean::<&str>(&[]), None);
        assert_eq!(did_you_mean(&["a"]).as_deref(), Some("Did you mean \"a\"?"));
        assert_eq!(
            did_you_mean(&["a", "b", "c"]).as_deref(),
            Some("Did you mean \"a\", \"b\" or \"c\"?")
        );
    }

    #[test]
    fn a_long_name_may_have_three_errors_and_a_part_comes_last() {
        assert_eq!(
            near_names("abcdefghijkl", ["abXdefXhijXl", "XbXdefXhijXl"]),
            ["abXdefXhijXl"]
        );
        assert_eq!(near_names("kafka", ["a-kafka", "kafkax"]), ["kafkax", "a-kafka"]);
    }
}
