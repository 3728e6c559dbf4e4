//! Answers to somebody who mistypes, or asks for what is not there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod common;

use common::run;
use serde_json::{Value, json};

fn value(args: &[&str]) -> (i32, Value) {
    let said = run(&[args, &["-o", "json"]].concat());
    let value = serde_json::from_str(&said.out);
    (said.code, value.unwrap_or_else(|error| panic!("{error}: {said}")))
}

/// A folder with the catalog `catalog`, changed by `change`.
fn changed(change: impl Fn(String) -> String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(common::testdata().join("catalog")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(dir.path().join(path.file_name().unwrap()), change(text)).unwrap();
    }
    dir
}

#[test]
fn a_catalog_without_anything() {
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("empty.yaml"), "# nothing\n").unwrap();
    let dir = empty.path().to_str().unwrap();
    let said = run(&["validate", dir]);
    assert_eq!(said.code, 1, "{said}");
    assert!(
        said.out
            .contains("the directory has no object of a catalog [empty]")
            && said.out.ends_with("\n1 error, 0 warnings, 0 notes\n"),
        "{said}"
    );
}
