//! Writes statuses, metadata and events of catalogs.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
};
use olm_api::{CatalogPoll, ClusterCatalog, event::Reason, keys};
use olm_status::cluster_catalog::{self, Outcome};
use serde_json::json;
use tokio::time::timeout;

use super::{
    Context, Loss,
    act::{ActError, Pulled},
};
use crate::storage::ValidCatalogName;

/// Timeout of one call to the API server.
const API_TIMEOUT: Duration = Duration::from_secs(30);

/// Failure to write to the API server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReportError {
    /// The API server rejected the write.
    #[error("error updating {what} of ClusterCatalog {name}")]
    Refused {
        /// The written part of the object.
        what: &'static str,
        /// Name of the catalog.
        name: String,
        /// Cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not answer in time.
    #[error(
        "error updating {what} of ClusterCatalog {name}: the API server did not answer within {API_TIMEOUT:?}"
    )]
    TooSlow {
        /// The written part of the object.
        what: &'static str,
        /// Name of the catalog.
        name: String,
    },
}

/// Writes the status for `outcome` if it changed; returns the resulting object. Without `poll`, the status keeps the one it has.
pub(super) async fn status(
    context: &Context,
    name: &ValidCatalogName,
    mut catalog: ClusterCatalog,
    outcome: &Outcome,
    poll: Option<CatalogPoll>,
) -> Result<ClusterCatalog, ReportError> {
    let generation = catalog.metadata.generation.unwrap_or_default();
    let old = catalog.status.as_ref();
    let loss = context.loss(name);
    let refusal = match &loss {
        Some(Loss::Refused(message)) => Some(message.as_str()),
        Some(Loss::Damaged(_)) | None => None,
    };
    let now = Time(Timestamp::now());
    let status = cluster_catalog::status(old, generation, outcome, poll, refusal, &now);
    let same = cluster_catalog::same(old, &status);
    if same && old.is_some_and(|old| old.poll == status.poll) {
        context.told_loss(name);
        return Ok(catalog);
    }
    if !same {
        emit_status_event(context, &catalog, outcome);
    }
    catalog.status = Some(status);
    let api = Api::<ClusterCatalog>::all(context.client.clone());
    // The resource version makes a concurrent change a conflict, which requeues the object.
    let written = call(
        "status",
        name,
        api.replace_status(name.as_str(), &PostParams::default(), &catalog),
    )
    .await?;
    context.told_loss(name);
    Ok(written)
}

/// Sets the label, and adds or removes the finalizer; returns the resulting object.
pub(super) async fn metadata(
    context: &Context,
    name: &ValidCatalogName,
    catalog: &ClusterCatalog,
    finalizer: bool,
) -> Result<ClusterCatalog, ReportError> {
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
}

async fn call<T>(
    what: &'static str,
    name: &ValidCatalogName,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ReportError> {
    match timeout(API_TIMEOUT, answer).await {
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
    /// Reports whether the object was deleted or changed meanwhile; its watch event requeues it anyway.
    pub(super) fn superseded(&self) -> bool {
        matches!(self, Self::Refused { source, .. }
            if matches!(source.as_ref(), kube::Error::Api(status) if status.is_not_found() || status.is_conflict()))
    }
}

/// Emits the event of content that was discarded as damaged, and records the loss for the status.
pub(super) fn damaged(context: &Context, name: &ValidCatalogName, catalog: &ClusterCatalog, damage: &str) {
    let message = format!("{damage}; it is not served any more, and pulled again");
    context.events.warning(
        catalog.object_ref(&()),
        Reason::ContentDamaged.as_str(),
        "Check",
        &message,
    );
    context.update_history(name, |history| history.loss = Some(Loss::Damaged(message)));
}

/// Writes a loss of the stored content to the status if the status still names the content. A pull can take long, and meanwhile the
/// status must not name content that is no longer served.
pub(super) async fn loss(
    context: &Context,
    name: &ValidCatalogName,
    catalog: ClusterCatalog,
) -> Result<ClusterCatalog, ReportError> {
    let named = catalog
        .status
        .as_ref()
        .is_some_and(|status| status.resolved_source.is_some());
    let Some(loss) = context.loss(name).filter(|_| named) else {
        return Ok(catalog);
    };
    let outcome = Outcome::Retrying {
        message: loss.message().to_owned(),
        served: None,
    };
    status(context, name, catalog, &outcome, None).await
}

/// Emits the events of newly pulled and stored content.
pub(super) fn emit_pulled(context: &Context, catalog: &ClusterCatalog, pulled: &Pulled) {
    let Some(timings) = pulled.timings else { return };
    let manifest = pulled.generation.manifest();
    let image = &manifest.origin.resolved;
    let note = format!("Pulled image {image} in {:.1} s", timings.pull.as_secs_f64());
    context
        .events
        .normal(catalog.object_ref(&()), Reason::Pulled.as_str(), "Pull", &note);
    let note = format!(
        "Unpacked {} objects, of these {} packages and {} bundles, in {:.1} s from {image}",
        manifest.counts.metas,
        manifest.counts.packages,
        manifest.counts.bundles,
        timings.store.as_secs_f64(),
    );
    context.events.normal(
        catalog.object_ref(&()),
        Reason::Unpacked.as_str(),
        "Unpack",
        &note,
    );
}

/// Emits the event of a failure; repeated failures increase its count.
pub(super) fn emit_failed(context: &Context, catalog: &ClusterCatalog, error: &ActError) {
    let action = match error {
        ActError::Store(_) => "Unpack",
        ActError::Remove(_) => "Remove",
        _ => "Pull",
    };
    context.events.warning(
        catalog.object_ref(&()),
        error.reason().as_str(),
        action,
        &error.to_string(),
    );
}

/// Emits the event of stored content that the signature policy refuses. `Progressing` has only the failure of the spec's image. The
/// object may be one that does not decode.
pub(super) fn emit_refused(context: &Context, catalog: &impl Resource<DynamicType = ()>, refusal: &ActError) {
    let note = format!("{refusal}; the stored content of this image is no longer served");
    context.events.warning(
        catalog.object_ref(&()),
        refusal.reason().as_str(),
        "Verify",
        &note,
    );
}

/// Emits the event of a status change that has no event of its own.
fn emit_status_event(context: &Context, catalog: &ClusterCatalog, outcome: &Outcome) {
    let object = catalog.object_ref(&());
    match outcome {
        Outcome::Serving(served) => {
            let note = format!("Serving the content of {}", served.reference);
            context
                .events
                .normal(object, Reason::Serving.as_str(), "Serve", &note);
        }
        Outcome::Unavailable => {
            let note = "The content is not served any more";
            context
                .events
                .normal(object, Reason::Unavailable.as_str(), "Withdraw", note);
        }
        Outcome::Retrying { .. } | Outcome::Blocked { .. } | Outcome::Deleting => {}
    }
}
