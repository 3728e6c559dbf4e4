//! Waits for conditions of objects.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::Cluster;

/// Maximum time until a condition is there.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Waits until the cluster-scoped object `reference` has a condition `type_` for which `wanted` is true. Returns the object.
///
/// # Errors
/// The object has no such condition in time. The error names `what` was wanted.
pub async fn wait(
    cluster: &Cluster,
    reference: &str,
    type_: &str,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<DynamicObject> {
    eventually(
        TIMEOUT,
        &format!("{reference}: {type_} with {what}"),
        async || {
            let object = cluster.get(reference, "").await?.context("it does not exist")?;
            let conditions = &object.data["status"]["conditions"];
            let mut all = conditions.as_array().into_iter().flatten();
            ensure!(
                all.any(|found| found["type"] == type_ && wanted(found)),
                "{conditions}"
            );
            Ok(object)
        },
    )
    .await
}

/// Waits until the message of a condition of the cluster-scoped object `reference` contains `part`. Returns the object.
///
/// # Errors
/// The object has no such condition in time.
pub async fn wait_for_message(
    cluster: &Cluster,
    reference: &str,
    type_: &str,
    part: &str,
) -> Result<DynamicObject> {
    wait(cluster, reference, type_, part, |found| {
        found["message"].as_str().is_some_and(|text| text.contains(part))
    })
    .await
}
