//! A control plane, a registry, and catalogd between them.

use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use olm_api::ClusterCatalog;
use olm_catalogd::{Args, run_until};
use olm_harness::ports::Port;
use olm_harness::{ControlPlane, ImageBuilder, Registry, eventually, install_crds};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "olmv1-system";
/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Label of a catalog image.
pub(crate) const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

/// catalogd running in this process.
pub(crate) struct Catalogd {
    stop: CancellationToken,
    running: JoinHandle<Result<()>>,
}

impl Catalogd {
    /// Starts catalogd with plain HTTP to the registry, and with one more flag.
    pub(crate) fn start(
        plane: &ControlPlane,
        registry: &Registry,
        flag: Option<String>,
        cache: &Path,
        port: &Port,
    ) -> Result<Self> {
        let flags = [
            "catalogd".to_owned(),
            format!("--kubeconfig={}", plane.kubeconfig().display()),
            format!("--system-namespace={NAMESPACE}"),
            format!("--catalogs-server-addr={}", port.address()),
            format!("--external-address={}", port.address()),
            format!("--cache-dir={}", cache.display()),
            format!("--plain-http-registry={}", registry.host()),
            "--health-probe-bind-address=0".to_owned(),
            "--shutdown-delay=0s".to_owned(),
            "--content-check-interval=500ms".to_owned(),
        ];
        let args = Args::try_parse_from(flags.into_iter().chain(flag))?;
        let stop = CancellationToken::new();
        let running = tokio::spawn(run_until(args, stop.clone()));
        Ok(Self { stop, running })
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.running)
            .await
            .context("catalogd does not stop")??
    }
}

