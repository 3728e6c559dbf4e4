//! Real etcd, kube-apiserver and kube-controller-manager, on ports of their own.
//!
//! Without nodes and scheduler no containers run. See [`crate::PodStandIn`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::assets::Assets;
use crate::audit::{self, Audit};
use crate::pki::{self, Authority};
use crate::ports::Port;
use crate::process::{Process, Spawn};
use crate::scratch::Scratch;
use crate::settings::Settings;
use crate::wait::eventually;
use crate::{kubeconfig, tls};

/// Startup usually takes three seconds; cold page caches and two busy cores need more.
const START_LIMIT: Duration = Duration::from_mins(2);
/// Cluster IPs are loopback addresses, so that a test can serve at the address of a Service: there is no kube-proxy.
const SERVICE_RANGE: &str = "127.96.0.0/16";

/// A running control plane. Dropping it stops its processes and removes its files.
pub struct ControlPlane {
    // Fields drop in this order; the scratch directory goes last.
    controller_manager: Process,
    apiserver: Process,
    etcd: Process,
    client: Client,
    config: Config,
    server: String,
    kubeconfig: PathBuf,
    authority: Authority,
    scratch: Scratch,
    _ports: Vec<Port>,
}

impl ControlPlane {
    /// Starts a control plane and waits until the API server and the controllers are ready.
    ///
    /// # Errors
    /// A component cannot be found, built or started; the message has the tail of its log.
    pub async fn start() -> Result<Self> {
        Self::start_with(Settings::default()).await
    }

    /// Variant of [`ControlPlane::start`] with an audit log of all requests, see [`ControlPlane::audit_log`].
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub async fn start_audited() -> Result<Self> {
        Self::start_with(Settings {
            audit: Audit::Requests,
            ..Settings::default()
        })
        .await
    }

    /// Variant of [`ControlPlane::start`] with an audit log of all writes, with their bodies and answers. operator-controller must run as
    /// [`OPERATOR_CONTROLLER`](crate::audit::OPERATOR_CONTROLLER).
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub async fn start_recorded() -> Result<Self> {
        Self::start_with(Settings {
            audit: Audit::Writes,
            ..Settings::default()
        })
        .await
    }

    /// Variant of [`ControlPlane::start`] for very many small requests: only `controllers` run, and the components need less time
    /// and more memory. `serviceaccount-controller` must be one of the controllers.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub async fn start_fast(controllers: &[&str]) -> Result<Self> {
        Self::start_with(Settings {
            controllers: Some(controllers),
            fast: true,
            ..Settings::default()
        })
        .await
    }

    async fn start_with(settings: Settings<'_>) -> Result<Self> {
        tls::install_provider();
        let assets = Assets::get().await?;
        let mut scratch = Scratch::new("control-plane")?;
        match Box::pin(Self::start_in(&assets, &mut scratch, settings)).await {
            Ok(started) => Ok(started.into_control_plane(scratch)),
            Err(error) => {
                scratch.keep();
                Err(error.context("the control plane does not start"))
            }
        }
    }

    async fn start_in(assets: &Assets, scratch: &mut Scratch, settings: Settings<'_>) -> Result<Started> {
        let pki_dir = scratch.dir("pki")?;
        let logs = scratch.dir("logs")?;
        let audit = settings.audit.flags(&pki_dir, &logs)?;
        let data = scratch.bulky_dir("etcd")?;
        let (client_port, peer_port, api_port) = (Port::reserve()?, Port::reserve()?, Port::reserve()?);
        let etcd_url = format!("http://{}", client_port.address());
        let server = format!("https://{}", api_port.address());
        let files = PkiFiles::write(&pki_dir, &server)?;

        let mut etcd = start_etcd(assets, &logs, &data, &etcd_url, &peer_port, settings)?;
        wait_for_etcd(&mut etcd, &etcd_url).await?;
        let mut apiserver = start_apiserver(assets, &logs, &files, &etcd_url, &api_port, audit, settings)?;
        let (config, client) = connect(&files.admin).await?;
        wait_for_apiserver(&mut apiserver, &client).await?;
        let mut controller_manager = start_controller_manager(assets, &logs, &files, settings)?;
        wait_for_controllers(&mut controller_manager, &client).await?;

        let ports = vec![client_port, peer_port, api_port];
        Ok(Started {
            controller_manager,
            apiserver,
            etcd,
            client,
            config,
            server,
            files,
            ports,
        })
    }

    /// Returns a client with the rights of the cluster administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the configuration of [`ControlPlane::client`], to derive others from (impersonation, limits).
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the URL of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the directory of the components' logs, `COMPONENT.log`.
    pub fn logs(&self) -> PathBuf {
        self.scratch.path().join("logs")
    }

    /// Returns the path of the API server's audit log, one JSON object per line; only after
    /// [`ControlPlane::start_audited`] or [`ControlPlane::start_recorded`].
    pub fn audit_log(&self) -> PathBuf {
        self.logs().join(audit::LOG)
    }

    /// Keeps the logs after the drop, even if no test failed.
    pub fn keep_logs(&mut self) {
        self.scratch.keep();
    }

    /// Writes a kubeconfig for a user (and group) without RBAC rules.
    ///
    /// # Errors
    /// The file is not writable.
    pub fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let pair = self.authority.client(user, group)?;
        let file = format!(
            "{}.kubeconfig",
            user.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
        );
        let path = self.scratch.path().join(file);
        kubeconfig::write(&path, &self.server, &self.authority.pem(), &pair)?;
        Ok(path)
    }

    /// Returns a client for another user (and group).
    ///
    /// # Errors
    /// The kubeconfig cannot be written or read.
    pub async fn client_for(&self, user: &str, group: Option<&str>) -> Result<Client> {
        Ok(connect(&self.kubeconfig_for(user, group)?).await?.1)
    }

    /// Returns the process ids of etcd, kube-apiserver and kube-controller-manager.
    pub fn pids(&self) -> Vec<u32> {
        [&self.etcd, &self.apiserver, &self.controller_manager]
            .into_iter()
            .filter_map(Process::pid)
            .collect()
    }

    /// Restarts the API server and waits until it is ready.
    ///
    /// # Errors
    /// It does not start; the message has the tail of its log.
    pub async fn restart_apiserver(&mut self) -> Result<()> {
        self.apiserver.restart()?;
        wait_for_apiserver(&mut self.apiserver, &self.client).await
    }

    /// Returns etcd's process, to pause it.
    pub fn etcd(&mut self) -> &mut Process {
        &mut self.etcd
    }

    /// Returns the controller manager's process, to pause it.
    pub fn controller_manager(&mut self) -> &mut Process {
        &mut self.controller_manager
    }

    /// Returns the API server's process, to pause or inspect it.
    pub fn apiserver(&mut self) -> &mut Process {
        &mut self.apiserver
    }
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ControlPlane")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Releases all processes at once; the drop of each field then only waits.
        self.controller_manager.release();
        self.apiserver.release();
        self.etcd.release();
    }
}

