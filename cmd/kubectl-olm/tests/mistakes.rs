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

#[test]
fn the_best_fit_comes_first() {
    let names = |args: &[&str]| -> Vec<String> {
        let (_, found) = value(&[&["search", "--dir", "search"], args].concat());
        let packages = found["packages"].as_array().unwrap().iter();
        packages
            .map(|package| package["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&["tide"]),
        [
            "tide",
            "tide-tables",
            "e-tide-operator",
            "d-tide-operator",
            "b-gauges",
            "c-buoys",
            "a-almanac"
        ]
    );
    assert_eq!(names(&["TIDE", "water"]), ["b-gauges"]);
    assert_eq!(names(&[]).first().map(String::as_str), Some("a-almanac"));
}
