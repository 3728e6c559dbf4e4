//! Reads the inputs of a decision into one value.

use std::time::Duration;

use jiff::Timestamp;
use olm_api::{AvailabilityMode, ClusterCatalog, keys};

use super::{Context, Inputs, RequestedImage, StoredContent, context::seconds};
use crate::storage::ValidCatalogName;

/// Reads the object, the history and the storage; `now` is the current time.
pub(super) fn gather(
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
        image: catalog.spec.source.image.as_ref().map(|image| RequestedImage {
            reference: image.ref_.clone(),
            poll: image
                .poll_interval_minutes
                .and_then(|minutes| u64::try_from(minutes).ok())
                .filter(|&minutes| minutes > 0)
                .map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
        }),
        stored: context.store.get(name).map(|generation| {
            let origin = &generation.manifest().origin;
            StoredContent {
                requested: origin.requested.clone(),
                unpacked: seconds(origin.unpacked_at),
            }
        }),
        history: context.history.lock().get(name).cloned().unwrap_or_default(),
        now,
    }
}
