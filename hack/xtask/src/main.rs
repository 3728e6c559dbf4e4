//! Development tasks of the project (chores): `cargo xtask CHORE`. Developers and CI run the same chores, most of them through
//! the Makefile.

mod attack;
mod check;
mod code;
mod dist;
mod fuzz;
mod generate;
mod mutants;
mod plans;
mod planted;
mod processors;
mod prove;
mod purity;
mod render_hash;
mod render_loss;
mod shell;
mod suites;
mod supply_chain;
mod sweep;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the project", version)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write the generated files (config/crd, docs/reference) anew.
    Generate {
        /// Write nothing; fail and name the CRDs that are stale. The pages of docs/reference are checked by the tests.
        #[arg(long)]
        check: bool,
    },
    /// Everything that needs no run: format, lints, generated files, purity, dependencies.
    Check,
    /// Fail when a pure crate links IO.
    Purity,
    /// Build what is missing, run every test of rings 1 to 3, and close with one line of totals.
    Test {
        /// Passed on to `cargo test`, for example `-p olm-version`; all crates when empty.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Build release binaries, run all attacks against them, and print outcomes and peaks of memory.
    Attack {
        /// Passed on to the attacks; see `cargo xtask attack -- --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Explore faults, crashes and delays, and write docs/proof.md.
    Prove(prove::Args),
    /// Run every fuzz target under libFuzzer; needs cargo-fuzz and a nightly toolchain.
    Fuzz(fuzz::Args),
    /// Change the code that decides, one place at a time, and count what its tests catch; needs cargo-mutants.
    Mutants(mutants::Args),
    /// Plant bugs in a copy of the controllers, one at a time, and count which of them the simulation finds.
    Planted(planted::Args),
    /// Check advisories, licences and sources of all crates, and the bill of materials of each program.
    SupplyChain(supply_chain::Args),
    /// Show the product at work: a control plane, a registry, both controllers, an install and an upgrade.
    Demo {
        /// Passed on to the demo; see `cargo xtask demo -- --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Write the files of a release: binaries, images, manifests, checksums, bill of materials.
    Dist(dist::Args),
    /// Render bundle folders and print one line for each: FOLDER, number of objects, hash of the list.
    RenderHash(sweep::Args),
    /// Render bundle folders and print each value of their manifests that the rendered objects lack: FOLDER, OBJECT, PATH, VALUE.
    RenderLoss(sweep::Args),
    /// Compare consecutive versions of bundle folders and print a line for each pair: FROM, TO, verdict of the plan.
    Plans(sweep::Args),
    /// Compare the YAML reader with Go's, on the files of folders or on mutations of them.
    Yaml {
        /// Passed on to the comparison; see `cargo xtask yaml -- --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Compare the simulated API server with kube-apiserver by random sequences of requests.
    World(world::Args),
    /// Compare with recorded answers: run every kind of vector that DIR holds.
    Vectors {
        /// The folder of vectors.
        dir: String,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Chore::Generate { check } => generate::run(check),
        Chore::Check => check::run(),
        Chore::Purity => purity::run(),
        Chore::Test { args } => suites::run(&args),
        Chore::Attack { args } => attack::run(&args),
        Chore::Prove(args) => prove::run(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Mutants(args) => mutants::run(&args),
        Chore::Planted(args) => planted::run(&args),
        Chore::SupplyChain(args) => supply_chain::run(&args),
        Chore::Demo { args } => shell::run(&mut shell::cargo_run("olm-harness", "demo", &args)),
        Chore::Dist(args) => dist::run(&args),
        Chore::RenderHash(args) => render_hash::run(&args),
        Chore::RenderLoss(args) => render_loss::run(&args),
        Chore::Plans(args) => plans::run(&args),
        Chore::Yaml { args } => shell::run(&mut shell::cargo_run("olm-integration", "yaml", &args)),
        Chore::World(args) => world::run(&args),
        Chore::Vectors { dir } => shell::run(&mut shell::cargo_run("olm-integration", "vectors", &[dir])),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