struct Started {
    controller_manager: Process,
    apiserver: Process,
    etcd: Process,
    client: Client,
    config: Config,
    server: String,
    files: PkiFiles,
    ports: Vec<Port>,
}

impl Started {
    fn into_control_plane(self, scratch: Scratch) -> ControlPlane {
        ControlPlane {
            controller_manager: self.controller_manager,
            apiserver: self.apiserver,
            etcd: self.etcd,
            client: self.client,
            config: self.config,
            server: self.server,
            kubeconfig: self.files.admin,
            authority: self.files.authority,
            scratch,
            _ports: self.ports,
        }
    }
}

/// Files that the components read.
struct PkiFiles {
    authority: Authority,
    ca: PathBuf,
    server_certificate: PathBuf,
    server_key: PathBuf,
    token_key: PathBuf,
    token_public_key: PathBuf,
    admin: PathBuf,
    controller_manager: PathBuf,
}

impl PkiFiles {
    fn write(dir: &Path, server: &str) -> Result<Self> {
        let authority = Authority::new("test-control-plane")?;
        let serving = authority.server(&[
            "127.0.0.1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "127.96.0.1",
        ])?;
        let (token_key, token_public_key) = pki::signing_key()?;
        let file = |name: &str, text: &str| -> Result<PathBuf> {
            let path = dir.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(path)
        };
        let admin = dir.join("admin.kubeconfig");
        kubeconfig::write(
            &admin,
            server,
            &authority.pem(),
            &authority.client("admin", Some("system:masters"))?,
        )?;
        let controller_manager = dir.join("controller-manager.kubeconfig");
        let user = authority.client("system:kube-controller-manager", None)?;
        kubeconfig::write(&controller_manager, server, &authority.pem(), &user)?;
        Ok(Self {
            ca: file("ca.crt", &authority.pem())?,
            server_certificate: file("server.crt", &serving.certificate)?,
            server_key: file("server.key", &serving.key)?,
            token_key: file("token.key", &token_key)?,
            token_public_key: file("token.pub", &token_public_key)?,
            authority,
            admin,
            controller_manager,
        })
    }
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}

