//! `cargo xtask check`: checks that do not run the product, such as format, lints, generated files, purity and dependencies.

use std::process::Command;

use anyhow::Context as _;

use crate::shell::{cargo, root};
use crate::{fuzz, generate, purity, shell};

/// Release of cargo-deny that is installed if the machine has none.
const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Runs all checks. The first failed check ends the run.
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
    // The programs are also checked alone, because tests enable features that releases do not have.
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

/// Fails if the Cargo.lock of a fuzz crate does not match its dependencies. These crates are not part of the workspace.
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

/// Checks licences, sources, and duplicate or banned crates, as deny.toml says. `cargo xtask supply-chain` checks advisories,
/// because these need a fresh database from the network and change without any change of the project.
pub(crate) fn deny() -> anyhow::Result<()> {
    let installed = shell::output(cargo().args(["deny", "--version"])).is_ok();
    if !installed {
        shell::run(
            Command::new("cargo")
                .current_dir(root())
                .args(["install", "--locked", CARGO_DENY]),
        )?;
    }
    // cargo-deny reads the manifests of the crates for all platforms, but a build fetches only those for its own platform.
    shell::run(cargo().args(["fetch", "--locked"]))?;
    shell::run(cargo().args(["deny", "--offline", "check", "bans", "licenses", "sources"]))
}
