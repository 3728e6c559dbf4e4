//! The use of versions that a new CRD no longer serves.

use olm_applier::stored::{SearchLimits, uses};
use olm_bundle::crd_safety::{Rules, Served, unserved};
use serde_json::Value;

use super::common::progress;
use crate::failure::Failure;
use crate::source::{Cluster, SourceError};

/// The verdict on such versions. Without a cluster, or the right to list its objects, they are warnings.
pub(super) async fn verdict(
    cluster: Option<&Cluster>,
    old: &Value,
    new: &Value,
    rules: Rules,
) -> Result<Served, Failure> {
    let Some(unserved) = unserved(old, new).filter(|_| rules == Rules::Ours) else {
        return Ok(Served::default());
    };
    let Some(cluster) = cluster else {
        return Ok(unserved.unchecked("the objects are on the cluster"));
    };
    progress(&format!(
        "looking for the use of versions of {}.{}",
        unserved.plural, unserved.group
    ));
    match uses(cluster.client(), &unserved, &SearchLimits::default()).await {
        Ok(found) => Ok(unserved.judge(&found)),
        Err(error) => {
            let lasts = error.is_permanent();
            let failure = Failure::from(SourceError::from(error));
            if lasts {
                Ok(unserved.unchecked(&failure.message()))
            } else {
                Err(failure)
            }
        }
    }
}
