//! Real operators from the real catalog, through real registry pulls: install, upgrade along the graph, delete.
//!
//! The content is read from the folder that `OLM_VECTORS` names (`catalogs/`, `bundles/`, `render/`). Only the
//! bundles that are there are pushed; every other host is rewritten to the local registry or blocked, so nothing
//! leaves the machine. The operators' own containers cannot run here: the pod stand-in marks their pods ready.

mod content;
mod plan;
mod run;

use std::io::Write as _;
use std::path::PathBuf;

#[tokio::test(flavor = "multi_thread")]
async fn real_operators_install_upgrade_and_go() -> anyhow::Result<()> {
    let Some(vectors) = std::env::var_os("OLM_VECTORS").map(PathBuf::from) else {
        // Written past the test runner's capture, so that nobody takes this run for a full one.
        writeln!(
            std::io::stderr(),
            "SKIPPED: OLM_VECTORS is not set, so no real operator was installed"
        )?;
        return Ok(());
    };
    let outcomes = run::all(&vectors).await?;
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.failure.is_some())
        .map(|outcome| outcome.package)
        .collect();
    anyhow::ensure!(
        failed.is_empty(),
        "not all real operators went through: {failed:?}"
    );
    Ok(())
}
