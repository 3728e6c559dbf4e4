//! Files that `.indexignore` leaves out.
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use olm_fbc::IndexIgnore;

fn ignored(files: &[(&str, &str)], paths: &[&str]) -> Vec<bool> {
    let rules = IndexIgnore::new(files.iter().copied()).expect("sound patterns");
    paths.iter().map(|path| is_ignored(&rules, path)).collect()
}

fn is_ignored(rules: &IndexIgnore, path: &str) -> bool {
    let mut paths = vec![path.to_owned()];
    rules.retain(&mut paths).expect("sound patterns");
    paths.is_empty()
}

#[test]
fn the_last_matching_pattern_decides() {
    let rules = [("", "  # a comment\n\n*.md\n!keep.md\n")];
    assert_eq!(
        ignored(&rules, &["a.md", "x/a.md", "keep.md", "x/keep.md", "a.yaml"]),
        [true, true, false, false, false]
    );
}

#[test]
fn a_leading_slash_ties_a_pattern_to_its_folder() {
    let rules = [("", "/top.yaml\na/*.yaml")];
    assert_eq!(
        ignored(&rules, &["top.yaml", "x/top.yaml", "a/b.yaml", "x/a/b.yaml"]),
        [true, false, true, false]
    );
}

#[test]
fn a_pattern_for_a_folder_holds_for_all_below() {
    let rules = [("", "skip/\nold")];
    assert_eq!(
        ignored(
            &rules,
            &["skip/a.yaml", "x/skip/y/a.yaml", "skip", "old", "old/a"]
        ),
        [true, true, false, true, true]
    );
}

#[test]
fn two_stars_cross_folders() {
    assert_eq!(
        ignored(
            &[("", "a/**/z.yaml\n**/b/")],
            &["a/z.yaml", "a/x/y/z.yaml", "q/b/c", "z.yaml"]
        ),
        [true, true, true, false]
    );
}

#[test]
fn a_file_speaks_for_its_folder_and_has_the_last_word_there() {
    let rules = [("x", "*.yaml"), ("", "*.json"), ("y", "!k.json")];
    assert_eq!(
        ignored(
            &rules,
            &["x/a.yaml", "a.yaml", "x/a.json", "y/k.json", "xx/a.yaml"]
        ),
        [true, false, true, false, false]
    );
}

#[test]
fn hostile_patterns_are_refused_or_harmless() {
    assert!(IndexIgnore::new([("", "a\n".repeat(10_001))]).is_err());
    assert!(IndexIgnore::new([("", "x".repeat(1024 * 1024 + 1))]).is_err());
    // The limits are on all files together: a small image can have hundreds of thousands of them.
    assert!(IndexIgnore::new(["", "a", "b"].map(|folder| (folder, "#".repeat(400 * 1024)))).is_err());
    let many = |count: usize| IndexIgnore::new((0..count).map(|number| (number.to_string(), "a")));
    assert!(many(1000).is_ok() && many(1001).is_err());
    // Each matcher takes memory for patterns times their length.
    assert!(IndexIgnore::new([("", "*a\n".repeat(100))]).is_ok());
    assert!(IndexIgnore::new([("", "*a\n".repeat(101))]).is_err());
    assert!(IndexIgnore::new([("", "?".repeat(4097))]).is_err());
    // Matching these would take minutes.
    let slow = IndexIgnore::new([("", "*a?b*c\n".repeat(100))]).expect("few patterns");
    let mut paths = vec!["d/".repeat(1000); 10];
    let error = slow.retain(&mut paths).expect_err("too slow");
    assert!(error.to_string().contains("too many files"), "{error}");
    let odd = ["../x", "/", "!", "[", "***", "\\"];
    for pattern in odd {
        let rules = IndexIgnore::new([("", pattern)]).expect("few patterns");
        let _ = rules.retain(&mut vec!["../../etc/passwd".to_owned()]);
    }
    assert!(!is_ignored(&IndexIgnore::default(), "anything"));
}

#[test]
fn paths_with_empty_names_are_those_without() {
    let ignore = IndexIgnore::new([("", "b.yaml"), ("a", "c.yaml")]).expect("sound patterns");
    for path in ["//", "", "/", ".//", "a//", "a/./x.yaml"] {
        assert!(!is_ignored(&ignore, path), "{path}");
    }
    for path in ["/b.yaml", ".//b.yaml", "a//c.yaml", "./a/./c.yaml"] {
        assert!(is_ignored(&ignore, path), "{path}");
    }
}
