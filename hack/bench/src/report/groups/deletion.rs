//! Group `deletion`: the controllers delete many extensions. For comparison, a bare client deletes the same objects, which shows
//! the limit of the API server itself.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::discovery::Discovery;
use kube::{Api, Client, Resource, ResourceExt as _};
use olm_api::ClusterObjectSet;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::report::bench::Bench;
use crate::report::object::Place;
use crate::report::packages::Kind;
use crate::report::row::Measure;
use crate::report::stage::{pause, until};

const KIND: Kind = Kind::Five;
const CATALOG: &str = "deletion";
/// Number of extensions that the bare client deletes in parallel.
const AT_ONCE: usize = 16;

/// An extension, its revision, and its objects in the order of their deletion.
struct Content {
    /// Name of the ClusterExtension.
    extension: String,
    /// Name of the ClusterObjectSet.
    revision: String,
    objects: Vec<Place>,
}

/// Measures a deletion by the controllers and one by a bare client.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let all = bench.scale.extensions;
    let words = KIND.words();
    bench.stage.publish(CATALOG, &KIND.packages(all)).await?;
    bench.stage.create_namespaces(all).await?;
    bench.stage.install(KIND, 0..all).await?;
    let before = bench.idle().await?;
    let client = bench.stage.world.plane.client();
    // If another implementation has no revisions, it is unknown which objects belong to its extensions.
    let has_revisions = !contents(&client, all).await?.is_empty();
    let time = bench.stage.delete_all().await?;
    let usage = bench.since(&before)?.lasting(time);
    bench.add_usage(&format!("delete {all} {words}, all gone"), &usage, None);
    bench.stage.wait_for_no_pods().await?;
    if has_revisions {
        bench.stage.install(KIND, 0..all).await?;
        bench.idle().await?;
        bare(bench, &client).await?;
    }
    Ok(())
}

/// Measures the deletion of all installed objects by a bare client. Stops the controllers before.
async fn bare(bench: &mut Bench, client: &Client) -> Result<()> {
    let all = bench.scale.extensions;
    let contents = contents(client, all).await?;
    bench.stage.world.delete(CATALOG).await?;
    bench.subject.stop();
    release(client, &bench.stage.extensions).await?;
    let requests: usize = contents.iter().map(|content| content.objects.len() + 2).sum();
    let time = delete(client, &contents).await?;
    let work = format!(
        "the same objects deleted by a bare client: {all} {}",
        KIND.words()
    );
    bench.add(&work, Measure::Time, time.as_secs_f64());
    let requests = u32::try_from(requests).unwrap_or(u32::MAX);
    bench.add(&work, Measure::Requests, requests.into());
    bench.stage.wait_for_no_pods().await
}

/// Returns the objects of all extensions, as their revisions list them.
async fn contents(client: &Client, extensions: u32) -> Result<Vec<Content>> {
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    let sets = sets.list(&ListParams::default()).await?;
    let known = Discovery::new(client.clone()).run_aggregated().await?;
    let contents = sets.items.iter().map(|set| content(set, &known));
    let contents: Vec<Content> = contents.collect::<Result<_>>()?;
    ensure!(
        // Every extension has one revision, because nothing was upgraded.
        contents.is_empty() || contents.len() == usize::try_from(extensions)?,
        "{} revisions of {extensions} extensions",
        contents.len()
    );
    Ok(contents)
}

/// Returns the objects of the extension to which a revision belongs.
fn content(set: &ClusterObjectSet, known: &Discovery) -> Result<Content> {
    let owners = set.owner_references();
    let owner = owners.first().context("a revision has no owner")?;
    let phases = set.spec.phases.as_deref().unwrap_or_default();
    // Like the controllers, the bare client deletes the last phase first.
    let listed = phases.iter().rev().flat_map(|phase| phase.objects.iter().rev());
    let objects = listed.map(|listed| {
        let object = listed.object.as_ref().context("an object is in a Secret")?;
        Place::of(object, known)
    });
    Ok(Content {
        extension: owner.name.clone(),
        revision: set.name_any(),
        objects: objects.collect::<Result<_>>()?,
    })
}

/// Removes the finalizers of revisions and extensions, because the controllers that would remove them are stopped.
async fn release(client: &Client, extensions: &Api<olm_api::ClusterExtension>) -> Result<()> {
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    release_all(&sets).await?;
    release_all(extensions).await
}

async fn release_all<K>(api: &Api<K>) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for object in api.list_metadata(&ListParams::default()).await?.items {
        api.patch_metadata(&object.name_any(), &PatchParams::default(), &patch)
            .await?;
    }
    Ok(())
}

/// Deletes each object once, and several extensions in parallel. Returns the time until all extensions and revisions are gone.
async fn delete(client: &Client, contents: &[Content]) -> Result<Duration> {
    let start = Instant::now();
    futures::stream::iter(contents.iter().map(Ok))
        .try_for_each_concurrent(AT_ONCE, async |content| delete_one(client, content).await)
        .await?;
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    let extensions: Api<olm_api::ClusterExtension> = Api::all(client.clone());
    until("everything is gone", pause(contents.len()), async || {
        let sets = sets.list_metadata(&ListParams::default()).await?;
        let extensions = extensions.list_metadata(&ListParams::default()).await?;
        Ok(sets.items.is_empty() && extensions.items.is_empty())
    })
    .await?;
    Ok(start.elapsed())
}

/// Deletes the objects of one extension, its revision, and the extension.
async fn delete_one(client: &Client, content: &Content) -> Result<()> {
    let params = DeleteParams::background();
    for object in &content.objects {
        let api = object.api(client);
        api.delete(&object.name, &params)
            .await
            .with_context(|| format!("cannot delete {} {}", object.resource.kind, object.name))?;
    }
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    sets.delete(&content.revision, &params).await?;
    let extensions: Api<olm_api::ClusterExtension> = Api::all(client.clone());
    extensions.delete(&content.extension, &params).await?;
    Ok(())
}
