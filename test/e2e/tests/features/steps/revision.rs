//! Steps about the revisions (`ClusterObjectSet`s) of an extension.

use std::collections::BTreeSet;

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::then;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use olm_api::{ClusterObjectSet, keys};
use olm_harness::controllers::SYSTEM_NAMESPACE;

use super::expect_condition;
use crate::world::OlmWorld;

#[then(regex = r#"^ClusterObjectSet "([^"]+)" is archived$"#)]
async fn archived(world: &mut OlmWorld, name: String) {
    report(world, &name, "Progressing", "False", "Archived", None).await;
}

#[then(regex = r#"^ClusterObjectSet "([^"]+)" reports (\w+) as (\w+) with Reason (\w+)$"#)]
async fn reports(world: &mut OlmWorld, name: String, type_: String, state: String, reason: String) {
    report(world, &name, &type_, &state, &reason, None).await;
}

#[then(
    regex = r#"^ClusterObjectSet "([^"]+)" reports (\w+) as (\w+) with Reason (\w+) and Message includes:$"#
)]
async fn reports_message(
    world: &mut OlmWorld,
    step: &Step,
    name: String,
    type_: String,
    state: String,
    reason: String,
) {
    let message = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    report(world, &name, &type_, &state, &reason, Some(&message)).await;
}

#[then(regex = r"^ClusterExtension has (\d+) revisions?$")]
async fn revisions(world: &mut OlmWorld, count: usize) -> anyhow::Result<()> {
    let api: Api<ClusterObjectSet> = Api::all(world.cluster().client());
    let owner = format!("{}={}", keys::OWNER_NAME_LABEL, world.name());
    let found = api.list(&ListParams::default().labels(&owner)).await?.items.len();
    anyhow::ensure!(found == count, "it has {found}");
    Ok(())
}

#[then(regex = r#"^ClusterObjectSet "([^"]+)" contains annotation "([^"]+)" with value$"#)]
async fn annotation(world: &mut OlmWorld, step: &Step, name: String, key: String) {
    let reference = format!("clusterobjectset/{}", world.expand(&name));
    let wanted = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    world
        .eventually(&format!("annotation {key} of {reference}"), async || {
            let object = world.cluster().get(&reference, "").await?.context("not there")?;
            let found = object.metadata.annotations.unwrap_or_default().remove(&key);
            anyhow::ensure!(found.as_ref() == Some(&wanted), "it is {found:?}");
            Ok(())
        })
        .await;
}

/// Checks that every object is in a Secret that is immutable, of the right type, labeled, and owned by the revision.
#[then(regex = r#"^ClusterObjectSet "([^"]+)" keeps its objects in immutable Secrets$"#)]
async fn secrets(world: &mut OlmWorld, name: String) -> anyhow::Result<()> {
    let name = world.expand(&name);
    let sets: Api<ClusterObjectSet> = Api::all(world.cluster().client());
    let set = sets.get(&name).await?;
    let mut names = BTreeSet::new();
    for entry in set.spec.phases.iter().flatten().flat_map(|phase| &phase.objects) {
        let reference = entry.ref_.as_ref().context("an object is inline")?;
        anyhow::ensure!(
            reference.namespace.as_deref() == Some(SYSTEM_NAMESPACE),
            "{reference:?}"
        );
        names.insert(reference.name.clone());
    }
    anyhow::ensure!(!names.is_empty(), "it has no objects");
    let secrets: Api<Secret> = Api::namespaced(world.cluster().client(), SYSTEM_NAMESPACE);
    for secret in names {
        let secret = secrets.get(&secret).await?;
        let (labels, owners) = (secret.labels(), secret.owner_references());
        let complete = secret.immutable == Some(true)
            && secret.type_.as_deref() == Some(keys::OBJECT_DATA_SECRET_TYPE)
            && labels.get(keys::REVISION_NAME_LABEL) == Some(&name)
            && labels.get(keys::OWNER_NAME_LABEL) == Some(&world.name())
            && owners
                .iter()
                .any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref());
        anyhow::ensure!(
            complete,
            "{:?} {:?} {:?}",
            secret.metadata,
            secret.immutable,
            secret.type_
        );
    }
    Ok(())
}

async fn report(world: &OlmWorld, name: &str, type_: &str, state: &str, reason: &str, message: Option<&str>) {
    let reference = format!("clusterobjectset/{}", world.expand(name));
    world
        .eventually(&format!("{reference} to report {type_} as {state}"), async || {
            let object = world.cluster().get(&reference, "").await?.context("not there")?;
            expect_condition(&object.data["status"], type_, state, Some(reason), message)
        })
        .await;
}
