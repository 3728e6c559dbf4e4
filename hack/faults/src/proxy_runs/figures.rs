//! Counts of all schedules, and their report.

use std::collections::BTreeMap;
use std::time::Duration;

use olm_proof::{Report, Violation};

use super::step::Outcome;
use crate::{Judge, World};

/// Counts of all schedules.
#[derive(Debug, Default)]
pub struct Figures {
    schedules: u64,
    broken: u64,
    stages: u64,
    kills: u64,
    requests: u64,
    changes: u64,
    by_controller: u64,
    injected: BTreeMap<String, u64>,
    times: Vec<Duration>,
    violations: Vec<Violation>,
}

impl Figures {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.stages += 1;
        self.kills += outcome.kills;
        if outcome.failure.is_none() {
            self.times.push(outcome.converged);
        }
    }

    pub(super) fn end_schedule(&mut self, violations: Vec<Violation>) {
        self.schedules += 1;
        self.broken += u64::from(!violations.is_empty());
        self.violations.extend(violations);
    }

    pub(super) fn note_totals(&mut self, world: &World, judge: &Judge) {
        self.changes = judge.changes();
        self.by_controller = judge.changes_by_controller();
        self.requests = world.proxy.injector().requests();
        for (place, injected) in [
            ("API server", world.proxy.injector().injected()),
            ("registry", world.registry_tunnel.injected()),
            ("catalogd", world.catalogd_tunnel.injected()),
        ] {
            let named = injected
                .into_iter()
                .map(|(kind, count)| (format!("{place}: {kind}"), count));
            self.injected.extend(named);
        }
    }

    /// Returns the report.
    pub fn report(mut self, command: &str) -> Report {
        self.times.sort();
        let at = |percent: usize| {
            let index = self.times.len().saturating_sub(1) * percent / 100;
            self.times.get(index).copied().unwrap_or_default()
        };
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let thousandth =
            u64::try_from(self.violations.len()).unwrap_or(u64::MAX) * 1000 / self.schedules.max(1);
        let mut figures = vec![
            ("schedules".to_owned(), self.schedules.to_string()),
            ("stages".to_owned(), self.stages.to_string()),
            ("schedules with violations".to_owned(), self.broken.to_string()),
            (
                "violations per thousand schedules".to_owned(),
                thousandth.to_string(),
            ),
            ("requests of the controller".to_owned(), self.requests.to_string()),
            (
                "changes held against the invariants".to_owned(),
                self.changes.to_string(),
            ),
            (
                "of these, changes by the controller".to_owned(),
                self.by_controller.to_string(),
            ),
            ("kills".to_owned(), self.kills.to_string()),
            (
                "faults".to_owned(),
                self.injected.values().sum::<u64>().to_string(),
            ),
        ];
        let kinds = self.injected.iter();
        figures.extend(kinds.map(|(kind, count)| (kind.clone(), count.to_string())));
        figures.extend([
            (
                "convergence after the last fault, median".to_owned(),
                seconds(at(50)),
            ),
            (
                "convergence after the last fault, 95 of 100".to_owned(),
                seconds(at(95)),
            ),
            (
                "convergence after the last fault, longest".to_owned(),
                seconds(at(100)),
            ),
        ]);
        Report {
            title: "Faults between the controller and its servers".to_owned(),
            about: "The controller reaches a real API server through a proxy that disturbs requests and watches by a seeded schedule, and \
                kills the controller at writes. Connections to registry and catalogd are refused, delayed, slowed and cut. After each \
                stage the faults end, and the cluster must reach the state that the spec determines, and rest. Every accepted change is \
                held against the invariants."
                .to_owned(),
            figures,
            violations: self.violations,
            not_covered: vec![
                "One extension at a time; the node is a stand-in.".to_owned(),
                "Lists without a resource version are never old: the API server guarantees that.".to_owned(),
            ],
            command: command.to_owned(),
            ran: None,
        }
    }
}
