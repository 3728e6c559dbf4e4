//! Deletion of many extensions beside a bare client that deletes the same objects: the API server's own limit.

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
/// Extensions that the bare client deletes at the same time.
const AT_ONCE: usize = 16;

/// Objects of one extension in the order of their deletion, without the extension and its revision.
struct Content {
    /// Name of the ClusterExtension.
    extension: String,
    /// Name of the ClusterObjectSet.
    revision: String,
    objects: Vec<Place>,
}

/// Measures a deletion by the controllers, and one by a bare client.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let all = bench.scale.extensions;
    let words = KIND.words();
    bench.stage.publish(CATALOG, &KIND.packages(all)).await?;
    bench.stage.create_namespaces(all).await?;
    bench.stage.install(KIND, 0..all).await?;
    let before = bench.idle().await?;
    let client = bench.stage.world.plane.client();
    // Another implementation may have no revisions, and then nothing says which objects belong to its extensions.
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

/// Measures the deletion of what is installed by a bare client; ends the controllers.
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
        // A revision is one extension's, and nothing was upgraded.
        contents.is_empty() || contents.len() == usize::try_from(extensions)?,
        "{} revisions of {extensions} extensions",
        contents.len()
    );
    Ok(contents)
}

fn content(set: &ClusterObjectSet, known: &Discovery) -> Result<Content> {
    let owners = set.owner_references();
    let owner = owners.first().context("a revision has no owner")?;
    let phases = set.spec.phases.as_deref().unwrap_or_default();
    // As the controllers: the last phase first.
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

/// Removes the finalizers of revisions and extensions, because nobody waits for them any more.
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

/// Deletes each object once, several extensions at the same time; returns the time until nothing is left.
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
