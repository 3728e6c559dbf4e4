//! Test that every available kind of vectors gives upstream's answers, except for the listed deviations.

use olm_integration::vectors;

#[test]
fn recorded_answers_are_equal() {
    let Some(dir) = vectors::folder() else { return };
    let mut wrong = Vec::new();
    for report in vectors::run_all(&dir) {
        println!("{report}");
        wrong.extend(
            report
                .wrong
                .into_iter()
                .take(20)
                .map(|line| format!("{}: {line}", report.kind)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
