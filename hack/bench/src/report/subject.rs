//! The measured implementation (the subject): the controllers of this product, or those that a start script starts.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use olm_harness::{Catalogd, ControllerOptions, OperatorController, ProcessStats};
use tempfile::TempDir;

use super::stage::Stage;
use super::start_script::{Environment, StartScript};
use crate::load::Target;
use crate::world::target_of;

/// User name in requests of operator-controller.
pub(crate) const OPERATOR_CONTROLLER: &str = olm_harness::audit::OPERATOR_CONTROLLER;
/// User name in requests of catalogd.
pub(crate) const CATALOGD: &str = "catalogd";

/// An implementation to start.
#[derive(Clone, Debug)]
pub(crate) enum Implementation {
    /// This product, with the folder of its programs.
    Ours(PathBuf),
    /// Another implementation, with the command that starts it.
    Beside(String),
}

impl Implementation {
    /// Returns the name of the implementation's column in tables.
    pub(crate) fn column(&self) -> &'static str {
        match self {
            Self::Ours(_) => "here",
            Self::Beside(_) => "beside",
        }
    }
}

/// A running implementation. Dropping it ends its processes and deletes its caches.
pub(crate) struct Subject {
    running: Running,
    scratch: TempDir,
}

enum Running {
    Ours {
        catalogd: Box<Catalogd>,
        controller: Box<OperatorController>,
        programs: PathBuf,
    },
    Beside(Box<StartScript>),
}

/// The content server of catalogd, and its process if that is known.
pub(crate) struct ContentServer {
    /// Address of the server.
    pub(crate) target: Target,
    /// Process of catalogd.
    pub(crate) process: Option<ProcessStats>,
}

impl Subject {
    /// Starts an implementation with empty caches and waits until it is ready.
    pub(crate) async fn start(stage: &Stage, implementation: &Implementation) -> Result<Self> {
        let scratch = tempfile::tempdir().context("cannot create a folder for caches")?;
        let plane = &stage.world.plane;
        let admins = Some("system:masters");
        let kubeconfig = plane.kubeconfig_for(OPERATOR_CONTROLLER, admins)?;
        let catalogd_kubeconfig = plane.kubeconfig_for(CATALOGD, admins)?;
        let running = match implementation {
            Implementation::Ours(programs) => {
                let options = |name: &str, kubeconfig: PathBuf| ControllerOptions {
                    program: Some(programs.join(name)),
                    cache: Some(scratch.path().join(name)),
                    kubeconfig: Some(kubeconfig),
                    ..ControllerOptions::default()
                };
                let mut for_catalogd = options("catalogd", catalogd_kubeconfig);
                for_catalogd.args = [
                    "--feature-gates=GraphQLCatalogQueries=true",
                    // The default limit is below the number of idle clients.
                    "--catalogs-server-max-connections=4096",
                ]
                .map(ToOwned::to_owned)
                .to_vec();
                let registry = &stage.world.registry;
                let catalogd = Catalogd::start_with(plane, registry, for_catalogd).await?;
                let options = options("operator-controller", kubeconfig);
                let controller = OperatorController::start_with(plane, registry, options).await?;
                Running::Ours {
                    catalogd: Box::new(catalogd),
                    controller: Box::new(controller),
                    programs: programs.clone(),
                }
            }
            Implementation::Beside(command) => {
                let dir = |name: &str| {
                    let path = scratch.path().join(name);
                    fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
                    anyhow::Ok(path)
                };
                let environment = Environment {
                    kubeconfig,
                    catalogd_kubeconfig,
                    registry: stage.world.registry.host(),
                    scratch: dir("scratch")?,
                    log: dir("log")?,
                };
                Running::Beside(Box::new(StartScript::start(command, &environment).await?))
            }
        };
        Ok(Self { running, scratch })
    }

    /// Returns the process of operator-controller, if it is known.
    pub(crate) fn operator_controller(&mut self) -> Result<Option<ProcessStats>> {
        let pid = match &mut self.running {
            Running::Ours { controller, .. } => controller
                .controller()
                .process()
                .and_then(|process| process.pid()),
            Running::Beside(script) => script.pid("OPERATOR_CONTROLLER_PID")?,
        };
        Ok(pid.map(|pid| ProcessStats { pid }))
    }

    /// Returns the process of catalogd, if it is known.
    pub(crate) fn catalogd(&mut self) -> Result<Option<ProcessStats>> {
        let pid = match &mut self.running {
            Running::Ours { catalogd, .. } => {
                catalogd.controller().process().and_then(|process| process.pid())
            }
            Running::Beside(script) => script.pid("CATALOGD_PID")?,
        };
        Ok(pid.map(|pid| ProcessStats { pid }))
    }

    /// Returns the content server of catalogd, if it is known.
    pub(crate) async fn content(&mut self, stage: &Stage) -> Result<Option<ContentServer>> {
        let target = match &self.running {
            Running::Ours { catalogd, .. } => target_of(&stage.world.plane, catalogd).await?,
            Running::Beside(script) => {
                let (Some(url), Some(ca)) = (script.said("CATALOGD_URL"), script.said("CATALOGD_CA")) else {
                    return Ok(None);
                };
                let ca = fs::read(ca).with_context(|| format!("cannot read {ca}, the CA of --beside"))?;
                Target::new(url.trim_start_matches("https://").trim_end_matches('/'), &ca)?
            }
        };
        let process = self.catalogd()?;
        Ok(Some(ContentServer { target, process }))
    }

    /// Restarts operator-controller, or all programs of another implementation, and waits until it is ready.
    pub(crate) async fn restart_operator_controller(&mut self) -> Result<()> {
        match &mut self.running {
            Running::Ours { controller, .. } => controller.controller().restart().await,
            Running::Beside(script) => script.restart().await,
        }
    }

    /// Restarts catalogd, or all programs of another implementation. Returns the time from the start to readiness.
    pub(crate) async fn restart_catalogd(&mut self) -> Result<Duration> {
        match &mut self.running {
            Running::Ours { catalogd, .. } => {
                catalogd.controller().stop();
                let start = Instant::now();
                catalogd.controller().restart().await?;
                Ok(start.elapsed())
            }
            Running::Beside(script) => {
                let start = Instant::now();
                script.restart().await?;
                Ok(start.elapsed())
            }
        }
    }

    /// Ends all controllers.
    pub(crate) fn stop(&mut self) {
        match &mut self.running {
            Running::Ours {
                catalogd, controller, ..
            } => {
                controller.controller().stop();
                catalogd.controller().stop();
            }
            Running::Beside(script) => script.stop(),
        }
    }

    /// Returns the folder with the stored catalogs of this product, which has a folder for each catalog.
    pub(crate) fn stored_catalogs(&self) -> Option<PathBuf> {
        let ours = matches!(self.running, Running::Ours { .. });
        ours.then(|| self.scratch.path().join("catalogd").join("catalogs"))
    }

    /// Returns the path of a program of this product.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        match &self.running {
            Running::Ours { programs, .. } => Some(programs.join(name)),
            Running::Beside(_) => None,
        }
    }
}
