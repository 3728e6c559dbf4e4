//! The real catalogd and operator-controller, which run outside the cluster on the control plane.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};

use crate::ports::Port;
use crate::process::{Process, Spawn};
use crate::scratch::Scratch;
use crate::wait::eventually;
use crate::{ControlPlane, Registry, registries_conf, tls, workspace};

/// Namespace of the controllers' own objects.
pub const SYSTEM_NAMESPACE: &str = "olmv1-system";
const START_LIMIT: Duration = Duration::from_mins(1);
const BUILD_LIMIT: Duration = Duration::from_hours(1);
const GRACE_SECONDS: u32 = 5;

/// Options for the start of a controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerOptions {
    /// Path of the program, for example of a release build; by default the one of this build.
    pub program: Option<PathBuf>,
    /// Additional arguments.
    pub args: Vec<String>,
    /// Additional environment variables.
    pub envs: Vec<(String, String)>,
    /// Kubeconfig with other rights than the administrator's.
    pub kubeconfig: Option<PathBuf>,
    /// Content of `registries.conf`; by default [`registries_conf::only`], which blocks all other registries.
    pub registries_conf: Option<String>,
    /// Cache directory that outlives the controller.
    pub cache: Option<PathBuf>,
}

/// Builds both programs once per process, with the profile `proof` if this crate is optimised, unless `OLM_BIN_DIR` names a directory with them.
///
/// # Errors
/// cargo fails; its output is on stderr.
pub async fn build_controllers() -> Result<PathBuf> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::const_new(None);
    let mut built = BUILT.lock().await;
    if let Some(dir) = built.as_ref() {
        return Ok(dir.clone());
    }
    let dir = match std::env::var_os("OLM_BIN_DIR").map(PathBuf::from) {
        Some(dir) => dir,
        None => cargo_build(&["catalogd", "operator-controller"]).await?,
    };
    for name in [Kind::Catalogd.name(), Kind::OperatorController.name()] {
        if !dir.join(name).is_file() {
            bail!("{} holds no {name}", dir.display());
        }
    }
    Ok(built.insert(dir).clone())
}

/// Returns the path of `kubectl-olm`; builds it once per process, unless `OLM_BIN_DIR` names a directory with it.
///
/// # Errors
/// cargo fails; its output is on stderr.
pub async fn kubectl_olm() -> Result<PathBuf> {
    static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
    let dir = BUILT
        .get_or_try_init(
            async || match std::env::var_os("OLM_BIN_DIR").map(PathBuf::from) {
                Some(dir) => Ok(dir),
                None => cargo_build(&["kubectl-olm"]).await,
            },
        )
        .await?;
    let program = dir.join("kubectl-olm");
    if !program.is_file() {
        bail!("{} holds no kubectl-olm", dir.display());
    }
    Ok(program)
}

async fn cargo_build(packages: &'static [&'static str]) -> Result<PathBuf> {
    let (profile, folder) = if cfg!(debug_assertions) {
        ("dev", "debug")
    } else {
        ("proof", "proof")
    };
    let status = tokio::task::spawn_blocking(move || {
        let logs = Scratch::new("cargo")?;
        let mut cargo = Spawn::new("cargo", workspace::cargo())
            .args(["build", "--profile", profile])
            .args(packages.iter().flat_map(|package| ["--package", package]))
            .directory(workspace::root())
            .visible()
            .spawn(logs.path())?;
        cargo.wait(BUILD_LIMIT)
    });
    let status = status.await.context("the build's thread ended")??;
    if !status.success() {
        bail!(
            "cargo build of {} failed ({status}); its output is above",
            packages.join(" and ")
        );
    }
    Ok(workspace::target_dir().join(folder))
}

/// A running catalogd. Dropping it stops the process.
#[derive(Debug)]
pub struct Catalogd {
    controller: Controller,
    port: Port,
}

impl Catalogd {
    /// Starts a catalogd that can reach only this registry.
    ///
    /// # Errors
    /// The build fails or catalogd does not become ready; the message has the tail of its log.
    pub async fn start(control_plane: &ControlPlane, registry: &Registry) -> Result<Self> {
        Self::start_with(control_plane, registry, ControllerOptions::default()).await
    }

    /// Variant of [`Catalogd::start`] with options.
    ///
    /// # Errors
    /// Those of [`Catalogd::start`].
    pub async fn start_with(
        control_plane: &ControlPlane,
        registry: &Registry,
        options: ControllerOptions,
    ) -> Result<Self> {
        let port = Port::reserve()?;
        let address = port.address();
        let args = vec![
            format!("--catalogs-server-addr={address}"),
            format!("--external-address={address}"),
            // Clients need no time to notice the shutdown, unless a test is about that.
            "--shutdown-delay=0s".to_owned(),
        ];
        let controller = Controller::start(Kind::Catalogd, control_plane, registry, options, args).await?;
        Ok(Self { controller, port })
    }

    /// Returns `https://127.0.0.1:PORT`, the URL of the content server.
    pub fn url(&self) -> String {
        format!("https://{}", self.port.address())
    }

    /// Returns the controller: process, log, restart.
    pub fn controller(&mut self) -> &mut Controller {
        &mut self.controller
    }
}

/// A running operator-controller. Dropping it stops the process.
#[derive(Debug)]
pub struct OperatorController {
    controller: Controller,
}

impl OperatorController {
    /// Starts an operator-controller that can reach only this registry.
    ///
    /// # Errors
    /// The build fails or the controller does not become ready; the message has the tail of its log.
    pub async fn start(control_plane: &ControlPlane, registry: &Registry) -> Result<Self> {
        Self::start_with(control_plane, registry, ControllerOptions::default()).await
    }

