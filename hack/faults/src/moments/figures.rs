//! Counts and times of each stage.

use std::collections::BTreeMap;
use std::time::Duration;

use olm_proof::{Report, Violation};

use super::Killed;

/// Result of a kill.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Moment of the kill after the change by the user.
    pub(super) moment: Duration,
    /// The cluster was not in its state yet when the controller was killed.
    pub(super) before_end: bool,
    /// Time from the kill until the new process was ready and the cluster in its state, or the reason why that did not happen.
    pub(super) converged: Result<Duration, String>,
}

/// Counts of all kills.
#[derive(Debug, Default)]
pub(super) struct Figures {
    undisturbed: BTreeMap<Killed, Duration>,
    outcomes: BTreeMap<Killed, Vec<Outcome>>,
    violations: Vec<Violation>,
    /// Changes that were held against the invariants.
    pub(super) changes: u64,
}

impl Figures {
    /// Notes the duration of a stage without a kill; the shortest counts.
    pub(super) fn note_undisturbed(&mut self, stage: Killed, duration: Duration) {
        let known = self.undisturbed.entry(stage).or_insert(duration);
        *known = duration.min(*known);
    }

    /// Returns the shortest duration of a stage without a kill.
    pub(super) fn undisturbed(&self, stage: Killed) -> Duration {
        self.undisturbed.get(&stage).copied().unwrap_or_default()
    }

    /// Adds a kill, and prints a line for it.
    pub(super) fn add(&mut self, stage: Killed, number: u32, seed: u64, outcome: Outcome) {
        let moment = outcome.moment.as_millis();
        let place = format!("seed {seed}, {stage} {number} killed after {moment} ms");
        match &outcome.converged {
            Ok(time) => eprintln!("{place}: {:.1} s", time.as_secs_f64()),
            Err(text) => {
                eprintln!("{place}: LOST {text}");
                self.violations.push(Violation {
                    invariant: "convergence".to_owned(),
                    seed: seed.to_string(),
                    text: format!("{stage} {number}, killed after {moment} ms: {text}"),
                });
            }
        }
        self.outcomes.entry(stage).or_default().push(outcome);
    }

    /// Adds broken invariants.
    pub(super) fn add_violations(&mut self, violations: Vec<Violation>) {
        for violation in &violations {
            eprintln!(
                "BROKEN {}, {}: {}",
                violation.seed, violation.invariant, violation.text
            );
        }
        self.violations.extend(violations);
    }

    pub(super) fn report(self, command: String) -> Report {
        let mut figures = Vec::new();
        for (stage, outcomes) in &self.outcomes {
            let mut times: Vec<Duration> = outcomes
                .iter()
                .filter_map(|outcome| outcome.converged.clone().ok())
                .collect();
            times.sort();
            let lost = outcomes.len() - times.len();
            let at = |percent: usize| {
                times
                    .get(times.len().saturating_sub(1) * percent / 100)
                    .copied()
                    .unwrap_or_default()
            };
            let undisturbed = self.undisturbed(*stage);
            figures.push((
                format!("{stage}: moments, spread over {:.1} s", undisturbed.as_secs_f64()),
                outcomes.len().to_string(),
            ));
            let before_end = outcomes.iter().filter(|outcome| outcome.before_end).count();
            figures.push((
                format!("{stage}: moments before the state was reached"),
                before_end.to_string(),
            ));
            figures.push((format!("{stage}: converged"), times.len().to_string()));
            figures.push((format!("{stage}: lost"), lost.to_string()));
            figures.push((
                format!("{stage}: time from the kill to convergence, median, 95 of 100, longest"),
                format!(
                    "{:.1} s, {:.1} s, {:.1} s",
                    at(50).as_secs_f64(),
                    at(95).as_secs_f64(),
                    at(100).as_secs_f64()
                ),
            ));
        }
        figures.push((
            "changes held against the invariants".to_owned(),
            self.changes.to_string(),
        ));
        Report {
            title: "kill -9 at any moment".to_owned(),
            about: "A controller is killed at a random moment of a stage, and starts again. The cluster must reach the state that the spec \
                    determines, and rest; catalogd must serve whole content of the digest that the status names."
                .to_owned(),
            figures,
            violations: self.violations,
            not_covered: vec![
                "The machine stays up: what the operating system loses with the power is covered by the stores of catalogd only.".to_owned(),
                "One replica without leader election.".to_owned(),
            ],
            command,
            ..Report::default()
        }
    }
}
