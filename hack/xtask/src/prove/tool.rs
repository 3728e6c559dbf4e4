//! The programs of the proof, which are built with the controllers in one call of cargo. Separate calls would compile most crates
//! three times, as each program alone needs other features of them: on two cores, 20 minutes more.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, cargo};

/// Profile of the programs, which is also the name of their folder.
pub(crate) const PROFILE: &str = "proof";

/// A program with parts of the proof as its subcommands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tool {
    /// `simulate` of test/simulation.
    Simulate,
    /// `faults` of hack/faults.
    Faults,
}

impl Tool {
    /// Builds both programs and the controllers, and returns the command of this one. The programs find the controllers through
    /// `OLM_BIN_DIR`, which a user may have set to others.
    ///
    /// In this build, the controllers contain tokio's clock for tests, which only the simulation uses.
    ///
    /// # Errors
    /// A program does not build.
    pub(crate) fn command(self) -> anyhow::Result<Command> {
        shell::run(&mut build())?;
        let folder = folder();
        let mut command = Command::new(folder.join(self.program()));
        command.current_dir(shell::root());
        if std::env::var_os("OLM_BIN_DIR").is_none() {
            command.env("OLM_BIN_DIR", folder);
        }
        Ok(command)
    }

    /// Returns the arguments with which a user makes cargo run the program alone.
    pub(super) fn shown(self) -> String {
        let (package, program) = (self.package(), self.program());
        format!("run --profile {PROFILE} -p {package} --bin {program} --")
    }

    fn package(self) -> &'static str {
        match self {
            Self::Simulate => "olm-simulation",
            Self::Faults => "olm-faults",
        }
    }

    /// Returns the name of the program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Simulate => "simulate",
            Self::Faults => "faults",
        }
    }
}

/// Returns the call of cargo that builds the tools and the controllers. With `--bin NAME` it builds one program, with the same features of
/// all crates.
pub(crate) fn build() -> Command {
    let mut command = cargo();
    command.args(["build", "--profile", PROFILE, "--quiet"]);
    let tools = [Tool::Simulate, Tool::Faults].map(Tool::package);
    for package in tools.into_iter().chain(["catalogd", "operator-controller"]) {
        command.args(["--package", package]);
    }
    command
}

/// Returns the folder of the built programs.
pub(crate) fn folder() -> PathBuf {
    shell::target_dir().join(PROFILE)
}
