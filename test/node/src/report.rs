//! Report of the checks: prints each result at once, and the measurements and totals at the end.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

/// Counts of the checks.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: u32,
    failed: u32,
    skipped: u32,
    /// Titles and remarks of the passed checks that measured something.
    remarks: Vec<(String, String)>,
}

#[expect(clippy::print_stdout, reason = "the results are the output of this program")]
impl Report {
    /// Runs a check and prints its result, duration and remark. Returns true if it passed.
    pub(crate) async fn check(&mut self, title: &str, check: impl Future<Output = Result<String>>) -> bool {
        let started = Instant::now();
        let result = check.await;
        let seconds = started.elapsed().as_secs_f64();
        match &result {
            Ok(remark) => {
                self.passed += 1;
                println!("PASS {title} ({seconds:.1} s) {remark}");
                if !remark.is_empty() {
                    self.remarks.push((title.to_owned(), remark.clone()));
                }
            }
            Err(error) => {
                self.failed += 1;
                println!("FAIL {title} ({seconds:.1} s): {error:#}");
            }
        }
        result.is_ok()
    }

    /// Counts a check that cannot run here, and prints the reason.
    pub(crate) fn skip(&mut self, title: &str, why: &str) {
        self.skipped += 1;
        println!("SKIP {title}: {why}");
    }

    /// Counts a failure outside of the checks.
    pub(crate) fn broken(&mut self) {
        self.failed += 1;
    }

    /// Prints what was measured, and the totals.
    pub(crate) fn close(&self) -> ExitCode {
        println!("\nMeasured:");
        for (title, remark) in &self.remarks {
            println!("- {title}: {remark}");
        }
        println!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        );
        if self.failed == 0 && self.passed > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
