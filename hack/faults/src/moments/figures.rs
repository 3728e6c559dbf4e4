//! Results of kills, and the figures of the report about them.

use std::time::Duration;

use olm_proof::{Report, Violation};

use super::Killed;
use crate::results::Tally;

/// Result of a kill.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Time from the change by the user to the kill.
    pub(super) moment: Duration,
    /// True if the cluster did not meet the expectation yet when the controller was killed.
    pub(super) before_end: bool,
    /// Time from the kill until the new process was ready and the cluster had converged, or the reason why it did not converge.
    pub(super) converged: Result<Duration, String>,
}

/// Results of the kills of one extension or catalog.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) tally: Tally,
    pub(super) violations: Vec<Violation>,
}

impl Case {
    /// Adds a kill and prints a line about it. `number` is the number of the extension or catalog.
    pub(super) fn add(&mut self, stage: Killed, number: u64, seed: u64, outcome: &Outcome) {
        let moment = outcome.moment.as_millis();
        let place = format!("seed {seed}, {stage} {number} killed after {moment} ms");
        self.tally.add(&format!("{stage}: kills"), 1);
        self.tally.time(&format!("{stage}: moment"), outcome.moment);
        self.tally
            .add(&format!("{stage}: early"), u64::from(outcome.before_end));
        match &outcome.converged {
            Ok(time) => {
                eprintln!("{place}: {:.1} s", time.as_secs_f64());
                self.tally.time(&format!("{stage}: convergence"), *time);
            }
            Err(text) => {
                eprintln!("{place}: LOST {text}");
                self.tally.add(&format!("{stage}: lost"), 1);
                self.violations.push(Violation {
                    invariant: "convergence".to_owned(),
                    seed: seed.to_string(),
                    text: format!("{stage} {number}, killed after {moment} ms: {text}"),
                });
            }
        }
    }

    /// Adds broken invariants and prints them.
    pub(super) fn add_violations(&mut self, violations: Vec<Violation>) {
        for violation in &violations {
            eprintln!(
                "BROKEN {}, {}: {}",
                violation.seed, violation.invariant, violation.text
            );
        }
        self.violations.extend(violations);
    }
}

/// Makes the report, without violations, from the sums.
pub(super) fn describe(tally: &Tally) -> Report {
    let mut figures = Vec::new();
    for stage in Killed::ALL {
        let count = |what: &str| tally.count(&format!("{stage}: {what}"));
        let (kills, lost) = (count("kills"), count("lost"));
        if kills == 0 {
            continue;
        }
        let latest = tally.percentile(&format!("{stage}: moment"), 100);
        figures.extend([
            (
                format!("{stage}: moments, spread over {:.1} s", latest.as_secs_f64()),
                kills.to_string(),
            ),
            (
                format!("{stage}: moments before the state was reached"),
                count("early").to_string(),
            ),
            (format!("{stage}: converged"), (kills - lost).to_string()),
            (format!("{stage}: lost"), lost.to_string()),
            (
                format!("{stage}: time from the kill to convergence, median, 95 of 100, longest"),
                tally.spread(&format!("{stage}: convergence")),
            ),
        ]);
    }
    figures.push((
        "changes held against the invariants".to_owned(),
        tally.count("changes").to_string(),
    ));
    Report {
        title: "kill -9 at any moment".to_owned(),
        about: "A controller is killed at a random moment of a stage, and starts again. The cluster must reach the state that the spec \
                determines, and rest; catalogd must serve whole content of the digest that the status names."
            .to_owned(),
        figures,
        not_covered: vec![
            "The machine stays up: what the operating system loses with the power is covered by the stores of catalogd only.".to_owned(),
            "One replica without leader election.".to_owned(),
            "Several kills share the processor, each on a control plane of its own; times include their waiting.".to_owned(),
        ],
        ..Report::default()
    }
}