    /// Variant of [`OperatorController::start`] with options.
    ///
    /// # Errors
    /// Those of [`OperatorController::start`].
    pub async fn start_with(
        control_plane: &ControlPlane,
        registry: &Registry,
        options: ControllerOptions,
    ) -> Result<Self> {
        let kind = Kind::OperatorController;
        let controller = Controller::start(kind, control_plane, registry, options, Vec::new()).await?;
        Ok(Self { controller })
    }

    /// Returns the controller: process, log, restart.
    pub fn controller(&mut self) -> &mut Controller {
        &mut self.controller
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Catalogd,
    OperatorController,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd",
            Self::OperatorController => "operator-controller",
        }
    }

    fn cache_flag(self) -> &'static str {
        match self {
            Self::Catalogd => "cache-dir",
            Self::OperatorController => "cache-path",
        }
    }
}

/// A running controller.
#[derive(Debug)]
pub struct Controller {
    process: Option<Process>,
    kind: Kind,
    program: PathBuf,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    health: Port,
    scratch: Scratch,
}

impl Controller {
    async fn start(
        kind: Kind,
        control_plane: &ControlPlane,
        registry: &Registry,
        options: ControllerOptions,
        mut args: Vec<String>,
    ) -> Result<Self> {
        let program = match options.program {
            Some(program) => program,
            None => build_controllers().await?.join(kind.name()),
        };
        ensure_namespace(control_plane).await?;
        let mut scratch = Scratch::new(kind.name())?;
        let cache = match options.cache {
            Some(dir) => dir,
            None => scratch.bulky_dir("cache")?,
        };
        let conf_text = options
            .registries_conf
            .unwrap_or_else(|| registries_conf::only(&registry.host()));
        let conf = scratch.path().join("registries.conf");
        std::fs::write(&conf, conf_text).with_context(|| format!("cannot write {}", conf.display()))?;
        let health = Port::reserve()?;
        let kubeconfig = options
            .kubeconfig
            .unwrap_or_else(|| control_plane.kubeconfig().to_owned());
        args.push(format!("--kubeconfig={}", kubeconfig.display()));
        args.push(format!("--{}={}", kind.cache_flag(), cache.display()));
        args.push(format!("--health-probe-bind-address={}", health.address()));
        if registry.ca_pem().is_none() {
            args.push(format!("--plain-http-registry={}", registry.host()));
        }
        args.extend(options.args);
        let mut envs = vec![(
            "CONTAINERS_REGISTRIES_CONF".to_owned(),
            conf.display().to_string(),
        )];
        envs.extend(options.envs);
        let mut controller = Self {
            process: None,
            kind,
            program,
            args,
            envs,
            health,
            scratch,
        };
        if let Err(error) = controller.restart().await {
            controller.scratch.keep();
            return Err(error);
        }
        Ok(controller)
    }

    /// Stops a running process with TERM, and starts it again with the same arguments and cache.
    ///
    /// # Errors
    /// The process does not become ready; the message has the tail of its log.
    pub async fn restart(&mut self) -> Result<()> {
        self.stop();
        let mut spawn = Spawn::new(self.kind.name(), &self.program)
            .args(&self.args)
            .env_remove("KUBECONFIG")
            // People and tests read the logs in files.
            .env("NO_COLOR", "1")
            .grace_seconds(GRACE_SECONDS);
        for (key, value) in &self.envs {
            spawn = spawn.env(key, value);
        }
        let mut process = spawn.spawn(self.scratch.path())?;
        let client = tls::http_client(None)?;
        let url = self.ready_url();
        let ready = eventually(
            START_LIMIT,
            &format!("{} is ready", self.kind.name()),
            async || {
                if let Err(ended) = process.check() {
                    return Ok(Err(ended));
                }
                client
                    .get(&url)
                    .timeout(Duration::from_secs(2))
                    .send()
                    .await?
                    .error_for_status()?;
                Ok(Ok(()))
            },
        )
        .await;
        ready.unwrap_or_else(|timeout| Err(timeout.context(process.tail(30))))?;
        self.process = Some(process);
        Ok(())
    }

    /// Stops the process, with TERM first.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Returns the process, unless it was stopped.
    pub fn process(&mut self) -> Option<&mut Process> {
        self.process.as_mut()
    }

    /// Returns `http://127.0.0.1:PORT/readyz`.
    pub fn ready_url(&self) -> String {
        format!("http://{}/readyz", self.health.address())
    }

    /// Returns the path of the log.
    pub fn log(&self) -> PathBuf {
        self.scratch.path().join(format!("{}.log", self.kind.name()))
    }

    /// Returns the directory of the log and, by default, of the cache.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Keeps the log after the drop, even if no test failed.
    pub fn keep_logs(&mut self) {
        self.scratch.keep();
    }

    /// Returns an error with the log's tail if the process has exited.
    ///
    /// # Errors
    /// The process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::check)
    }

    /// Returns the last lines of the log.
    pub fn tail(&self, lines: usize) -> String {
        self.process
            .as_ref()
            .map(|process| process.tail(lines))
            .unwrap_or_default()
    }
}

async fn ensure_namespace(control_plane: &ControlPlane) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(control_plane.client());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
    namespaces
        .patch(
            SYSTEM_NAMESPACE,
            &PatchParams::apply("olm-harness"),
            &Patch::Apply(&namespace),
        )
        .await
        .with_context(|| format!("cannot make the namespace {SYSTEM_NAMESPACE}"))?;
    Ok(())
}
