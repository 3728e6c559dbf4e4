//! Test that every available kind of vectors gives upstream's answers, except for the listed deviations.

use std::process::Command;

use olm_integration::vectors;

#[test]
fn recorded_answers_are_equal() {
    let Some(dir) = vectors::folder("nothing was compared with upstream's recorded answers") else {
        return;
    };
    let (mut cases, mut wrong) = (0, Vec::new());
    for report in vectors::run_all(&dir) {
        println!("{report}");
        cases += report.cases;
        wrong.extend(
            report
                .wrong
                .into_iter()
                .take(20)
                .map(|line| format!("{}: {line}", report.kind)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases > 0, "{} has no vectors", dir.display());
}

#[test]
fn a_folder_without_vectors_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_vectors"))
        .arg(empty.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("has no case to compare"),
        "{error}"
    );
}
