//! catalogd against a real API server and a real registry.

use std::{
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use olm_api::{CatalogPollResult, ClusterCatalog, ClusterCatalogStatus};
use olm_catalogd::{
    Args,
    controller::CatalogWatch,
    gc::Collector,
    run_until,
    storage::{Origin, Store, ValidCatalogName},
};
use olm_harness::{ControlPlane, ImageBuilder, Registry, eventually, install_crds, ports::Port};
use olm_image::{ImageConfig, Puller};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "olmv1-system";
const PATIENCE: Duration = Duration::from_mins(1);
const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

/// catalogd running in this process.
struct Catalogd {
    stop: CancellationToken,
    running: JoinHandle<Result<()>>,
}

impl Catalogd {
    /// Starts catalogd with plain HTTP to the registry and to `other`.
    fn start(
        plane: &ControlPlane,
        registry: &Registry,
        other: Option<&str>,
        cache: &Path,
        port: &Port,
    ) -> Result<Self> {
        let other = other.map(|host| format!("--plain-http-registry={host}"));
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
        let args = Args::try_parse_from(flags.into_iter().chain(other))?;
        let stop = CancellationToken::new();
        let running = tokio::spawn(run_until(args, stop.clone()));
        Ok(Self { stop, running })
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.running)
            .await
            .context("catalogd does not stop")??
    }
}

struct World {
    catalogs: Api<ClusterCatalog>,
    client: Client,
    registry: Registry,
    cache: tempfile::TempDir,
    port: Port,
    plane: ControlPlane,
}

