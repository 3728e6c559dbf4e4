//! Totals of test suites, read from their output.

/// Sum of the suites' totals.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    /// Lines about failed tests and suites, one for each, and the first lines that the tests printed.
    pub(super) failures: Vec<String>,
    /// Number of lines of a failed test's output that are still to be kept.
    wanted: usize,
    /// Number of tests of the running suite that skip something. The suite counts them as passed.
    skipping: u64,
}

/// Mark of a line in which a test says what it skips. The runner of the tests may have begun the line with the test's name.
const SKIPPED: &str = "SKIPPED: ";
/// Number of lines that are kept of the output of a failed test: a panic's place and the first lines of its message.
const FAILURE_LINES: usize = 4;

impl Totals {
    /// Adds the counts of a suite's closing line, `test result: ok. 3 passed; 0 failed; 1 ignored; ...`, a line about a failed
    /// test, `test name ... FAILED`, or a line about a skipped test, `SKIPPED: reason`. Of the output of a failed test, which follows
    /// `---- name stdout ----`, the first lines are kept. Other lines are ignored.
    pub(super) fn add(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result:") {
            let counts = rest.split_once(". ").map_or("", |(_, counts)| counts);
            let before = self.passed;
            self.add_counts(counts, ';');
            // A test may fail after it has skipped something.
            let skipped = std::mem::take(&mut self.skipping).min(self.passed - before);
            self.passed -= skipped;
            self.skipped += skipped;
        } else if line.contains(SKIPPED) {
            self.skipping += 1;
        } else if line.starts_with("test ") && line.ends_with("... FAILED") {
            self.failures.push(line.to_owned());
        } else if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.wanted = FAILURE_LINES;
            self.failures.push(line.to_owned());
        } else if line == "failures:" {
            // Precedes the outputs, and the list of names after them.
            self.wanted = 0;
        } else if self.wanted > 0 && !line.is_empty() {
            self.wanted -= 1;
            self.failures.push(line.to_owned());
        }
    }

    /// Records that a suite failed. `before` is the number of failed tests before it: the suite itself counts as a failed test if none
    /// of its tests failed, for example if it crashed.
    pub(super) fn fail(&mut self, suite: &str, before: u64) {
        self.failed += u64::from(self.failed == before);
        self.failures.push(format!("suite {suite} ... FAILED"));
    }

    /// Adds counts, each of which is a number and a word.
    pub(super) fn add_counts(&mut self, counts: &str, separator: char) {
        for part in counts.split(separator) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" | "skipped" => self.skipped += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Totals;

    #[test]
    fn totals_and_failures_are_collected_over_suites() {
        let mut totals = Totals::default();
        totals.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        );
        totals.add("running 12 tests");
        totals.add("test real::objects ... FAILED");
        totals.add("test real::names ... ok");
        totals.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(
            totals,
            Totals {
                passed: 5,
                failed: 1,
                skipped: 1,
                failures: vec!["test real::objects ... FAILED".to_owned()],
                ..Totals::default()
            }
        );
        totals.add_counts("9 passed, 0 failed, 2 skipped", ',');
        assert_eq!((totals.passed, totals.skipped), (14, 3));
        totals.fail("with a failed test", 0);
        assert_eq!(totals.failed, 1);
        totals.fail("crashed", 1);
        assert_eq!(totals.failed, 2);
    }

    #[test]
    fn the_beginning_of_a_failed_tests_output_is_kept() {
        let mut totals = Totals::default();
        let output = "test real::objects ... FAILED\n\nfailures:\n\n---- real::objects stdout ----\n\n\
            thread 'real::objects' panicked at tests/real.rs:7:5:\nfirst\nsecond\nthird\nfourth\n\n\
            ---- real::names stdout ----\nError: no names\n\nfailures:\n    real::names\n    real::objects\n\n\
            test result: FAILED. 0 passed; 2 failed; 0 ignored";
        output.lines().for_each(|line| totals.add(line));
        let expected = [
            "test real::objects ... FAILED",
            "---- real::objects stdout ----",
            "thread 'real::objects' panicked at tests/real.rs:7:5:",
            "first",
            "second",
            "third",
            "---- real::names stdout ----",
            "Error: no names",
        ];
        assert_eq!(totals.failures, expected);
    }

    #[test]
    fn a_test_that_skips_something_counts_as_skipped() {
        let mut totals = Totals::default();
        for line in [
            "SKIPPED: OLM_VECTORS is not set, so nothing was compared",
            "test drawn ... SKIPPED: this machine has no browser",
            "test result: ok. 3 passed; 0 failed; 1 ignored",
        ] {
            totals.add(line);
        }
        assert_eq!((totals.passed, totals.failed, totals.skipped), (1, 0, 3));
        totals.add("SKIPPED: no kubectl on the PATH");
        totals.add("test result: FAILED. 0 passed; 1 failed; 0 ignored");
        totals.add("test result: ok. 2 passed; 0 failed; 0 ignored");
        assert_eq!((totals.passed, totals.failed, totals.skipped), (3, 1, 3));
    }
}
