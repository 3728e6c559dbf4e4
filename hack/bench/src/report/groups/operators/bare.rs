//! The bare client: writes each object of a revision once, in the order of the phases, and waits between phases until CRDs are
//! established and Deployments are available.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::discovery::Discovery;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use olm_api::{ClusterObjectSet, ClusterObjectSetObject};
use olm_applier::content::{self, SecretPlace};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::report::object::Place;
use crate::report::stage::{pause, until};

/// Number of objects of a phase that are written in parallel.
const AT_ONCE: usize = 8;
/// Maximum wait for the objects of a phase.
const PATIENCE: Duration = Duration::from_mins(5);

/// Returns the objects of a revision by phase.
pub(super) async fn phases(client: &Client, set: &ClusterObjectSet) -> Result<Vec<Vec<Value>>> {
    let mut secrets = BTreeMap::new();
    for place in content::places(set, SYSTEM_NAMESPACE) {
        let secret = content::secret(client, &place).await?;
        secrets.insert(place, secret);
    }
    let object = |listed: &ClusterObjectSetObject| {
        let Some(reference) = &listed.ref_ else {
            return listed.object.clone().context("an object has no content");
        };
        let place = SecretPlace::of(reference, SYSTEM_NAMESPACE);
        let secret = secrets.get(&place).and_then(Option::as_ref);
        Ok(content::object(reference, &place, secret)?)
    };
    let phases = set.spec.phases.iter().flatten();
    phases
        .map(|phase| phase.objects.iter().map(object).collect())
        .collect()
}

/// Writes all objects. Returns the time until all of them exist and are ready, and the number of requests.
pub(super) async fn install(client: &Client, phases: &[Vec<Value>]) -> Result<(Duration, u32)> {
    let known = Discovery::new(client.clone()).run_aggregated().await?;
    let start = Instant::now();
    let mut requests = 0;
    for objects in phases {
        let places = places(objects, &known)?;
        futures::stream::iter(places.iter().zip(objects).map(Ok))
            .try_for_each_concurrent(AT_ONCE, async |(place, object)| {
                write(client, place, object).await
            })
            .await?;
        requests += u32::try_from(objects.len())?;
        requests += wait(client, &places, is_established).await?;
        requests += wait(client, &places, is_available).await?;
    }
    Ok((start.elapsed(), requests))
}

fn places(objects: &[Value], known: &Discovery) -> Result<Vec<Place>> {
    objects.iter().map(|object| Place::of(object, known)).collect()
}

async fn write(client: &Client, place: &Place, object: &Value) -> Result<()> {
    let params = PatchParams::apply("bench").force();
    place
        .api(client)
        .patch(&place.name, &params, &Patch::Apply(object))
        .await
        .map(drop)
        .with_context(|| format!("cannot write {} {}", place.resource.kind, place.name))
}

/// Waits until every object of type `K` in `places` is ready. Returns the number of requests.
async fn wait<K>(client: &Client, places: &[Place], is_ready: fn(&K) -> bool) -> Result<u32>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let (group, kind) = (K::group(&()), K::kind(&()));
    let of_kind = |place: &&Place| place.resource.group == group && place.resource.kind == kind;
    let mut waiting: BTreeSet<&str> = places
        .iter()
        .filter(of_kind)
        .map(|place| place.name.as_str())
        .collect();
    if waiting.is_empty() {
        return Ok(0);
    }
    let api: Api<K> = Api::all(client.clone());
    let mut objects = pin!(watcher(api, watcher::Config::default()).applied_objects());
    let watch = async {
        while !waiting.is_empty() {
            let object = objects.try_next().await?.context("a watch ended")?;
            if is_ready(&object) {
                waiting.remove(object.name_any().as_str());
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, watch)
        .await
        .with_context(|| format!("not within {PATIENCE:?}: every {kind} is ready"))??;
    // One list and one watch.
    Ok(2)
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().filter_map(|status| status.conditions.as_ref());
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn is_available(deployment: &Deployment) -> bool {
    let conditions = deployment
        .status
        .iter()
        .filter_map(|status| status.conditions.as_ref());
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Available" && condition.status == "True")
}

/// Deletes all objects, the last phase first, and waits until each of them is gone.
pub(super) async fn delete(client: &Client, phases: &[Vec<Value>]) -> Result<()> {
    let known = Discovery::new(client.clone()).run_aggregated().await?;
    for objects in phases.iter().rev() {
        for place in places(objects, &known)? {
            let api = place.api(client);
            api.delete(&place.name, &DeleteParams::background()).await?;
            until("an object is gone", pause(1), async || {
                Ok(api.get_opt(&place.name).await?.is_none())
            })
            .await?;
        }
    }
    Ok(())
}
