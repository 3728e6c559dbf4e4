//! Test that the YAML reader gives the same answers as Go's reader, on files and on mutations of them.

use std::path::{Path, PathBuf};

use olm_integration::vectors;
use olm_integration::yaml::{Oracle, Report, corpus, files, mutations};

/// Number of mutations in a run. `cargo xtask yaml --mutations` can run any number.
const MUTATIONS: usize = 20_000;

#[test]
fn go_reads_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scratch = tempfile::tempdir().unwrap();
    let mut oracle = Oracle::start(&root.join("hack/yaml-oracle"), scratch.path()).unwrap();
    let mut dirs: Vec<PathBuf> = ["test/testdata", "config"].map(|dir| root.join(dir)).into();
    if let Some(recorded) = vectors::folder("no real bundle or catalog was read") {
        dirs.extend(["bundles", "catalogs"].map(|dir| recorded.join(dir)));
    }
    let mut report = Report::default();
    for dir in &dirs {
        report.add(files(&mut oracle, dir).unwrap());
    }
    println!("files: {report}");
    assert!(report.compared > 100, "the files are gone");
    let mutated = mutations(&mut oracle, &corpus(&dirs).unwrap(), 1, MUTATIONS).unwrap();
    println!("mutations: {mutated}");
    // The mutations would prove little if Go refused nearly all of them, or hardly any.
    assert!(
        (MUTATIONS / 2..MUTATIONS * 3 / 2).contains(&mutated.refused),
        "{mutated}"
    );
    report.add(mutated);
    let differences: Vec<String> = report
        .differences
        .iter()
        .take(5)
        .map(ToString::to_string)
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
