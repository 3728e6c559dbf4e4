//! The programs under test: found or built once, copied, and identified by a digest.

mod digest;

use std::path::Path;

use anyhow::{Context as _, Result};
use olm_harness::build_controllers;
use olm_harness::scratch::Scratch;

use crate::Command;
use digest::Code;

/// Command lines of the controllers; by default, those of this build.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Command line of operator-controller, see [`Command`].
    pub controller: Option<String>,
    /// Command line of catalogd.
    pub catalogd: Option<String>,
}

/// Both programs under test. Those of this project are copies, so that a build during a run changes nothing.
#[derive(Debug)]
pub struct Programs {
    pub(crate) controller: Command,
    pub(crate) catalogd: Command,
    code: String,
    _copies: Scratch,
}

impl Programs {
    /// Finds the programs of the commands; by default, builds those of this workspace or takes those of `OLM_BIN_DIR`.
    ///
    /// # Errors
    /// A program cannot be built, read or copied.
    pub async fn find(commands: &Commands) -> Result<Self> {
        let copies = Scratch::new("programs")?;
        let mut code = Code::default();
        let mut packages = vec!["olm-faults"];
        let mut command = async |name, given: Option<&String>, flags| {
            if let Some(text) = given {
                code.add_command(text)?;
                let text = text.clone();
                return Ok::<_, anyhow::Error>(Command { name, text });
            }
            let copy = copies.path().join(name);
            copy_program(&build_controllers().await?.join(name), &copy)?;
            if std::env::var_os("OLM_BIN_DIR").is_some() {
                code.add_file(&copy)?;
            } else {
                packages.push(name);
            }
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
        code.add_sources(&packages)?;
        Ok(Self {
            controller,
            catalogd,
            code: code.digest(),
            _copies: copies,
        })
    }

    /// Returns a digest of the code under test and of this crate. For programs that this run did not build, it covers their bytes.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }
}

fn copy_program(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