/// The surroundings of catalogd, and its cache.
pub(crate) struct World {
    pub(crate) catalogs: Api<ClusterCatalog>,
    pub(crate) client: Client,
    pub(crate) registry: Registry,
    pub(crate) cache: tempfile::TempDir,
    pub(crate) port: Port,
    pub(crate) plane: ControlPlane,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        olm_runtime::tls::install_provider();
        let plane = ControlPlane::start().await?;
        let client = plane.client();
        install_crds(&client).await?;
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        Api::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(Self {
            catalogs: Api::all(client.clone()),
            client,
            registry: Registry::start().await?,
            cache: tempfile::tempdir()?,
            port: Port::reserve()?,
            plane,
        })
    }

    /// Starts catalogd.
    pub(crate) fn catalogd(&self) -> Result<Catalogd> {
        Catalogd::start(&self.plane, &self.registry, None, self.cache.path(), &self.port)
    }

    /// Pushes a catalog of one package; returns its digest.
    pub(crate) async fn push(&self, tag: &str, package: &str) -> Result<String> {
        let text = format!("---\nschema: olm.package\nname: {package}\ndefaultChannel: stable\n");
        image(&text).push(&self.registry, tag).await
    }

    /// Creates or changes a catalog of this image; fields of `spec` win.
    pub(crate) async fn apply(&self, name: &str, image: &str, spec: serde_json::Value) -> Result<()> {
        let mut object = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": {"ref": format!("{}/{image}", self.registry.host())}}},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        self.catalogs
            .patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object))
            .await?;
        Ok(())
    }

    /// Waits for a condition `Type=Status/Reason` whose message contains `part`.
    pub(crate) async fn condition(&self, name: &str, wanted: &str, part: &str) -> Result<ClusterCatalog> {
        eventually(
            PATIENCE,
            &format!("{wanted} of {name} with {part:?}"),
            async || {
                let catalog = self.catalogs.get(name).await?;
                let status = catalog.status.clone().unwrap_or_default();
                let conditions = status.conditions.unwrap_or_default();
                let seen: Vec<_> = conditions
                    .iter()
                    .map(|c| {
                        (
                            format!("{}={}/{}", c.type_, c.status, c.reason),
                            c.message.clone(),
                        )
                    })
                    .collect();
                ensure!(
                    seen.iter()
                        .any(|(own, text)| own == wanted && text.contains(part)),
                    "{seen:?}"
                );
                Ok(catalog)
            },
        )
        .await
    }

    /// Fetches content over HTTPS, trusting the authority in catalogd's Secret.
    pub(crate) async fn fetch(&self, path: &str) -> Result<(u16, String)> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), NAMESPACE);
        let secret = secrets.get("catalogd-service-own-cert").await?;
        let ca = &secret
            .data
            .as_ref()
            .and_then(|data| data.get("ca.crt"))
            .context("no ca.crt")?
            .0;
        let client = reqwest::Client::builder()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(ca)?)
            .build()?;
        let answer = client
            .get(format!("https://{}{path}", self.port.address()))
            .send()
            .await?;
        ensure!(
            answer.version() == http::Version::HTTP_2,
            "{:?}",
            answer.version()
        );
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Backdates the unpack time of the stored content.
    pub(crate) fn make_old(&self, name: &str) -> Result<()> {
        let path = self
            .cache
            .path()
            .join("catalogs")
            .join(name)
            .join("current/manifest.json");
        let mut manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        if manifest["origin"]["unpacked_at"] != 1 {
            manifest["origin"]["unpacked_at"] = json!(1);
            std::fs::write(&path, serde_json::to_vec(&manifest)?)?;
        }
        Ok(())
    }

    /// Counts the registry's requests for the tag.
    pub(crate) fn polls(&self) -> Result<usize> {
        Ok(self
            .registry
            .access_log()?
            .matches("/v2/test/catalog/manifests/broken")
            .count())
    }

    /// Flips a bit of the stored content.
    pub(crate) fn damage(&self, name: &str) -> Result<()> {
        let folder = self.cache.path().join("catalogs").join(name);
        let path = folder.join("current/catalog.jsonl");
        let first = *std::fs::read(&path)?.first().context("no content")?;
        let file = std::fs::OpenOptions::new().write(true).open(path)?;
        Ok(file.write_all_at(&[first ^ 1], 0)?)
    }

    /// Waits for an event of a catalog.
    pub(crate) async fn event(&self, name: &str, reason: &str, part: &str) -> Result<()> {
        let events = Api::<Event>::all(self.client.clone());
        eventually(PATIENCE, &format!("event {reason} of {name}"), async || {
            let found = events.list(&ListParams::default()).await?.items;
            let seen = found.iter().any(|event| {
                let note = event.note.as_deref().unwrap_or_default();
                let of = event.regarding.as_ref().and_then(|object| object.name.as_deref());
                event.reason.as_deref() == Some(reason) && of == Some(name) && note.contains(part)
            });
            ensure!(seen, "{} events", found.len());
            Ok(())
        })
        .await
    }

    /// Returns inode, time and size of every stored file.
    pub(crate) fn files(&self, name: &str) -> Result<Vec<(String, u64, i64, u64)>> {
        let folder = self.cache.path().join("catalogs").join(name).join("current/");
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push((name, found.ino(), found.mtime_nsec(), found.len()));
        }
        files.sort();
        Ok(files)
    }

    /// Waits until the catalog serves this package alone.
    pub(crate) async fn serves(&self, name: &str, package: &str) -> Result<()> {
        eventually(PATIENCE, &format!("{name} serves {package}"), async || {
            let answer = self
                .fetch(&format!("/catalogs/{name}/api/v1/metas?schema=olm.package"))
                .await?;
            let line = format!(
                "{{\"defaultChannel\":\"stable\",\"name\":\"{package}\",\"schema\":\"olm.package\"}}\n"
            );
            ensure!(answer == (200, line), "{answer:?}");
            Ok(())
        })
        .await
    }
}

/// Returns a catalog image with one file.
pub(crate) fn image(text: &str) -> ImageBuilder {
    ImageBuilder::new()
        .label(CONFIGS, "/configs")
        .file("configs/a/catalog.yaml", text.as_bytes().to_vec())
}
