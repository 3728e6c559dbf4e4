//! What a replica does while another one leads: it pulls what the leader resolved, so that every
//! replica serves the same, and writes nothing to the API.

use std::{sync::Arc, time::Duration};

use kube::{Api, ResourceExt, api::ListParams};
use olm_api::{AvailabilityMode, ClusterCatalog};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Context, act};
use crate::storage::CatalogName;

/// How often the catalogs are looked at.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long the API server may take to list them.
const CALL: Duration = Duration::from_secs(30);
/// Catalogs asked for in one answer.
const PAGE: u32 = 200;

/// Keeps up with the leader until `stop`.
pub async fn follow(context: Arc<Context>, stop: CancellationToken) {
    loop {
        if let Some(done) = stop.run_until_cancelled(round(&context)).await {
            if let Err(error) = done {
                tracing::warn!(error, "catalogs cannot be listed");
            }
        } else {
            return;
        }
        if stop
            .run_until_cancelled(tokio::time::sleep(INTERVAL))
            .await
            .is_none()
        {
            return;
        }
    }
}

async fn round(context: &Arc<Context>) -> Result<(), String> {
    let api = Api::<ClusterCatalog>::all(context.client.clone());
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = timeout(CALL, api.list(&params))
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?
            .map_err(|error| olm_runtime::telemetry::chain(&error))?;
        for catalog in &page.items {
            keep_up(context, catalog).await;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

async fn keep_up(context: &Arc<Context>, catalog: &ClusterCatalog) {
    let Ok(name) = CatalogName::new(catalog.name_any()) else {
        return;
    };
    let stored = context.store.get(&name);
    let gone = catalog.metadata.deletion_timestamp.is_some()
        || catalog.spec.availability_mode == Some(AvailabilityMode::Unavailable);
    let resolved = catalog
        .status
        .as_ref()
        .and_then(|status| Some(&status.resolved_source.as_ref()?.image.ref_));
    let done = match resolved {
        _ if gone && stored.is_some() => act::remove(context, &name).await,
        Some(resolved) if !gone => {
            if stored.is_some_and(|stored| stored.manifest().origin.resolved == *resolved) {
                return;
            }
            let requested = catalog
                .spec
                .source
                .image
                .as_ref()
                .map_or(resolved, |image| &image.ref_);
            act::pull_resolved(context, &name, requested, resolved)
                .await
                .map(drop)
        }
        _ => return,
    };
    if let Err(error) = done {
        tracing::warn!(catalog = %name, error = olm_runtime::telemetry::chain(&error), "not following the leader yet");
    }
}
