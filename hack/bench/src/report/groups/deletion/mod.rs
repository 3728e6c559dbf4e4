//! Group `deletion`: the controllers delete many extensions. For comparison, a bare client deletes the same objects, which shows the
//! limit of the API server itself.

mod bare;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use kube::api::ListParams;
use kube::discovery::Discovery;
use kube::{Api, Client, ResourceExt as _};
use olm_api::ClusterObjectSet;

use self::bare::BareClient;
use crate::report::bench::{Bench, Usage};
use crate::report::object::Place;
use crate::report::packages::Kind;

const KIND: Kind = Kind::Five;
const CATALOG: &str = "deletion";
/// User of the bare client, by whom its requests are counted.
const BARE: &str = "bare-client";

/// Revision of an extension, and its objects.
struct Content {
    /// Name of the ClusterObjectSet.
    revision: String,
    /// Objects by phase, in the order of their deletion.
    phases: Vec<Vec<Place>>,
}

/// Measures a deletion by the controllers and one by a bare client.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    let all = bench.scale.extensions;
    let words = KIND.words();
    bench.stage.publish(CATALOG, &KIND.packages(all)).await?;
    bench.stage.create_namespaces(all).await?;
    bench.stage.install(KIND, 0..all).await?;
    let client = bench.stage.client.clone();
    // If another implementation has no revisions, it is unknown which objects belong to its extensions.
    let has_revisions = !contents(&client, all).await?.is_empty();
    let before = bench.idle().await?;
    let time = bench.stage.delete_all().await?;
    let usage = bench.since(&before)?.lasting(time);
    bench
        .add_usage(
            &format!("delete {all} {words} by the controllers, all gone"),
            &usage,
            None,
        )
        .await?;
    bench.stage.wait_for_no_pods().await?;
    if has_revisions {
        bench.stage.install(KIND, 0..all).await?;
        bench.idle().await?;
        bare(bench, &contents(&client, all).await?).await?;
    }
    Ok(())
}

/// Measures the deletion of all installed extensions by a bare client. Stops the controllers before.
async fn bare(bench: &mut Bench, contents: &BTreeMap<String, Content>) -> Result<()> {
    bench.stage.world.delete(CATALOG).await?;
    bench.subject.stop();
    let admins = Some("system:masters");
    let client = bench.stage.world.plane.client_for(BARE, admins).await?;
    let bare = BareClient::start(client, contents).await;
    let (requests, plane) = (bench.stage.requests.of(BARE)?, bench.plane()?);
    let (time, ()) = tokio::try_join!(bench.stage.delete_all(), bare.run(contents))?;
    let work = format!(
        "delete {} {} by a bare client, all gone",
        bench.scale.extensions,
        KIND.words()
    );
    let usage = Usage {
        time,
        cpu: None,
        plane: bench.plane()?.since(plane),
        requests: bench.stage.requests.of(BARE)?.since(requests),
    };
    bench.add_usage(&work, &usage, None).await?;
    bench.stage.wait_for_no_pods().await
}

/// Returns the objects of all extensions, as their revisions list them, by the name of the extension.
async fn contents(client: &Client, extensions: u32) -> Result<BTreeMap<String, Content>> {
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    let sets = sets.list(&ListParams::default()).await?;
    let known = Discovery::new(client.clone()).run_aggregated().await?;
    let contents = sets.items.iter().map(|set| content(set, &known));
    let contents: BTreeMap<String, Content> = contents.collect::<Result<_>>()?;
    ensure!(
        // Every extension has one revision, because nothing was upgraded.
        contents.is_empty() || contents.len() == usize::try_from(extensions)?,
        "revisions of {} instead of {extensions} extensions",
        contents.len()
    );
    Ok(contents)
}

/// Returns the extension to which a revision belongs, and its objects.
fn content(set: &ClusterObjectSet, known: &Discovery) -> Result<(String, Content)> {
    let owners = set.owner_references();
    let owner = owners.first().context("a revision has no owner")?;
    let phases = set.spec.phases.iter().flatten();
    let phases = phases.rev().map(|phase| {
        let objects = phase.objects.iter().rev();
        let places = objects.map(|listed| {
            let object = listed.object.as_ref().context("an object is in a Secret")?;
            Place::of(object, known)
        });
        places.collect()
    });
    let content = Content {
        revision: set.name_any(),
        phases: phases.collect::<Result<_>>()?,
    };
    Ok((owner.name.clone(), content))
}
