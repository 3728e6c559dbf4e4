//! Who may do what: the rights that `config/` grants and those that are used, and the optional admission policies.

mod admission;
mod catalogd;
mod granted;

use anyhow::{Context as _, Result};
use olm_e2e::cluster::Cluster;
use olm_harness::workspace;
use serde_json::Value;

/// Reads the objects of a YAML file below the workspace.
fn manifests(path: &str) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(workspace::root().join(path)).with_context(|| path.to_owned())?;
    serde_saphyr::from_multiple(&text).with_context(|| path.to_owned())
}

/// Applies the objects of a YAML file, and returns them.
async fn apply(cluster: &Cluster, path: &str) -> Result<Vec<Value>> {
    let objects = manifests(path)?;
    for object in &objects {
        cluster
            .apply(object)
            .await
            .with_context(|| format!("{path}: {} {}", object["kind"], object["metadata"]["name"]))?;
    }
    Ok(objects)
}
