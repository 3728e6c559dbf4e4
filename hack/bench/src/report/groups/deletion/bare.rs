//! The bare client: deletes the objects of extensions as the controllers do, with the least requests. It removes the same finalizers in
//! the same order, and has the same watches open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;

use anyhow::{Context as _, Result, bail};
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, PartialObjectMeta, Patch, PatchParams};
use kube::core::Resource;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet, keys};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::Content;
use crate::report::object::Place;

/// Number of extensions whose objects are deleted in parallel.
const AT_ONCE: usize = 16;

/// A client whose watches are open.
pub(super) struct BareClient {
    client: Client,
    /// Names of extensions under deletion.
    deleted: UnboundedReceiver<String>,
    _watches: JoinSet<()>,
}

impl BareClient {
    /// Opens the watches, and returns after their lists.
    pub(super) async fn start(client: Client, contents: &BTreeMap<String, Content>) -> Self {
        let (begun, mut all_begun) = mpsc::channel(1);
        let (tell, deleted) = mpsc::unbounded_channel();
        let mut watches = Watches {
            tasks: JoinSet::new(),
            begun,
        };
        watches.extensions(Api::all(client.clone()), tell);
        let whole = |resource: &ApiResource| Api::<DynamicObject>::all_with(client.clone(), resource);
        // One controller reads revisions with their objects, and one without them; both get whole ones.
        let sets = ApiResource::erase::<ClusterObjectSet>(&());
        for resource in [&sets, &sets, &ApiResource::erase::<ClusterCatalog>(&())] {
            watches.open(whole(resource), watcher::Config::default(), drop);
        }
        let metadata = |resource: &ApiResource| {
            Api::<PartialObjectMeta<DynamicObject>>::all_with(client.clone(), resource)
        };
        for resource in [
            ApiResource::erase::<Namespace>(&()),
            ApiResource::erase::<CustomResourceDefinition>(&()),
        ] {
            watches.open(metadata(&resource), watcher::Config::default(), drop);
        }
        let owned = watcher::Config::default().labels(keys::OWNER_NAME_LABEL);
        for resource in kinds(contents) {
            watches.open(metadata(&resource), owned.clone(), drop);
        }
        let Watches { tasks, begun } = watches;
        drop(begun);
        // The wait ends when all watches have dropped their senders.
        all_begun.recv().await;
        Self {
            client,
            deleted,
            _watches: tasks,
        }
    }

    /// Cleans up after each extension whose deletion the watch tells, until all are gone.
    pub(super) async fn run(mut self, contents: &BTreeMap<String, Content>) -> Result<()> {
        let client = self.client.clone();
        let mut seen = BTreeSet::new();
        let names = futures::stream::poll_fn(|context| self.deleted.poll_recv(context));
        let fresh = names.filter(|name| std::future::ready(seen.insert(name.clone())));
        fresh
            .take(contents.len())
            .map(|name| {
                contents
                    .get(&name)
                    .map(|content| (name, content))
                    .context("an unknown extension")
            })
            .try_for_each_concurrent(AT_ONCE, async |(name, content)| {
                clean_up(&client, &name, content).await
            })
            .await
    }
}

/// Returns the resources of all objects, each of them once.
fn kinds(contents: &BTreeMap<String, Content>) -> Vec<ApiResource> {
    let places = contents
        .values()
        .flat_map(|content| content.phases.iter().flatten());
    let kinds: BTreeMap<_, _> = places
        .map(|Place { resource, .. }| ((&resource.api_version, &resource.kind), resource))
        .collect();
    kinds.into_values().cloned().collect()
}

/// Deletes the revision of an extension with its objects, the last phase first, and then the extension.
async fn clean_up(client: &Client, extension: &str, content: &Content) -> Result<()> {
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    sets.delete(&content.revision, &DeleteParams::background())
        .await?;
    for phase in &content.phases {
        try_join_all(phase.iter().map(|place| delete(client, place))).await?;
    }
    release(&sets, &content.revision).await?;
    release(&Api::<ClusterExtension>::all(client.clone()), extension).await
}

async fn delete(client: &Client, place: &Place) -> Result<()> {
    let deleted = place
        .api(client)
        .delete(&place.name, &DeleteParams::background())
        .await;
    let deleted = deleted.with_context(|| format!("cannot delete {} {}", place.resource.kind, place.name))?;
    // Some kinds are returned in their last state; those that stay have the time of their deletion.
    if let Some(last) = deleted.left()
        && last.metadata.deletion_timestamp.is_some()
    {
        bail!("{} {} has a finalizer", place.resource.kind, place.name);
    }
    Ok(())
}

/// Removes all finalizers of an object under deletion, which is gone then.
async fn release<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch_metadata(name, &PatchParams::default(), &patch)
        .await
        .map(drop)
        .with_context(|| format!("cannot remove the finalizers of {name}"))
}

/// Watches that are being opened.
struct Watches {
    tasks: JoinSet<()>,
    /// Sender of which each watch drops a copy after its list.
    begun: mpsc::Sender<()>,
}

impl Watches {
    /// Watches all extensions. Sends the names of those under deletion.
    fn extensions(&mut self, api: Api<ClusterExtension>, deleted: UnboundedSender<String>) {
        self.open(api, watcher::Config::default(), move |extension| {
            if extension.metadata.deletion_timestamp.is_some() {
                // Without a receiver the measurement is over.
                let _ = deleted.send(extension.name_any());
            }
        });
    }

    fn open<K>(&mut self, api: Api<K>, config: watcher::Config, mut take: impl FnMut(K) + Send + 'static)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut begun = Some(self.begun.clone());
        self.tasks.spawn(async move {
            let mut events = pin!(watcher(api, config).default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::InitDone) => begun = None,
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => take(object),
                    Ok(watcher::Event::Init | watcher::Event::Delete(_)) => {}
                    Err(error) => eprintln!("watching failed; trying again: {error}"),
                }
            }
            drop(begun);
        });
    }
}
