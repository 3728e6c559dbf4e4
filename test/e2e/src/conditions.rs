//! Waits for conditions of objects.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::Cluster;

/// Waits until the cluster-scoped object `reference` has a condition `type_` for which `wanted` is true, and returns the object.
/// `wanted` gets the object and the condition; `what` says in the error what is wanted.
///
/// # Errors
/// The object has no such condition in `timeout`.
pub async fn wait(
    cluster: &Cluster,
    reference: &str,
    timeout: Duration,
    type_: &str,
    what: &str,
    wanted: impl Fn(&DynamicObject, &Value) -> bool,
) -> Result<DynamicObject> {
    let what = format!("{reference}: {type_} with {what}");
    eventually(timeout, &what, async || {
        let object = cluster.get(reference, "").await?.context("it does not exist")?;
        let conditions = &object.data["status"]["conditions"];
        let mut all = conditions.as_array().into_iter().flatten();
        ensure!(
            all.any(|found| found["type"] == type_ && wanted(&object, found)),
            "{conditions}"
        );
        Ok(object)
    })
    .await
}

/// Returns true if the message of a condition contains `part`.
pub fn says(condition: &Value, part: &str) -> bool {
    condition["message"]
        .as_str()
        .is_some_and(|text| text.contains(part))
}
