//! Reads the inputs of a decision into one value.

use std::time::Duration;

use jiff::Timestamp;
use olm_api::{AvailabilityMode, ClusterCatalog, ImageSource, keys};

use super::{
    Context, Inputs, RequestedImage, StoredContent, cluster_version,
    context::seconds,
    image_template::{TemplateError, expand, needs_openshift},
};
use crate::storage::ValidCatalogName;

/// Reads the object, the history and the storage, and the cluster's version if the image follows it; `now` is the current time.
pub(super) async fn gather(
    context: &Context,
    name: &ValidCatalogName,
    catalog: &ClusterCatalog,
    now: Timestamp,
) -> Inputs {
    let metadata = &catalog.metadata;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let label = metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(keys::METADATA_NAME_LABEL));
    Inputs {
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizer: finalizers
            .iter()
            .any(|finalizer| finalizer == keys::CATALOG_FINALIZER),
        label: label.map(String::as_str) == Some(name.as_str()),
        available: catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable),
        image: requested_image(context, catalog).await,
        stored: stored_content(context, name).await,
        refresh: metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(keys::REFRESH_REQUESTED_ANNOTATION))
            .and_then(|time| time.parse().ok()),
        history: context.history_of(name),
        now,
    }
}

/// Returns the served content, judged by the present signature policy.
async fn stored_content(context: &Context, name: &ValidCatalogName) -> Option<StoredContent> {
    let generation = context.store.get(name)?;
    let origin = &generation.manifest().origin;
    Some(StoredContent {
        requested: origin.requested.clone(),
        unpacked: seconds(origin.unpacked_at),
        judgement: context.images.judge(origin).await,
    })
}

/// Returns the image of the spec, with the reference that the template gives if there is one.
async fn requested_image(
    context: &Context,
    catalog: &ClusterCatalog,
) -> Result<Option<RequestedImage>, TemplateError> {
    let Some(image) = &catalog.spec.source.image else {
        return Ok(None);
    };
    let reference = match template(catalog) {
        None => image.ref_.clone(),
        Some(template) => {
            let versions = cluster_version::read(&context.client, needs_openshift(template)).await;
            expand(template, &versions)?
        }
    };
    Ok(Some(RequestedImage {
        reference,
        poll: poll_interval(image),
    }))
}

/// Returns the image template of a catalog, if it has one.
pub(super) fn template(catalog: &ClusterCatalog) -> Option<&str> {
    let annotations = catalog.metadata.annotations.as_ref()?;
    let template = annotations.get(keys::CATALOG_IMAGE_TEMPLATE_ANNOTATION)?;
    Some(template.trim()).filter(|template| !template.is_empty())
}

fn poll_interval(image: &ImageSource) -> Option<Duration> {
    image
        .poll_interval_minutes
        .and_then(|minutes| u64::try_from(minutes).ok())
        .filter(|&minutes| minutes > 0)
        .map(|minutes| Duration::from_secs(minutes.saturating_mul(60)))
}
