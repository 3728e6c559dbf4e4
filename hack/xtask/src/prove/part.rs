//! The parts of the proof: their commands, and the code that they cover.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::Context as _;

use super::tool::Tool;
use crate::code::{self, Checkout, Packages};
use crate::shell::cargo;

/// A part of the proof: a command that explores something and writes a report.
pub(crate) struct Part {
    /// Name of the part for `--only`, and of its report.
    pub(crate) name: &'static str,
    program: Program,
    /// Further arguments for `--short`, with which the program takes seconds.
    short: &'static str,
    /// Further arguments for the whole proof.
    full: &'static str,
    /// Code whose change makes the report outdated: folders, files and crates. A crate includes the workspace's crates that it
    /// needs.
    covers: &'static [&'static str],
    /// Rule by which later runs add to the results of earlier ones.
    pub(super) adds_up: AddsUp,
}

/// Program of a part.
#[derive(Clone, Copy, Debug)]
enum Program {
    /// Arguments of cargo that run the program, separated by spaces.
    Cargo(&'static str),
    /// A tool and its subcommand.
    Tool(Tool, &'static str),
}

/// Rule by which later runs of a part add to the results in its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddsUp {
    /// Every run starts anew.
    No,
    /// The part gets the digest of the code that it covers as an argument, and continues results of the same code.
    OfSameCode,
    /// The part decides for each of its results if it still holds, and adds commit, code, date and duration to its report itself.
    OfEachResult,
}

/// Crates with fuzz targets, and the folders of these targets.
const FUZZED: [&str; 22] = [
    "olm-bundle",
    "pkg/bundle/fuzz/fuzz_targets",
    "olm-catalogd",
    "pkg/catalogd/fuzz/fuzz_targets",
    "olm-cel",
    "pkg/cel/fuzz/fuzz_targets",
    "olm-fbc",
    "pkg/fbc/fuzz/fuzz_targets",
    "olm-image",
    "pkg/image/fuzz/fuzz_targets",
    "olm-resolve",
    "pkg/resolve/fuzz/fuzz_targets",
    "olm-rollout",
    "pkg/rollout/fuzz/fuzz_targets",
    "olm-text",
    "pkg/text/fuzz/fuzz_targets",
    "olm-ui",
    "pkg/ui/fuzz/fuzz_targets",
    "olm-version",
    "pkg/version/fuzz/fuzz_targets",
    "olm-yaml",
    "pkg/yaml/fuzz/fuzz_targets",
];

/// All parts, in the order of the page.
pub(crate) const PARTS: [Part; 13] = [
    Part {
        name: "world",
        program: Program::Cargo("xtask world"),
        short: "--sequences 50",
        full: "--sequences 100000",
        covers: &[
            "config/crd",
            "hack/controlplane/go.mod",
            "hack/controlplane/main.go",
            "pkg/bundle/src/crd_schema",
            "pkg/cel",
            "test/harness/src/control_plane.rs",
            "test/world/src",
            "test/world/tests/differential",
        ],
        adds_up: AddsUp::OfSameCode,
    },
    Part {
        name: "refinement",
        program: Program::Cargo("test --quiet -p olm-e2e --test features --"),
        // One scenario of a removal.
        short: "--name Everything",
        full: "",
        covers: &[
            "catalogd",
            "operator-controller",
            "config",
            "olm-world",
            "test/e2e/features",
        ],
        adds_up: AddsUp::No,
    },
    Part {
        name: "explore",
        program: Program::Tool(Tool::Simulate, "explore"),
        short: "--limit-seconds 5",
        full: "--limit-seconds 3600",
        covers: &["olm-simulation", "config"],
        adds_up: AddsUp::OfSameCode,
    },
    Part {
        name: "pairs",
        program: Program::Tool(Tool::Simulate, "pairs"),
        short: "--limit-seconds 5",
        full: "--limit-seconds 5400",
        covers: &["olm-simulation", "test/simulation/src/pairs", "config"],
        adds_up: AddsUp::No,
    },
    Part {
        name: "real-pairs",
        program: Program::Tool(Tool::Simulate, "real-pairs"),
        short: "--pairs 8",
        full: "--pairs 300",
        covers: &["olm-simulation", "test/simulation/src/pairs", "config"],
        adds_up: AddsUp::No,
    },
    Part {
        name: "planted",
        program: Program::Cargo("xtask planted"),
        // Each bug in production code needs a build, so only the bugs between the controllers and the network are tried.
        short: "--only seam --limit-seconds 5 --anew",
        full: "",
        covers: &["olm-simulation", "config", "test/simulation/planted"],
        adds_up: AddsUp::OfEachResult,
    },
    Part {
        name: "proxy",
        program: Program::Tool(Tool::Faults, "proxy"),
        short: "--schedules 2",
        full: "--schedules 1000 --workers 4",
        covers: &["olm-faults", "catalogd", "operator-controller", "config"],
        adds_up: AddsUp::OfSameCode,
    },
    Part {
        name: "moments",
        program: Program::Tool(Tool::Faults, "moments"),
        short: "--moments 1",
        full: "--moments 200 --workers 4",
        covers: &["olm-faults", "catalogd", "operator-controller", "config"],
        adds_up: AddsUp::OfSameCode,
    },
    Part {
        name: "surroundings",
        program: Program::Tool(Tool::Faults, "surroundings"),
        short: "",
        full: "",
        covers: &["olm-faults", "catalogd", "operator-controller", "config"],
        adds_up: AddsUp::No,
    },
    Part {
        name: "stores",
        program: Program::Cargo("test --quiet -p olm-catalogd --test generations --"),
        short: "",
        full: "--long",
        covers: &["olm-catalogd", "pkg/catalogd/tests/generations"],
        adds_up: AddsUp::No,
    },
    Part {
        name: "mutants",
        program: Program::Cargo("xtask mutants"),
        short: "--only status --shard 0/100 --anew",
        full: "",
        covers: &[
            "olm-applier",
            "olm-decide",
            "olm-plan",
            "olm-resolve",
            "olm-status",
        ],
        adds_up: AddsUp::OfEachResult,
    },
    Part {
        name: "fuzz",
        program: Program::Cargo("xtask fuzz"),
        short: "--seconds 2 --anew",
        full: "--seconds 600",
        covers: &FUZZED,
        adds_up: AddsUp::OfEachResult,
    },
    Part {
        name: "supply-chain",
        program: Program::Cargo("xtask supply-chain"),
        short: "",
        full: "--builds",
        covers: &["Cargo.lock", "deny.toml"],
        adds_up: AddsUp::No,
    },
];

/// Returns the part with this name.
///
/// # Errors
/// The proof has no such part.
pub(crate) fn named(name: &str) -> anyhow::Result<&'static Part> {
    PARTS
        .iter()
        .find(|part| part.name == name)
        .with_context(|| format!("the proof has no part {name}"))
}

