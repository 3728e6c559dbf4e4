//! The programs under test. Programs of this project are built or found once, and copied.

use std::path::Path;

use anyhow::{Context as _, Result};
use olm_harness::build_controllers;
use olm_harness::scratch::Scratch;

use crate::Command;

/// Command lines of the controllers; by default, the programs of this build.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Command line of operator-controller, see [`Command`].
    pub controller: Option<String>,
    /// Command line of catalogd.
    pub catalogd: Option<String>,
}

/// Both programs under test. Programs of this project are copies, so that a build during a run does not change them.
#[derive(Debug)]
pub struct Programs {
    pub(crate) controller: Command,
    pub(crate) catalogd: Command,
    _copies: Scratch,
}

impl Programs {
    /// Returns the programs of the given command lines. Without a command line, builds the program of this workspace, or takes
    /// that of `OLM_BIN_DIR`.
    ///
    /// # Errors
    /// A program cannot be built, read or copied.
    pub async fn find(commands: &Commands) -> Result<Self> {
        let copies = Scratch::new("programs")?;
        let command = async |name, given: Option<&String>, flags| {
            if let Some(text) = given {
                let text = text.clone();
                return Ok::<_, anyhow::Error>(Command { name, text });
            }
            let copy = copies.path().join(name);
            copy_program(&build_controllers().await?.join(name), &copy)?;
            let text = format!(
                "{} --kubeconfig={{kubeconfig}} --health-probe-bind-address={{health}} --plain-http-registry={{registry}} {flags}",
                copy.display()
            );
            Ok(Command { name, text })
        };
        let catalogd = command(
            "catalogd",
            commands.catalogd.as_ref(),
            "--cache-dir={cache} --catalogs-server-addr={content} --external-address={catalogd} --shutdown-delay=0s",
        )
        .await?;
        let controller = command(
            "operator-controller",
            commands.controller.as_ref(),
            "--cache-path={cache}",
        )
        .await?;
        Ok(Self {
            controller,
            catalogd,
            _copies: copies,
        })
    }
}

fn copy_program(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