impl World {
    async fn new() -> Result<Self> {
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

    fn catalogd(&self) -> Result<Catalogd> {
        Catalogd::start(&self.plane, &self.registry, None, self.cache.path(), &self.port)
    }

    async fn push(&self, tag: &str, package: &str) -> Result<String> {
        let text = format!("---\nschema: olm.package\nname: {package}\ndefaultChannel: stable\n");
        image(&text).push(&self.registry, tag).await
    }

    async fn apply(&self, name: &str, image: &str, spec: serde_json::Value) -> Result<()> {
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
    async fn condition(&self, name: &str, wanted: &str, part: &str) -> Result<ClusterCatalog> {
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
    async fn fetch(&self, path: &str) -> Result<(u16, String)> {
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
    fn make_old(&self, name: &str) -> Result<()> {
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
    fn polls(&self) -> Result<usize> {
        Ok(self
            .registry
            .access_log()?
            .matches("/v2/test/catalog/manifests/broken")
            .count())
    }

    /// Flips a bit of the stored content.
    fn damage(&self, name: &str) -> Result<()> {
        let folder = self.cache.path().join("catalogs").join(name);
        let path = folder.join("current/catalog.jsonl");
        let first = *std::fs::read(&path)?.first().context("no content")?;
        let file = std::fs::OpenOptions::new().write(true).open(path)?;
        Ok(file.write_all_at(&[first ^ 1], 0)?)
    }

    /// Waits for an event of a catalog.
    async fn event(&self, name: &str, reason: &str, part: &str) -> Result<()> {
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
    fn files(&self, name: &str) -> Result<Vec<(String, u64, i64, u64)>> {
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

    async fn serves(&self, name: &str, package: &str) -> Result<()> {
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

fn image(text: &str) -> ImageBuilder {
    ImageBuilder::new()
        .label(CONFIGS, "/configs")
        .file("configs/a/catalog.yaml", text.as_bytes().to_vec())
}

#[expect(clippy::too_many_lines, reason = "one life of a catalog, told in order")]
#[tokio::test(flavor = "multi_thread")]
async fn from_an_image_to_served_content_and_back() -> Result<()> {
    let mut world = World::new().await?;
    let catalogd = world.catalogd()?;
    let first = world.push("test/catalog:v1", "one").await?;
    world.apply("sample", "test/catalog:v1", json!({})).await?;

    // Content is served, and the conditions have upstream's messages.
    world
        .condition(
            "sample",
            "Serving=True/Available",
            "Serving desired content from resolved source",
        )
        .await?;
    let catalog = world
        .condition(
            "sample",
            "Progressing=True/Succeeded",
            "Successfully unpacked and stored",
        )
        .await?;
    let status = catalog.status.clone().unwrap_or_default();
    let resolved = format!("{}/test/catalog@{first}", world.registry.host());
    assert_eq!(
        status.resolved_source.map(|source| source.image.ref_),
        Some(resolved)
    );
    let base = format!("https://{}/catalogs/sample", world.port.address());
    assert_eq!(status.urls.map(|urls| urls.base), Some(base));
    assert!(status.last_unpacked.is_some());
    let labels = catalog.metadata.labels.clone().unwrap_or_default();
    assert_eq!(
        labels
            .get("olm.operatorframework.io/metadata.name")
            .map(String::as_str),
        Some("sample")
    );
    assert_eq!(
        catalog.metadata.finalizers.as_deref(),
        Some(["olm.operatorframework.io/delete-server-cache".to_owned()].as_slice())
    );
    world.serves("sample", "one").await?;

    // A broken image keeps the served content, and the message names the file; a fixed image recovers.
    image("a: [").push(&world.registry, "test/catalog:broken").await?;
    world.apply("sample", "test/catalog:broken", json!({})).await?;
    world
        .condition("sample", "Progressing=True/Retrying", "a/catalog.yaml")
        .await?;
    world.condition("sample", "Serving=True/Available", "").await?;
    world.serves("sample", "one").await?;
    world.push("test/catalog:broken", "two").await?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    world.serves("sample", "two").await?;

    // Damaged content on disk is reported and repaired.
    world.damage("sample")?;
    world.event("sample", "ContentDamaged", "catalog.jsonl").await?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    world.serves("sample", "two").await?;

    // Terminal errors are not retried and do not delay another catalog.
    let plain = ImageBuilder::new()
        .file("x", b"x".to_vec())
        .push(&world.registry, "test/plain:v1")
        .await?;
    world
        .apply("blocked", &format!("test/plain@{plain}"), json!({}))
        .await?;
    let text = format!("terminal error: catalog image is missing the required label \"{CONFIGS}\"");
    world
        .condition("blocked", "Progressing=False/Blocked", &text)
        .await?;
    world.apply("missing", "test/nothing:v1", json!({})).await?;
    let missing = world
        .condition("missing", "Progressing=True/Retrying", "source catalog content: ")
        .await?;
    let conditions = missing.status.unwrap_or_default().conditions.unwrap_or_default();
    assert!(conditions.iter().all(|c| c.type_ != "Serving"), "{conditions:?}");

    // A restart without the registry serves at once and writes nothing new.
    let before = world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    catalogd.stop().await?;
    world.registry.stop();
    let catalogd = world.catalogd()?;
    world.serves("sample", "two").await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = world.catalogs.get("sample").await?;
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);

    // A poll that finds the same digest rewrites nothing. The age of the content makes the poll due at the start.
    world.registry.restart().await?;
    let spec = json!({"source": {"type": "Image", "image": {
        "ref": format!("{}/test/catalog:broken", world.registry.host()), "pollIntervalMinutes": 1,
    }}});
    world.apply("sample", "test/catalog:broken", spec).await?;
    let mut catalogd = catalogd;
    let mut seen = Vec::new();
    for _ in 0..2 {
        catalogd.stop().await?;
        world.make_old("sample")?;
        // The start removes content of catalogs that were deleted while catalogd was down.
        let orphans = [
            world.cache.path().join("catalogs/orphan/sha256-x"),
            world.cache.path().join("unpack/orphan/sha256:x"),
        ];
        for orphan in &orphans {
            std::fs::create_dir_all(orphan)?;
        }
        let asked = world.polls()?;
        catalogd = world.catalogd()?;
        eventually(PATIENCE, "a poll, and orphans gone", async || {
            ensure!(world.polls()? > asked, "not asked for");
            ensure!(
                !orphans.iter().any(|orphan| orphan.exists()),
                "an orphan is there"
            );
            Ok(())
        })
        .await?;
        // The status of the former spec says Succeeded, too; wait for the status of this spec.
        let catalog = eventually(PATIENCE, "the status is of the spec", async || {
            let catalog = world
                .condition("sample", "Progressing=True/Succeeded", "")
                .await?;
            let conditions = catalog.status.clone().unwrap_or_default().conditions;
            let observed = conditions
                .unwrap_or_default()
                .iter()
                .map(|condition| condition.observed_generation)
                .min()
                .flatten();
            ensure!(observed == catalog.metadata.generation, "it is of {observed:?}");
            Ok(catalog)
        })
        .await?;
        // A check of the registry is in the status; nothing else of the object changes.
        let status = catalog
            .status
            .map(|status| ClusterCatalogStatus { poll: None, ..status });
        let metadata = ObjectMeta {
            resource_version: None,
            managed_fields: None,
            ..catalog.metadata
        };
        seen.push((metadata, catalog.spec, status, world.files("sample")?));
    }
    let text = world.registry.access_log()?;
    assert_eq!(seen.first(), seen.last(), "{text}");

    // An Unavailable catalog loses content, finalizer and URLs; an available one regains them.
    world
        .apply(
            "sample",
            "test/catalog:broken",
            json!({"availabilityMode": "Unavailable"}),
        )
        .await?;
    let text = "Catalog availability mode is set to Unavailable";
    world
        .condition("sample", "Serving=False/UserSpecifiedUnavailable", text)
        .await?;
    eventually(PATIENCE, "finalizer and content gone", async || {
        let catalog = world.catalogs.get("sample").await?;
        ensure!(
            catalog.metadata.finalizers.unwrap_or_default().is_empty(),
            "finalizer"
        );
        ensure!(catalog.status.unwrap_or_default().urls.is_none(), "urls");
        let answer = world.fetch("/catalogs/sample/api/v1/all").await?;
        ensure!(answer == (404, "404 Not Found\n".to_owned()), "{answer:?}");
        Ok(())
    })
    .await?;
    world
        .apply(
            "sample",
            "test/catalog:broken",
            json!({"availabilityMode": "Available"}),
        )
        .await?;
    world.serves("sample", "two").await?;

    // A deleted catalog leaves nothing behind.
    world.catalogs.delete("sample", &DeleteParams::default()).await?;
    eventually(PATIENCE, "sample is gone", async || {
        if world.catalogs.get_opt("sample").await?.is_some() {
            bail!("still there");
        }
        ensure!(
            !world.cache.path().join("catalogs/sample").exists(),
            "content still there"
        );
        Ok(())
    })
    .await?;
    assert_eq!(world.fetch("/catalogs/sample/api/v1/all").await?.0, 404);
    catalogd.stop().await?;
    what_is_in_flight_is_not_collected(&world).await?;
    what_vanished_without_its_finalizer_is_collected(&world).await
}

/// A registry that accepts connections and never answers holds up neither a new spec nor a deletion.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_ends_a_pull_from_a_silent_registry() -> Result<()> {
    let world = World::new().await?;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let host = silent.local_addr()?.to_string();
    let catalogd = Catalogd::start(
        &world.plane,
        &world.registry,
        Some(&host),
        world.cache.path(),
        &world.port,
    )?;
    world.push("test/catalog:v1", "one").await?;
    let image = json!({"type": "Image", "image": {"ref": format!("{host}/test/catalog:v1")}});

    world
        .apply("amended", "unused:v1", json!({"source": image}))
        .await?;
    let (_first, _) = tokio::time::timeout(PATIENCE, silent.accept()).await??;
    world.apply("amended", "test/catalog:v1", json!({})).await?;
    world.condition("amended", "Serving=True/Available", "").await?;

    world
        .apply("deleted", "unused:v1", json!({"source": image}))
        .await?;
    let (_second, _) = tokio::time::timeout(PATIENCE, silent.accept()).await??;
    world.catalogs.delete("deleted", &DeleteParams::default()).await?;
    eventually(PATIENCE, "the deleted catalog is gone", async || {
        ensure!(world.catalogs.get_opt("deleted").await?.is_none(), "still there");
        Ok(())
    })
    .await?;
    catalogd.stop().await
}

/// An image template gives the image of the cluster's version, and the status says which. A template that cannot be expanded keeps
/// the served content; without the annotation, the reference of the spec counts again.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_follows_the_version_of_the_cluster() -> Result<()> {
    let world = World::new().await?;
    let catalogd = world.catalogd()?;
    let version = world.client.apiserver_version().await?.git_version;
    let minor = version.split('.').nth(1).context("no minor")?.to_owned();
    world.push("test/catalog:any", "any").await?;
    let of_version = world
        .push(&format!("test/catalog:v1.{minor}"), "versioned")
        .await?;
    let annotate = async |template: Option<&str>| {
        let patch = json!({"metadata": {"annotations": {"olm.catalogImageTemplate": template}}});
        world
            .catalogs
            .patch("sample", &PatchParams::default(), &Patch::Merge(patch))
            .await
    };
    let poll = |catalog: &ClusterCatalog| catalog.status.clone().and_then(|status| status.poll);

    world.apply("sample", "test/catalog:any", json!({})).await?;
    let catalog = world.condition("sample", "Serving=True/Available", "").await?;
    let first = poll(&catalog).context("no check in the status")?;
    assert_eq!(first.image, format!("{}/test/catalog:any", world.registry.host()));
    assert_eq!((first.result, first.next_time), (CatalogPollResult::Stored, None));

    let host = world.registry.host();
    annotate(Some(&format!(
        "{host}/test/catalog:v{{kube_major_version}}.{{kube_minor_version}}"
    )))
    .await?;
    world.serves("sample", "versioned").await?;
    let catalog = eventually(PATIENCE, "the status names the image", async || {
        let catalog = world.catalogs.get("sample").await?;
        let image = poll(&catalog).map(|poll| poll.image).unwrap_or_default();
        ensure!(image == format!("{host}/test/catalog:v1.{minor}"), "{image}");
        Ok(catalog)
    })
    .await?;
    let resolved = catalog.status.and_then(|status| status.resolved_source);
    assert_eq!(
        resolved.map(|source| source.image.ref_),
        Some(format!("{host}/test/catalog@{of_version}"))
    );

    annotate(Some("{kube_version}")).await?;
    let message = "annotation olm.catalogImageTemplate has the unknown variable {kube_version}; use {kube_major_version}";
    world
        .condition("sample", "Progressing=False/Blocked", message)
        .await?;
    world.serves("sample", "versioned").await?;
    annotate(Some(&format!("{host}/test/catalog:v{{openshift_minor_version}}"))).await?;
    world
        .condition(
            "sample",
            "Progressing=True/Retrying",
            "the version of OpenShift is unknown",
        )
        .await?;
    annotate(Some("no reference")).await?;
    world
        .condition("sample", "Progressing=False/Blocked", "no reference")
        .await?;
    annotate(None).await?;
    world.serves("sample", "any").await?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    catalogd.stop().await
}

/// A catalog that vanishes without its finalizer is collected at once, not in the next round hours later.
async fn what_vanished_without_its_finalizer_is_collected(world: &World) -> Result<()> {
    let stop = CancellationToken::new();
    world.apply("stripped", "test/catalog:v1", json!({})).await?;
    let watch = CatalogWatch::default();
    let mut listed = watch.subscribe();
    let cache = tempfile::tempdir()?;
    let name = ValidCatalogName::new("stripped")?;
    let (collector, store) = collector(world, cache.path(), &[&name])?;
    let (watched, client, ending) = (watch.clone(), world.client.clone(), stop.clone());
    let watching = tokio::spawn(async move { watched.run(client, ending).await });
    let (deleted, ending) = (watch.deleted(), stop.clone());
    let running = tokio::spawn(async move { collector.run(Duration::from_hours(12), deleted, ending).await });
    tokio::time::timeout(PATIENCE, listed.wait_for(Option::is_some)).await??;
    ensure!(store.get(&name).is_some(), "its catalog is there");
    world
        .catalogs
        .delete("stripped", &DeleteParams::default())
        .await?;
    eventually(PATIENCE, "its content is collected", async || {
        ensure!(store.get(&name).is_none(), "it is served");
        Ok(())
    })
    .await?;
    stop.cancel();
    watching.await?;
    running.await?;
    Ok(())
}

/// Returns a collector, and a store with content of these catalogs.
fn collector(world: &World, cache: &Path, names: &[&ValidCatalogName]) -> Result<(Collector, Arc<Store>)> {
    let source = tempfile::tempdir()?;
    std::fs::write(source.path().join("catalog.json"), "{\"schema\":\"x\"}")?;
    let store = Arc::new(Store::open(cache.join("catalogs"))?);
    for name in names {
        let origin = Origin {
            requested: "r".to_owned(),
            resolved: "r@sha256:a".to_owned(),
            unpacked_at: 0,
        };
        store.store(name, source.path(), origin, 0, &|| false)?;
    }
    let collector = Collector {
        client: world.client.clone(),
        store: store.clone(),
        puller: Arc::new(Puller::new(ImageConfig::new(cache))),
        unpacked: cache.join("unpack"),
    };
    Ok((collector, store))
}

/// Of two deleted catalogs, the locked one is collected only after its lock is released.
async fn what_is_in_flight_is_not_collected(world: &World) -> Result<()> {
    let cache = tempfile::tempdir()?;
    let (busy, idle) = (ValidCatalogName::new("a-busy")?, ValidCatalogName::new("b-idle")?);
    let (collector, store) = collector(world, cache.path(), &[&busy, &idle])?;
    let stop = CancellationToken::new();
    let at_work = store.lock(&busy).await;
    let ending = stop.clone();
    let running = tokio::spawn(async move {
        let never = CatalogWatch::default().deleted();
        collector.run(Duration::from_millis(100), never, ending).await;
    });
    let gone = async |name: &ValidCatalogName| {
        eventually(PATIENCE, &format!("{name} is collected"), async || {
            ensure!(store.get(name).is_none(), "it is served");
            Ok(())
        })
        .await
    };
    gone(&idle).await?;
    ensure!(store.get(&busy).is_some(), "what was at work was collected");
    drop(at_work);
    gone(&busy).await?;
    stop.cancel();
    running.await?;
    Ok(())
}