/// Returns the names of all parts.
pub(crate) fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

impl Part {
    /// Returns the command, without `--report`. Arguments in `scale` take the place of the part's own arguments.
    ///
    /// # Errors
    /// The program of the part has to be built first, and does not build.
    pub(crate) fn command(&self, short: bool, scale: &[String]) -> anyhow::Result<Command> {
        let mut command = match self.program {
            Program::Cargo(words) => {
                let mut command = cargo();
                command.args(words.split(' '));
                command
            }
            Program::Tool(tool, subcommand) => {
                let mut command = tool.command()?;
                command.arg(subcommand);
                command
            }
        };
        command.args(self.arguments(short, scale));
        Ok(command)
    }

    /// Returns the command for the whole proof, as a user types it.
    pub(crate) fn shown(&self) -> String {
        self.typed(false, &[])
    }

    /// Returns the command of [`Part::command`], as a user types it.
    pub(super) fn typed(&self, short: bool, scale: &[String]) -> String {
        let program = match self.program {
            Program::Cargo(words) => words.to_owned(),
            Program::Tool(tool, subcommand) => format!("{} {subcommand}", tool.shown()),
        };
        let arguments = self.arguments(short, scale).join(" ");
        format!("cargo {program} {arguments}").trim_end().to_owned()
    }

    /// Returns the folders and files that the part covers.
    pub(crate) fn covered(&self, packages: &Packages) -> anyhow::Result<BTreeSet<String>> {
        let mut covered = BTreeSet::new();
        for name in self.covers {
            if packages.has(name) {
                covered.extend(packages.closure(name, false)?);
            } else {
                covered.insert((*name).to_owned());
            }
        }
        Ok(covered)
    }

    /// Returns the digests of the code that the part covers.
    pub(crate) fn digests(&self, checkout: &Checkout) -> anyhow::Result<BTreeMap<String, String>> {
        Ok(code::digests(&checkout.files, &self.covered(&checkout.packages)?))
    }

    /// Returns the arguments in `scale`; if there are none, the part's own ones for the short or the whole proof.
    fn arguments(&self, short: bool, scale: &[String]) -> Vec<String> {
        if !scale.is_empty() {
            return scale.to_vec();
        }
        let own = if short { self.short } else { self.full };
        own.split_whitespace().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Files;
    use crate::fuzz;
    use crate::shell::root;

    #[test]
    fn the_code_of_every_part_exists() {
        let (packages, files) = (Packages::read().unwrap(), Files::now().unwrap());
        for part in &PARTS {
            let covered = part.covered(&packages).unwrap();
            assert!(!covered.is_empty(), "{}", part.name);
            for name in covered {
                assert!(files.has(&name), "{}: {name}", part.name);
            }
        }
    }

    #[test]
    fn the_typed_command_has_the_arguments_of_the_run() {
        let part = named("explore").unwrap();
        let scale = ["--limit-seconds", "60", "--seed", "2"].map(str::to_owned);
        let typed = part.typed(false, &scale);
        assert!(typed.ends_with(" explore --limit-seconds 60 --seed 2"), "{typed}");
        assert!(part.typed(true, &[]).ends_with(" explore --limit-seconds 5"));
        assert_eq!(part.typed(false, &[]), part.shown());
    }

    #[test]
    fn the_part_of_fuzzing_covers_every_fuzz_crate() {
        let covered = named("fuzz")
            .unwrap()
            .covered(&Packages::read().unwrap())
            .unwrap();
        for folder in fuzz::crates().unwrap() {
            let below = folder.strip_prefix(root()).unwrap().display().to_string();
            assert!(covered.contains(&format!("{below}/fuzz_targets")), "{below}");
        }
    }
}
