//! Searches for users of the versions that a new CRD no longer serves.

use olm_api::ClusterExtension;
use olm_applier::stored::{SearchLimits, uses};
use olm_bundle::crd_safety::{ServedVerdict, UnservedVersions};
use serde_json::Value;
use tokio::time::Instant;

use super::stored::turn;
use crate::cluster_extension::call::chain;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::{Context, account};

/// Judges the versions of `crd`, which is `old` in the cluster, by the metadata of its objects. If the API server refuses the list, or
/// the webhook that converts the objects is broken, the result is a warning: the upgrade may be what mends the webhook. After any
/// other failure the extension waits.
pub(super) async fn look(
    context: &Context,
    extension: &ClusterExtension,
    crd: &str,
    old: &Value,
    unserved: &UnservedVersions,
) -> Result<ServedVerdict, Failure> {
    let client = account::reader(context, extension)?;
    let _turn = turn().await?;
    let started = Instant::now();
    let judged = match uses(&client, unserved, &SearchLimits::default()).await {
        Ok(found) => {
            tracing::info!(
                crd,
                objects = found.objects,
                partial = found.partial,
                seconds = started.elapsed().as_secs_f64(),
                "searched for objects that use versions that a CRD no longer serves"
            );
            unserved.evaluate(&found)
        }
        Err(error) if error.is_permanent(old) => unserved.unchecked(&chain(&error)),
        Err(source) => {
            return Err(Failure::Survey {
                crd: crd.to_owned(),
                source: Box::new(source),
                took: started.elapsed(),
            });
        }
    };
    for warning in &judged.warnings {
        tracing::warn!(crd, warning, "change of a CRD");
    }
    Ok(judged)
}
