//! A short part of the simulation: exact repetition, every scenario without a fault, former findings, and a sample of schedules.

use std::path::Path;

use olm_simulation::{Ending, Schedule, Stage, scenarios, watch_panics};

#[test]
fn a_schedule_repeats_exactly() {
    watch_panics();
    let stage = Stage::new().unwrap();
    let scenario = scenarios()
        .into_iter()
        .find(|scenario| scenario.name == "two")
        .unwrap();
    for text in [
        "seed=3 lag=3 40=crash-after 90=429",
        "seed=8 lag=1 31=applied-timeout",
        "deposed=60,20,5",
    ] {
        let schedule: Schedule = text.parse().unwrap();
        let run = || stage.run(&scenario, &schedule, Ending::Short, true).unwrap();
        let (first, second) = (run(), run());
        let differs = first
            .trace
            .iter()
            .zip(&second.trace)
            .find(|(one, other)| one != other);
        assert_eq!(differs, None, "{text}");
        assert_eq!(first.trace.len(), second.trace.len(), "{text}");
        // Two empty runs would be equal, too.
        assert!(
            first.met > 0 && first.trace.len() > 100,
            "{text}: {} faults and {} lines",
            first.met,
            first.trace.len()
        );
    }
}

#[test]
fn every_scenario_converges_without_a_fault_and_then_is_idle() {
    watch_panics();
    let stage = Stage::new().unwrap();
    for scenario in scenarios() {
        let outcome = stage
            .run(&scenario, &Schedule::default(), Ending::QuietHour, true)
            .unwrap();
        assert_eq!(outcome.violations, [], "{}", scenario.name);
        let calls = calls_without_need(&outcome.trace).unwrap();
        assert_eq!(
            !calls.is_empty(),
            RESTLESS.contains(&scenario.name),
            "{} in its quiet hour: {calls:#?}",
            scenario.name
        );
    }
}

/// Scenarios with further calls in their quiet hour. An extension that cannot be resolved, or whose account lacks a right, is looked at
/// again: nothing that is watched tells when it can go on. And a revision that was replaced before its deadline is looked at once more
/// at this time.
const RESTLESS: [&str; 4] = ["no-rights", "unresolvable", "downgrade", "history"];

/// Returns the calls in the last 55 minutes of a trace, except the start of watches and the question for the version of the cluster, which
/// is asked every minute because it has no watch. Lines begin with seconds, as in `3012.001 p0 GET /version -> 200`.
fn calls_without_need(trace: &[String]) -> Option<Vec<&str>> {
    let seconds = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
    let begin = seconds(trace.last()?)? - 55.0 * 60.0;
    let calls = trace
        .iter()
        .map(String::as_str)
        .filter(|line| seconds(line) > Some(begin))
        .filter(|line| {
            !line.ends_with(" -> watch")
                && !line.contains(" GET /version ")
                && !line.contains(" GET /apis/config.openshift.io/v1/clusterversions/version ")
        })
        .collect();
    Some(calls)
}

/// Schedules that once broke an invariant.
#[test]
fn former_findings_stay_mended() {
    watch_panics();
    let stage = Stage::new().unwrap();
    let mut idle = Vec::new();
    for (name, schedule) in [
        // A process that no longer leads overwrote the status of its successor, and its status stayed.
        ("overtaken", "deposed=169,18446744073709551615,30"),
        // Former content of a catalog led a rollout back to a lower version.
        ("two", "285=former"),
        // Conditions of an old generation were written beside those of a new one.
        ("upgrade", "79=lost-timeout"),
        // A process that no longer leads created, in its last write, an object of a revision that had been archived in the
        // meantime.
        ("overtaken", "deposed=129,18446744073709551615,30"),
        // Such a write created an object of a kind that no active revision has.
        ("unstuck", "deposed=185,18446744073709551615,30"),
        // A process that had read the extension before its deletion created its revision again.
        ("delete-early", "deposed=21,10,30"),
        // A late create took an object from the revision that had created it in the meantime, and the object was deleted.
        (
            "paused",
            "seed=655450128872055663 lag=3 12=crash-before 116=500 137=429",
        ),
        // The run ends in the middle of a rollout: while an extension is paused, and with nothing to roll back to.
        ("paused-stays", "41=lost-timeout"),
        ("rollback", "8=lost-timeout 42=crash-before"),
        // The start of the watch on catalogs hung for minutes, and bundles came from a deleted catalog.
        ("catalog-gone", "5=lost-timeout"),
        // A revision succeeded, but a pass that had seen it roll out wrote a revision of a lower version.
        ("downgrade", "18=lost-timeout"),
        // A process that no longer leads and did not know the catalog's new content overwrote the status of its successor.
        (
            "catalog-moves",
            "seed=12864030696123988231 lag=2 37=lost-cut 108=applied-timeout 173=lost-cut deposed=144,18,26",
        ),
        // A process that no longer leads created a Secret after the end of its extension, and the Secret stayed.
        ("secrets", "deposed=84,18446744073709551615,30"),
        // A process that no longer leads took a Helm release over during the removal of its extension. The next one did not see the
        // revision yet, let the extension go first, and the CRD of the release went with its custom resources.
        ("helm-delete-first", "deposed=7,10,30"),
    ] {
        let scenario = scenarios()
            .into_iter()
            .find(|scenario| scenario.name == name)
            .unwrap();
        let schedule: Schedule = schedule.parse().unwrap();
        let outcome = stage.run(&scenario, &schedule, Ending::Short, false).unwrap();
        assert_eq!(outcome.violations, [], "{name} {schedule}");
        // A fault that does not apply to the call of its number tests nothing.
        let wanted = schedule.faults.len() + usize::from(schedule.deposed.is_some());
        if outcome.met != wanted {
            idle.push(format!("{name} {schedule}: {} of {wanted} faults", outcome.met));
        }
    }
    assert!(
        idle.is_empty(),
        "these faults need other calls:\n{}",
        idle.join("\n")
    );
}

#[test]
fn a_sample_of_schedules_converges() {
    watch_panics();
    let stage = Stage::new().unwrap();
    let mut met = 0;
    for scenario in scenarios() {
        for seed in 1..=2 {
            let text = format!(
                "seed={seed} lag={seed} {}=crash-after {}=lost-cut",
                25 + seed,
                60 + seed
            );
            let schedule: Schedule = text.parse().unwrap();
            let outcome = stage.run(&scenario, &schedule, Ending::Short, false).unwrap();
            assert_eq!(outcome.violations, [], "{} {text}", scenario.name);
            met += outcome.met;
        }
    }
    assert!(met > 0, "no fault happened");
}

/// A planted bug with another scenario would be hunted nowhere.
#[test]
fn planted_bugs_name_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("planted");
    let known: Vec<&str> = scenarios().iter().map(|scenario| scenario.name).collect();
    let mut named = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let head = text.lines().take_while(|line| !line.starts_with("--- "));
        for name in head.filter_map(|line| line.strip_prefix("Scenario:")) {
            assert!(known.contains(&name.trim()), "{}: {name}", path.display());
            named += 1;
        }
    }
    assert!(named > 0, "no patch names a scenario");
}
