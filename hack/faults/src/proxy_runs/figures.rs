//! Figures of the report about the schedules of faults.

use std::path::Path;

use anyhow::{Context as _, Result};
use olm_proof::Report;

use crate::results::Tally;

/// Name of the series of schedules in a tally.
pub(super) const SERIES: &str = "schedules";
/// Prefix of the names of counts of faults.
pub(super) const FAULT: &str = "fault: ";
/// Name of the durations from the end of a stage's faults to convergence.
pub(super) const CONVERGENCE: &str = "convergence";
const VIOLATIONS: &str = "violations per thousand schedules";
const BROKEN: &str = "schedules with violations";

/// Makes the report, without violations, from the sums.
pub(super) fn describe(tally: &Tally) -> Report {
    let schedules = tally.cases(SERIES);
    let count = |name: &str| tally.count(name).to_string();
    let thousandth =
        tally.count("violations") * 1000 / u64::try_from(schedules.len()).unwrap_or(u64::MAX).max(1);
    let faults: u64 = tally.counts(FAULT).map(|(_, count)| count).sum();
    let mut figures = vec![
        ("schedules".to_owned(), schedules.len().to_string()),
        ("seeds".to_owned(), schedules.to_string()),
        ("stages".to_owned(), count("stages")),
        (BROKEN.to_owned(), count("broken")),
        (VIOLATIONS.to_owned(), thousandth.to_string()),
        ("requests of the controller".to_owned(), count("requests")),
        ("changes held against the invariants".to_owned(), count("changes")),
        (
            "of these, changes by the controller".to_owned(),
            count("changes by the controller"),
        ),
        ("kills".to_owned(), count("kills")),
        ("faults".to_owned(), faults.to_string()),
    ];
    let kinds = tally.counts(FAULT);
    figures.extend(kinds.map(|(name, count)| (name.replacen(FAULT, "", 1), count.to_string())));
    figures.push((
        "convergence after the last fault: median, 95 of 100, longest".to_owned(),
        tally.spread(CONVERGENCE),
    ));
    Report {
        title: "Faults between the controller and its servers".to_owned(),
        about: "The controller reaches a real API server through a proxy that disturbs requests and watches by a seeded schedule, and \
            kills the controller at writes. Connections to registry and catalogd are refused, delayed, slowed and cut. After each \
            stage the faults end, and the cluster must reach the state that the spec determines, and rest. Every accepted change is \
            held against the invariants."
            .to_owned(),
        figures,
        not_covered: vec![
            "One extension at a time; the node is a stand-in.".to_owned(),
            "Without --stale-reads, lists without a resource version are never old: the API server guarantees that.".to_owned(),
            "Several schedules share the processor, each on a control plane of its own; times include their waiting.".to_owned(),
        ],
        ..Report::default()
    }
}

/// Returns figures of the report about another implementation, with its name before theirs. `given` is `NAME=FILE`.
pub(super) fn beside(given: &str) -> Result<Vec<(String, String)>> {
    let (name, file) = given
        .split_once('=')
        .with_context(|| format!("{given:?} is not NAME=FILE"))?;
    let report = Report::read(Path::new(file)).with_context(|| format!("cannot read {file}"))?;
    let chosen = ["schedules", "seeds", BROKEN, VIOLATIONS];
    let mut figures: Vec<(String, String)> = report
        .figures
        .into_iter()
        .filter(|(what, _)| chosen.contains(&what.as_str()))
        .map(|(what, figure)| (format!("{name}: {what}"), figure))
        .collect();
    let mut kinds = std::collections::BTreeMap::<&str, u64>::new();
    for violation in &report.violations {
        *kinds.entry(&violation.invariant).or_default() += 1;
    }
    if !kinds.is_empty() {
        let listed: Vec<String> = kinds
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        figures.push((format!("{name}: violations by invariant"), listed.join(", ")));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use olm_proof::Violation;

    use super::*;

    #[test]
    fn the_report_of_another_implementation_is_summed_up_under_its_name() {
        let mut tally = Tally::default();
        for seed in 1..=4 {
            tally.end(SERIES, seed);
        }
        tally.add("broken", 1);
        tally.add("violations", 2);
        let mut report = describe(&tally);
        let violation = |invariant: &str| Violation {
            invariant: invariant.to_owned(),
            seed: String::new(),
            text: String::new(),
        };
        report.violations = vec![violation("convergence"), violation("newest-stays")];
        let file = tempfile::NamedTempFile::new().unwrap();
        report.write(file.path()).unwrap();
        let rows = beside(&format!("other 1.0={}", file.path().display())).unwrap();
        let row = |what: &str| {
            let what = format!("other 1.0: {what}");
            rows.iter().find(|(name, _)| *name == what).unwrap().1.as_str()
        };
        assert_eq!((row("schedules"), row("seeds")), ("4", "1-4"));
        assert_eq!(row("violations per thousand schedules"), "500");
        assert_eq!(row("violations by invariant"), "convergence 1, newest-stays 1");
        assert!(beside("nothing").is_err());
    }
}
