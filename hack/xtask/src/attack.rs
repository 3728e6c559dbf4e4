//! `cargo xtask attack`: runs the attacks of `test/attack` against release binaries.

use crate::shell::{self, cargo};

/// Builds release binaries of both controllers, unless `OLM_BIN_DIR` names others, and runs the attacks against them.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let given = std::env::var_os("OLM_BIN_DIR");
    if given.is_none() {
        shell::run(cargo().args([
            "build",
            "--release",
            "--package",
            "catalogd",
            "--package",
            "operator-controller",
        ]))?;
    }
    let programs = given.map_or_else(|| shell::target_dir().join("release"), Into::into);
    let mut attacks = shell::cargo_run("olm-attack", "olm-attack", args);
    shell::run(attacks.env("OLM_BIN_DIR", programs))
}
