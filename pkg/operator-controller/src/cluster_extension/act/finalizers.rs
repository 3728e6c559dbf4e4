//! Finalizers of an extension.

use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use olm_api::{ClusterExtension, keys};
use serde_json::json;

use crate::cluster_extension::call::{CallError, call};

/// Finalizers of upstream. The work behind both is done before either is removed.
const FINALIZERS: [&str; 2] = [keys::CLEANUP_UNPACK_FINALIZER, keys::CLEANUP_CONTENT_FINALIZER];

/// Returns true if the extension has one of the finalizers.
pub(crate) fn held(extension: &ClusterExtension) -> bool {
    extension.finalizers().iter().any(|finalizer| is_ours(finalizer))
}

/// Adds the missing finalizers. Returns the extension if one was missing.
pub(crate) async fn add(
    api: &Api<ClusterExtension>,
    extension: &ClusterExtension,
) -> Result<Option<ClusterExtension>, CallError> {
    let mut all = extension.finalizers().to_vec();
    for finalizer in FINALIZERS {
        if !all.iter().any(|present| present == finalizer) {
            all.push(finalizer.to_owned());
        }
    }
    if all.len() == extension.finalizers().len() {
        return Ok(None);
    }
    set(api, extension, all).await.map(Some)
}

/// Removes the finalizers. An extension that is gone needs none.
pub(crate) async fn remove(
    api: &Api<ClusterExtension>,
    extension: &ClusterExtension,
) -> Result<(), CallError> {
    let left = extension.finalizers().iter();
    let left = left.filter(|finalizer| !is_ours(finalizer)).cloned().collect();
    match set(api, extension, left).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn is_ours(finalizer: &str) -> bool {
    FINALIZERS.contains(&finalizer)
}

async fn set(
    api: &Api<ClusterExtension>,
    extension: &ClusterExtension,
    finalizers: Vec<String>,
) -> Result<ClusterExtension, CallError> {
    let name = extension.name_any();
    // The patch replaces the whole list. The resource version protects entries that others add meanwhile.
    let patch = json!({ "metadata": {
        "resourceVersion": extension.metadata.resource_version,
        "finalizers": finalizers,
    }});
    let what = format!("setting the finalizers of ClusterExtension \"{name}\"");
    call(
        what,
        api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)),
    )
    .await
}