fn start_etcd(
    assets: &Assets,
    logs: &Path,
    data: &Path,
    url: &str,
    peer: &Port,
    settings: Settings<'_>,
) -> Result<Process> {
    let peer_url = format!("http://{}", peer.address());
    Spawn::new("etcd", &assets.etcd)
        .envs(settings.environment())
        .arg(flag("data-dir", data))
        // The data is temporary: durability would only cost time.
        .args(["--unsafe-no-fsync", "--log-level=warn", "--name=default"])
        .args([
            flag("listen-client-urls", url),
            flag("advertise-client-urls", url),
        ])
        .args([
            flag("listen-peer-urls", &peer_url),
            flag("initial-advertise-peer-urls", &peer_url),
        ])
        .arg(flag("initial-cluster", format!("default={peer_url}")))
        .spawn(logs)
}

fn start_apiserver(
    assets: &Assets,
    logs: &Path,
    files: &PkiFiles,
    etcd: &str,
    port: &Port,
    more: Vec<std::ffi::OsString>,
    settings: Settings<'_>,
) -> Result<Process> {
    Spawn::new("kube-apiserver", &assets.apiserver)
        .envs(settings.environment())
        .args(more)
        .args([
            flag("etcd-servers", etcd),
            flag("secure-port", port.number().to_string()),
        ])
        .args([
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
        ])
        .args([
            flag("tls-cert-file", &files.server_certificate),
            flag("tls-private-key-file", &files.server_key),
        ])
        .args([
            flag("client-ca-file", &files.ca),
            flag("service-account-key-file", &files.token_public_key),
        ])
        .arg(flag("service-account-signing-key-file", &files.token_key))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .args([flag("service-cluster-ip-range", SERVICE_RANGE)])
        .args(["--authorization-mode=RBAC", "--allow-privileged=true"])
        .arg("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
        .spawn(logs)
}

fn start_controller_manager(
    assets: &Assets,
    logs: &Path,
    files: &PkiFiles,
    settings: Settings<'_>,
) -> Result<Process> {
    Spawn::new("kube-controller-manager", &assets.controller_manager)
        .envs(settings.environment())
        .args(settings.controller_flags())
        .args([
            flag("kubeconfig", &files.controller_manager),
            flag("root-ca-file", &files.ca),
        ])
        .arg(flag("service-account-private-key-file", &files.token_key))
        // The port of the controller manager serves only metrics, which the tests do not read.
        .args([
            "--secure-port=0",
            "--leader-elect=false",
            "--use-service-account-credentials",
        ])
        // The default rate of 20 requests per second slows down every rollout.
        .args(["--kube-api-qps=300", "--kube-api-burst=600"])
        .spawn(logs)
}

async fn connect(kubeconfig: &Path) -> Result<(Config, Client)> {
    let parsed =
        Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("cannot use {}", kubeconfig.display()))?;
    let client = Client::try_from(config.clone()).context("cannot make a client for the API server")?;
    Ok((config, client))
}

async fn wait_for_etcd(etcd: &mut Process, url: &str) -> Result<()> {
    let http = tls::http_client(None)?;
    let health = format!("{url}/health");
    let ready = eventually(START_LIMIT, "etcd is healthy", async || {
        if let Err(ended) = etcd.check() {
            return Ok(Err(ended));
        }
        http.get(&health)
            .timeout(Duration::from_secs(2))
            .send()
            .await?
            .error_for_status()?;
        Ok(Ok(()))
    })
    .await;
    ready.flatten_with(etcd)
}

async fn wait_for_apiserver(apiserver: &mut Process, client: &Client) -> Result<()> {
    let ready = eventually(START_LIMIT, "kube-apiserver is ready", async || {
        if let Err(ended) = apiserver.check() {
            return Ok(Err(ended));
        }
        client
            .request_text(http::Request::get("/readyz?verbose").body(Vec::new())?)
            .await?;
        Ok(Ok(()))
    })
    .await;
    ready.flatten_with(apiserver)
}

async fn wait_for_controllers(controller_manager: &mut Process, client: &Client) -> Result<()> {
    // A controller creates this account, and every pod needs it.
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let ready = eventually(
        START_LIMIT,
        "the namespace default has its service account",
        async || {
            if let Err(ended) = controller_manager.check() {
                return Ok(Err(ended));
            }
            if accounts.get_opt("default").await?.is_none() {
                bail!("no such service account");
            }
            Ok(Ok(()))
        },
    )
    .await;
    ready.flatten_with(controller_manager)
}

/// Flattens the two errors of waiting for a component: its exit and the timeout.
trait FlattenWith {
    fn flatten_with(self, process: &Process) -> Result<()>;
}

impl FlattenWith for Result<Result<()>> {
    fn flatten_with(self, process: &Process) -> Result<()> {
        self.unwrap_or_else(|timeout| Err(timeout.context(process.tail(30))))
    }
}
