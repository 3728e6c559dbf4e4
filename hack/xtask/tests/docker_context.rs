//! Test that the context of `docker build` has everything that the build reads: `.dockerignore` excludes all files but those that it lists.
#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect(file)
}

/// Returns true if a line `!PATTERN` includes the path. `*` in the pattern stands for a whole name.
fn is_included(path: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| {
        let mut names = path.split('/');
        pattern
            .split('/')
            .all(|wanted| names.next().is_some_and(|name| wanted == "*" || wanted == name))
    })
}

/// Returns the sources of `COPY` that are in the context. `.` is the whole context, and `--from` names another stage.
fn copied(dockerfile: &str) -> Vec<&str> {
    let copies = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let of_context = copies.filter(|words| !words.contains("--from="));
    let sources = of_context.flat_map(|words| {
        let mut words: Vec<&str> = words
            .split_whitespace()
            .filter(|word| !word.starts_with("--"))
            .collect();
        words.pop();
        words
    });
    sources.filter(|source| *source != ".").collect()
}

#[test]
fn the_context_has_every_member_of_the_workspace_and_every_copied_file() {
    let ignored = read(".dockerignore");
    let patterns: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let manifest: Table = read("Cargo.toml").parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let members: Vec<&str> = members.iter().map(|member| member.as_str().unwrap()).collect();
    assert!(members.contains(&"hack/xtask"), "{members:?}");
    let mut needed: Vec<String> = ["Cargo.toml", "src"]
        .iter()
        .flat_map(|part| members.iter().map(move |member| format!("{member}/{part}")))
        .collect();
    let dockerfile = read("Dockerfile");
    let copied = copied(&dockerfile);
    assert_eq!(copied, ["hack/sample-operator"]);
    needed.extend(copied.into_iter().map(str::to_owned));
    needed.retain(|path| !is_included(path, &patterns));
    assert!(needed.is_empty(), ".dockerignore excludes {}", needed.join(", "));
}

#[test]
fn a_pattern_includes_what_is_below_it() {
    let patterns = ["hack/xtask", "test/*/src"];
    for path in ["hack/xtask", "hack/xtask/src", "test/world/src/lib.rs"] {
        assert!(is_included(path, &patterns), "{path}");
    }
    for path in ["hack", "hack/bench/src", "hack/xtasks", "test/world/Cargo.toml"] {
        assert!(!is_included(path, &patterns), "{path}");
    }
    let dockerfile = "COPY . .\nCOPY --chown=1 a b/c /x/\nCOPY --from=build d /d\n";
    assert_eq!(copied(dockerfile), ["a", "b/c"]);
}
