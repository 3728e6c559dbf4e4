//! Checks that do not run the product: format, lints, generated files, purity, dependencies.

use std::process::Command;

use anyhow::Context as _;

use crate::shell::{cargo, root};
use crate::{fuzz, generate, purity, shell};

/// The release of cargo-deny that is installed when there is none. Built once a machine.
const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Runs all checks in order of their cost; the first that fails ends the run.
pub(crate) fn run() -> anyhow::Result<()> {
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    shell::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    // The programs alone: tests enable features that releases do not have.
    shell::run(cargo().args([
        "check",
        "--locked",
        "--package",
        "catalogd",
        "--package",
        "operator-controller",
        "--package",
        "kubectl-olm",
    ]))?;
    generate::run(true)?;
    purity::run()?;
    fuzz_locks()?;
    deny()
}

/// Fails if the lock of a fuzz crate is older than its dependencies; the crates stand outside the workspace.
fn fuzz_locks() -> anyhow::Result<()> {
    for folder in fuzz::crates()? {
        shell::output(
            cargo()
                .current_dir(&folder)
                .args(["metadata", "--locked", "--format-version=1"]),
        )
        .with_context(|| {
            format!(
                "{0} is stale: run `cargo metadata` in its folder, and commit the lock",
                folder.join("Cargo.lock").display()
            )
        })?;
    }
    Ok(())
}

/// Licences, sources and doubled or banned crates, by deny.toml. Advisories need a fresh database from the network and change
/// without any change here, so `cargo xtask supply-chain` checks them.
pub(crate) fn deny() -> anyhow::Result<()> {
    let installed = shell::output(cargo().args(["deny", "--version"])).is_ok();
    if !installed {
        shell::run(
            Command::new("cargo")
                .current_dir(root())
                .args(["install", "--locked", CARGO_DENY]),
        )?;
    }
    // cargo-deny reads the manifests of every platform's crates; a build fetches only this platform's.
    shell::run(cargo().args(["fetch", "--locked"]))?;
    shell::run(cargo().args(["deny", "--offline", "check", "bans", "licenses", "sources"]))
}
