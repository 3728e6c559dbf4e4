//! The environment of a measurement: a control plane and a registry, and what users do with the API.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use olm_api::ClusterExtension;
use olm_harness::PodStandIn;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_runtime::client::connect;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::packages::{Kind, Package, push_bundles, push_catalog};
use super::requests::RequestLog;
use crate::world::{PATIENCE, World};

/// Label with the page of an extension. All extensions of a page are deleted by one request.
const PAGE: &str = "bench/page";
/// Number of extensions in a page. The API server ends a request after a minute, and deletes some 50 a second.
const PAGE_SIZE: u32 = 500;

/// A control plane with a registry, an audit log and a stand-in for nodes. Controllers are not part of it.
pub(crate) struct Stage {
    /// Control plane and registry.
    pub(crate) world: World,
    /// Client of the measurement itself.
    pub(crate) client: Client,
    /// API of all ClusterExtensions.
    pub(crate) extensions: Api<ClusterExtension>,
    /// Requests to the API server so far.
    pub(crate) requests: RequestLog,
    pods: Api<Pod>,
    namespaces: Api<Namespace>,
    _nodes: PodStandIn,
}

impl Stage {
    /// Starts all parts.
    pub(crate) async fn start() -> Result<Self> {
        let world = World::start_audited().await?;
        // Like the measured programs, the client that measures them waits for no acknowledgement of packets.
        let client = connect(world.plane.config())?;
        let stage = Self {
            extensions: Api::all(client.clone()),
            requests: RequestLog::new(world.plane.audit_log()),
            pods: Api::all(client.clone()),
            namespaces: Api::all(client.clone()),
            _nodes: PodStandIn::start(client.clone()),
            client,
            world,
        };
        stage.create_namespace(SYSTEM_NAMESPACE).await?;
        Ok(stage)
    }

    /// Pushes the bundles of the packages and a catalog, and waits until the catalog is served.
    pub(crate) async fn publish(&self, catalog: &str, packages: &[Package]) -> Result<()> {
        push_bundles(&self.world.registry, packages).await?;
        self.update(catalog, packages, None).await
    }

    /// Pushes a catalog whose bundles exist, and waits until the catalog is served. `extra` is the name of one more package
    /// without bundles.
    pub(crate) async fn update(
        &self,
        catalog: &str,
        packages: &[Package],
        extra: Option<&str>,
    ) -> Result<()> {
        let image = format!("bench/catalog-{catalog}:1");
        let reference = push_catalog(&self.world.registry, packages, &image, extra).await?;
        self.world.apply(catalog, &reference, None).await?;
        self.world.serving(catalog, &reference).await
    }

    /// Creates the namespaces of the first `extensions` extensions.
    pub(crate) async fn create_namespaces(&self, extensions: u32) -> Result<()> {
        for number in 0..extensions {
            self.create_namespace(&namespace(number)).await?;
        }
        Ok(())
    }

