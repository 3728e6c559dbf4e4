//! Writing what a reconcile came to.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
};
use olm_api::{ClusterCatalog, keys};
use olm_status::cluster_catalog::{self, Outcome};
use serde_json::json;
use tokio::time::timeout;

use super::{
    Context,
    act::{ActError, Pulled},
};
use crate::storage::CatalogName;

/// How long one call to the API server may take.
const CALL: Duration = Duration::from_secs(30);

/// Why something was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReportError {
    /// The API server refused it.
    #[error("error updating {what} of ClusterCatalog {name}")]
    Refused {
        /// What was to be written.
        what: &'static str,
        /// Of which catalog.
        name: String,
        /// What it said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not answer.
    #[error("error updating {what} of ClusterCatalog {name}: the API server did not answer within {CALL:?}")]
    TooSlow {
        /// What was to be written.
        what: &'static str,
        /// Of which catalog.
        name: String,
    },
}

/// Writes the status after `outcome` when it differs; returns the object as it is then.
pub(super) async fn status(
    context: &Context,
    name: &CatalogName,
    mut catalog: ClusterCatalog,
    outcome: &Outcome,
) -> Result<ClusterCatalog, ReportError> {
    let generation = catalog.metadata.generation.unwrap_or_default();
    let status = cluster_catalog::status(
        catalog.status.as_ref(),
        generation,
        outcome,
        &Time(Timestamp::now()),
    );
    if cluster_catalog::same(catalog.status.as_ref(), &status) {
        return Ok(catalog);
    }
    tell(context, &catalog, outcome);
    catalog.status = Some(status);
    let api = Api::<ClusterCatalog>::all(context.client.clone());
    // With the resource version: what somebody else wrote meanwhile is looked at first.
    call(
        "status",
        name,
        api.replace_status(name.as_str(), &PostParams::default(), &catalog),
    )
    .await
}

/// Sets label and, when `finalizer` says so, the finalizer; or takes the finalizer away.
pub(super) async fn metadata(
    context: &Context,
    name: &CatalogName,
    catalog: &ClusterCatalog,
    finalizer: bool,
) -> Result<(), ReportError> {
    let had = catalog.metadata.finalizers.clone().unwrap_or_default();
    let mut finalizers = had.clone();
    finalizers.retain(|own| own != keys::CATALOG_FINALIZER);
    if finalizer {
        finalizers.push(keys::CATALOG_FINALIZER.to_owned());
    }
    let mut metadata = json!({ "resourceVersion": catalog.metadata.resource_version });
    if catalog.metadata.deletion_timestamp.is_none() {
        metadata["labels"] = json!({ keys::METADATA_NAME_LABEL: name.as_str() });
    }
    let (mut before, mut after) = (had, finalizers.clone());
    before.sort();
    after.sort();
    if before != after {
        metadata["finalizers"] = json!(finalizers);
    }
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let api = Api::<ClusterCatalog>::all(context.client.clone());
    call(
        "finalizers",
        name,
        api.patch(name.as_str(), &PatchParams::default(), &patch),
    )
    .await
    .map(drop)
}

async fn call<T>(
    what: &'static str,
    name: &CatalogName,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ReportError> {
    match timeout(CALL, answer).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(source)) => Err(ReportError::Refused {
            what,
            name: name.to_string(),
            source: Box::new(source),
        }),
        Err(_) => Err(ReportError::TooSlow {
            what,
            name: name.to_string(),
        }),
    }
}

impl ReportError {
    /// Whether the object is gone or was changed by somebody else, which its watch tells us anyway.
    pub(super) fn overtaken(&self) -> bool {
        matches!(self, Self::Refused { source, .. }
            if matches!(source.as_ref(), kube::Error::Api(status) if status.is_not_found() || status.is_conflict()))
    }
}

/// Says that stored content was given up, before it is pulled again.
pub(super) async fn damaged(
    context: &Context,
    name: &CatalogName,
    catalog: ClusterCatalog,
    damage: String,
) -> Result<ClusterCatalog, ReportError> {
    let message = format!("{damage}; it is not served any more, and pulled again");
    context
        .events
        .warning(catalog.object_ref(&()), "ContentDamaged", "Check", &message);
    let outcome = Outcome::Retrying {
        message,
        served: context.served_now(name),
    };
    status(context, name, catalog, &outcome).await
}

/// Events of new content: what was pulled, what was stored.
pub(super) fn tell_new(context: &Context, catalog: &ClusterCatalog, pulled: &Pulled) {
    let Some(took) = pulled.new else { return };
    let manifest = pulled.generation.manifest();
    let image = &manifest.origin.resolved;
    let note = format!("Pulled image {image} in {:.1} s", took.pull.as_secs_f64());
    context
        .events
        .normal(catalog.object_ref(&()), "Pulled", "Pull", &note);
    let note = format!(
        "Unpacked {} objects, of these {} packages and {} bundles, in {:.1} s from {image}",
        manifest.counts.metas,
        manifest.counts.packages,
        manifest.counts.bundles,
        took.store.as_secs_f64(),
    );
    context
        .events
        .normal(catalog.object_ref(&()), "Unpacked", "Unpack", &note);
}

/// An event of a failed try; the same failure again is counted on the same event.
pub(super) fn tell_failed(context: &Context, catalog: &ClusterCatalog, error: &ActError) {
    let action = match error {
        ActError::Store(_) => "Unpack",
        ActError::Remove(_) => "Remove",
        _ => "Pull",
    };
    context.events.warning(
        catalog.object_ref(&()),
        error.reason(),
        action,
        &error.to_string(),
    );
}

/// Events of statuses that say something new and that no other event tells.
fn tell(context: &Context, catalog: &ClusterCatalog, outcome: &Outcome) {
    let object = catalog.object_ref(&());
    match outcome {
        Outcome::Serving(served) => {
            let note = format!("Serving the content of {}", served.reference);
            context.events.normal(object, "Serving", "Serve", &note);
        }
        Outcome::Unavailable => {
            let note = "The content is not served any more";
            context.events.normal(object, "Unavailable", "Withdraw", note);
        }
        Outcome::Retrying { .. } | Outcome::Blocked { .. } | Outcome::Deleting => {}
    }
}
