//! The report of `cargo xtask fuzz` about all targets.

use olm_proof::{Report, Violation};

use super::stats::Stats;
use super::totals::{Total, Totals};
use super::{Args, MAX_LENGTH, MEMORY, TIMEOUT};

/// Processor time of each target in the whole proof, in seconds; an argument of the part `fuzz`.
const ASKED: u64 = 600;

/// Returns the figures of a target as text.
fn figure(total: &Total) -> String {
    let Stats {
        runs, edges, inputs, ..
    } = total.stats;
    format!(
        "{runs} runs in {} s, {edges} edges covered, {inputs} inputs, {} findings{}",
        total.seconds,
        total.findings.len(),
        if total.is_old { ", of earlier code" } else { "" }
    )
}

/// Prints the totals, and returns the paths of the inputs that break targets.
#[expect(clippy::print_stdout, reason = "the totals are this chore's result")]
pub(super) fn print(totals: &Totals) -> Vec<&str> {
    let mut findings = Vec::new();
    for (title, total) in totals.iter() {
        println!("{title}: {}", figure(total));
        findings.extend(total.findings.iter().map(String::as_str));
    }
    let runs: u64 = totals.iter().map(|(_, total)| total.stats.runs).sum();
    let targets = totals.iter().count();
    println!("{targets} targets, {runs} runs, {} findings", findings.len());
    findings
}

/// Returns the report.
pub(super) fn report(totals: &Totals, args: &Args) -> Report {
    let sum = |of: fn(&Stats) -> u64| {
        let sum: u64 = totals.iter().map(|(_, total)| of(&total.stats)).sum();
        sum.to_string()
    };
    let shorter = |seconds: u64| {
        let shorter = totals.iter().filter(|(_, total)| total.seconds < seconds);
        shorter.count()
    };
    let mut figures = vec![
        ("targets".to_owned(), totals.iter().count().to_string()),
        (
            format!("targets that ran for less than {ASKED} s"),
            shorter(ASKED).to_string(),
        ),
        ("runs".to_owned(), sum(|stats| stats.runs)),
        ("seeds in the repository".to_owned(), sum(|stats| stats.seeds)),
    ];
    let mut violations = Vec::new();
    for (title, total) in totals.iter() {
        figures.push((title.to_owned(), figure(total)));
        violations.extend(total.findings.iter().map(|path| Violation {
            invariant: "fuzz".to_owned(),
            seed: path.clone(),
            text: format!("An input breaks the fuzz target {title}."),
        }));
    }
    let only = args.only.iter().map(|text| format!(" --only {text}"));
    Report {
        title: "Fuzzing".to_owned(),
        about: format!(
            "Every parser of foreign bytes runs under libFuzzer and the address sanitizer, with inputs of at most {MAX_LENGTH} bytes, \
             {TIMEOUT} s for an input and {MEMORY} MiB of memory. Seconds are those of a \
             processor; they add up over runs of the same code."
        ),
        figures,
        violations,
        not_covered: vec![
            format!("Inputs above {MAX_LENGTH} bytes: property tests and `cargo xtask attack` cover them."),
            "Inputs that were found are kept on the machine of the run. A run elsewhere starts from the seeds, and its seconds still add up."
                .to_owned(),
        ],
        command: format!(
            "cargo xtask fuzz --seconds {}{}",
            args.seconds,
            only.collect::<String>()
        ),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::ASKED;
    use crate::prove;

    #[test]
    fn the_proof_asks_for_the_seconds() {
        let command = prove::part("fuzz").unwrap().shown();
        assert!(command.ends_with(&format!(" --seconds {ASKED}")), "{command}");
    }
}