    /// Creates a namespace, unless it exists.
    pub(crate) async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let params = PatchParams::apply("bench");
        self.namespaces
            .patch(name, &params, &Patch::Apply(&namespace))
            .await
            .with_context(|| format!("cannot create namespace {name}"))?;
        Ok(())
    }

    /// Creates the extensions with these numbers and waits until all are installed. Returns the time.
    pub(crate) async fn install(&self, kind: Kind, numbers: std::ops::Range<u32>) -> Result<Duration> {
        let start = Instant::now();
        for number in numbers.clone() {
            let catalog = json!({"packageName": kind.package(number)});
            let extension = extension(&name(kind, number), &namespace(number), number, &catalog);
            self.extensions
                .create(&PostParams::default(), &serde_json::from_value(extension)?)
                .await?;
        }
        let mut wanted: BTreeSet<String> = numbers.map(|number| name(kind, number)).collect();
        self.wait_for(watcher::Config::default(), |extension| {
            if is_installed(extension) {
                wanted.remove(&extension.name_any());
            }
            wanted.is_empty()
        })
        .await?;
        Ok(start.elapsed())
    }

    /// Creates or changes an extension in the namespace of the same name, and waits until `is_done`. Returns the time.
    pub(crate) async fn install_one(
        &self,
        name: &str,
        catalog: &Value,
        is_done: impl FnMut(&ClusterExtension) -> bool,
    ) -> Result<Duration> {
        let start = Instant::now();
        let extension = extension(name, name, 0, catalog);
        self.extensions
            .patch(name, &PatchParams::apply("bench"), &Patch::Apply(&extension))
            .await
            .with_context(|| format!("cannot apply extension {name}"))?;
        let this = watcher::Config::default().fields(&format!("metadata.name={name}"));
        self.wait_for(this, is_done).await?;
        Ok(start.elapsed())
    }

    /// Watches extensions until `is_done` returns true for one of them. Repeated lists of many extensions would cost the API server
    /// time, which would be part of the figure.
    async fn wait_for(
        &self,
        config: watcher::Config,
        mut is_done: impl FnMut(&ClusterExtension) -> bool,
    ) -> Result<()> {
        let extensions = watcher(self.extensions.clone(), config).default_backoff();
        let mut extensions = pin!(extensions.applied_objects());
        let done = async {
            while let Some(extension) = extensions.next().await {
                match extension {
                    Ok(extension) if is_done(&extension) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => eprintln!("watching the extensions failed; trying again: {error}"),
                }
            }
            bail!("the watch of the extensions ended")
        };
        tokio::time::timeout(PATIENCE, done)
            .await
            .with_context(|| format!("not within {PATIENCE:?}: the extensions are installed"))?
    }

    /// Deletes all extensions, page by page, and waits until they are gone. Returns the time.
    pub(crate) async fn delete_all(&self) -> Result<Duration> {
        let all = self.extensions.list_metadata(&ListParams::default()).await?.items;
        let pages = all.iter().filter_map(|extension| extension.labels().get(PAGE));
        let pages: BTreeSet<&String> = pages.collect();
        let start = Instant::now();
        for page in pages {
            let of_page = ListParams::default().labels(&format!("{PAGE}={page}"));
            self.extensions
                .delete_collection(&DeleteParams::default(), &of_page)
                .await
                .with_context(|| format!("cannot delete page {page} of the extensions"))?;
        }
        until("all extensions are gone", pause(all.len()), async || {
            is_empty(&self.extensions).await
        })
        .await?;
        Ok(start.elapsed())
    }

    /// Waits until the garbage collector has deleted all pods. This time is not part of any figure.
    pub(crate) async fn wait_for_no_pods(&self) -> Result<()> {
        until("all pods are gone", pause(100), async || {
            is_empty(&self.pods).await
        })
        .await
    }
}

/// Returns true if there is no object, without reading more than one.
async fn is_empty<K>(api: &Api<K>) -> Result<bool>
where
    K: Clone + DeserializeOwned + Debug,
{
    let first = api.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(first.items.is_empty())
}

/// Returns an extension with this number and `spec.source.catalog`.
fn extension(name: &str, namespace: &str, number: u32, catalog: &Value) -> Value {
    let page = (number / PAGE_SIZE).to_string();
    json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": name, "labels": {PAGE: page}},
        "spec": {"namespace": namespace, "source": {"sourceType": "Catalog", "catalog": catalog}},
    })
}

/// Returns the name of an extension.
pub(crate) fn name(kind: Kind, number: u32) -> String {
    match kind {
        Kind::Tiny => format!("tiny-{number}"),
        Kind::Five => format!("five-{number}"),
    }
}

/// Returns a name for the bundle in a folder. It comes from the last two components of the path, which are usually package and
/// version.
pub(crate) fn name_of(folder: &Path) -> String {
    let components: Vec<_> = folder
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    let last = components
        .get(components.len().saturating_sub(2)..)
        .unwrap_or_default()
        .join("-");
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric();
    let words: Vec<String> = last
        .split(|letter| !is_allowed(letter))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

/// Returns the namespace of the extension with this number.
pub(crate) fn namespace(number: u32) -> String {
    format!("bench-{number}")
}

/// Repeats a check with pauses until it returns true. `what` describes the goal for the error after [`PATIENCE`].
pub(crate) async fn until(
    what: &str,
    pause: Duration,
    mut check: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let start = Instant::now();
    while !check().await? {
        ensure!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// Returns the pause between two reads of this number of objects. A read of many objects costs the API server time, which would
/// be part of the figure.
pub(crate) fn pause(objects: usize) -> Duration {
    Duration::from_millis(10 + u64::try_from(objects).unwrap_or(u64::MAX).min(240))
}

/// Returns true if the status says that a bundle is installed.
pub(crate) fn is_installed(extension: &ClusterExtension) -> bool {
    let conditions = extension.status.iter().flat_map(|status| &status.conditions);
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Installed" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_deletes_more_than_a_page() {
        let page = |number| extension("a", "a", number, &json!({}))["metadata"]["labels"][PAGE].clone();
        assert_eq!(
            (page(0), page(PAGE_SIZE - 1), page(PAGE_SIZE)),
            (json!("0"), json!("0"), json!("1"))
        );
    }

    #[test]
    fn a_folder_gives_a_name_of_the_api() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(
            name("/bundles/strimzi-kafka-operator/1.0.1"),
            "strimzi-kafka-operator-1-0-1"
        );
        assert_eq!(name("render/Quay--3.1.0+x/bundle/"), "quay-3-1-0-x-bundle");
        assert_eq!(name("bundle"), "bundle");
    }
}
