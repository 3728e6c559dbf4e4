//! The swap of generations under crashes, refused system calls and interleavings.
//!
//! This program compiles the store's own sources with two other modules: a [`disk`] whose calls are recorded and refused, and locks
//! ([`sync`]) before which a scheduler chooses the next thread.
//!
//! `cargo test -p olm-catalogd --test generations -- --long --report FILE` runs the long version and writes a report.
//! `--seed N` is the seed of the first schedule.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and prints its totals"
)]

mod crash;
mod disk;
mod histories;
mod image;
mod interleave;
#[path = "../../src/storage/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the server uses the rest of the store"
)]
mod storage;
mod sync;

use std::{path::Path, process::ExitCode, time::Instant};

use olm_proof::{Report, Violation};

/// Number of random schedules: in every run of the tests, and in the long version.
const SCHEDULES: (usize, usize) = (60, 20_000);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let long = arguments.iter().any(|argument| argument == "--long");
    let seed = value("--seed").map_or(1, |seed| seed.parse().unwrap());
    let begin = Instant::now();
    let mut explorer = crash::Explorer::new(long);
    explorer.run();
    let (schedules, failures) = interleave::run(seed, if long { SCHEDULES.1 } else { SCHEDULES.0 });
    let found = explorer.findings;
    let violations: Vec<Violation> = (found.violations.into_iter().map(violation("whole after a crash")))
        .chain(failures.into_iter().map(violation("whole in every interleaving")))
        .collect();
    let figures = [
        ("crash points", found.points.to_string()),
        ("disks that these crashes may leave", found.disks.to_string()),
        ("different ones, each restarted", found.distinct.to_string()),
        ("refused system calls", found.refusals.to_string()),
        (
            "interleavings of three writers and two readers",
            schedules.to_string(),
        ),
        ("duration", format!("{} s", begin.elapsed().as_secs())),
    ];
    for (name, value) in &figures {
        println!("{name}: {value}");
    }
    for violation in &violations {
        println!(
            "VIOLATION {}: {}: {}",
            violation.invariant, violation.seed, violation.text
        );
    }
    let failed = usize::from(!violations.is_empty());
    println!(
        "test result: {}. {} passed; {failed} failed",
        if failed == 0 { "ok" } else { "FAILED" },
        1 - failed
    );
    if let Some(path) = value("--report") {
        report(
            figures.map(|(name, value)| (name.to_owned(), value)).into(),
            violations,
        )
        .write(Path::new(path))
        .unwrap();
    }
    ExitCode::from(u8::from(failed > 0))
}

fn violation(invariant: &'static str) -> impl Fn((String, String)) -> Violation {
    move |(seed, text)| Violation {
        invariant: invariant.to_owned(),
        seed,
        text,
    }
}

fn report(figures: Vec<(String, String)>, violations: Vec<Violation>) -> Report {
    Report {
        title: "Stores of catalogd".to_owned(),
        about: "A crash after each change of the disk, with every loss of entries and bytes that were not synced, a refusal of each system \
                call, and interleavings of readers and writers: the store serves the old or the new generation, whole, and a reader keeps \
                its own."
            .to_owned(),
        figures,
        violations,
        not_covered: vec![
            "A rename counts as one change of the disk; file systems that tear a rename apart are not covered.".to_owned(),
            "The threads that compress content are not scheduled: they share nothing but the order of their system calls.".to_owned(),
        ],
        command: "cargo test -p olm-catalogd --test generations -- --long --report FILE".to_owned(),
        ..Report::default()
    }
}
