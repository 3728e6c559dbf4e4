//! The parts of the proof and their commands.

use std::process::Command;

use crate::shell::cargo;

/// One part: a command that explores something and writes a report.
pub(crate) struct Part {
    /// Name for `--only`, and of the report.
    pub(crate) name: &'static str,
    /// Arguments of cargo, separated by spaces.
    program: &'static str,
    /// Further arguments that make it last seconds.
    short: &'static str,
    /// Further arguments of the whole proof.
    full: &'static str,
}

/// All parts, in the order of the page.
pub(crate) const PARTS: [Part; 12] = [
    Part {
        name: "world",
        program: "xtask world",
        short: "--sequences 50",
        full: "--sequences 100000",
    },
    Part {
        name: "explore",
        program: "run --profile proof --quiet -p olm-simulation --bin simulate -- explore",
        short: "--limit-seconds 5",
        full: "--limit-seconds 3600",
    },
    Part {
        name: "pairs",
        program: "run --profile proof --quiet -p olm-simulation --bin simulate -- pairs",
        short: "--limit-seconds 5",
        full: "--limit-seconds 3600",
    },
    Part {
        name: "real-pairs",
        program: "run --profile proof --quiet -p olm-simulation --bin simulate -- real-pairs",
        short: "--pairs 8",
        full: "--pairs 300",
    },
    Part {
        name: "planted",
        program: "xtask planted",
        // The bugs in production code need a build each.
        short: "--only seam --limit-seconds 5",
        full: "",
    },
    Part {
        name: "proxy",
        program: "run --quiet -p olm-faults --bin faults -- proxy",
        short: "--schedules 2",
        full: "--schedules 1000",
    },
    Part {
        name: "moments",
        program: "run --quiet -p olm-faults --bin faults -- moments",
        short: "--moments 1",
        full: "--moments 200",
    },
    Part {
        name: "surroundings",
        program: "run --quiet -p olm-faults --bin faults -- surroundings",
        short: "",
        full: "",
    },
    Part {
        name: "stores",
        program: "test --quiet -p olm-catalogd --test generations --",
        short: "",
        full: "--long",
    },
    Part {
        name: "mutants",
        program: "xtask mutants",
        short: "--only applier --shard 0/30",
        full: "",
    },
    Part {
        name: "fuzz",
        program: "xtask fuzz",
        short: "--seconds 2",
        full: "--seconds 600",
    },
    Part {
        name: "supply-chain",
        program: "xtask supply-chain",
        short: "",
        full: "",
    },
];

/// Returns the names of all parts.
pub(crate) fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

impl Part {
    /// Returns the command, without `--report`.
    pub(crate) fn command(&self, short: bool) -> Command {
        let mut command = cargo();
        command.args(self.words(short));
        command
    }

    /// Returns the command of the whole proof as a user types it.
    pub(crate) fn shown(&self) -> String {
        let words: Vec<&str> = self.words(false).collect();
        format!("cargo {}", words.join(" "))
    }

    fn words(&self, short: bool) -> impl Iterator<Item = &'static str> {
        let scale = if short { self.short } else { self.full };
        self.program.split(' ').chain(scale.split_whitespace())
    }
}
