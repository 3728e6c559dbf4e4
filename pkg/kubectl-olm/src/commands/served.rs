//! Check of versions that a new CRD no longer serves.

use olm_applier::stored::{SearchLimits, uses};
use olm_bundle::crd_safety::{Rules, ServedVerdict, unserved_versions};
use serde_json::Value;

use super::common::progress;
use crate::failure::Failure;
use crate::source::{Cluster, SourceError};

/// Checks the use of such versions. Without a cluster, or the right to list its objects, they are warnings.
pub(super) async fn verdict(
    cluster: Option<&Cluster>,
    old: &Value,
    new: &Value,
    rules: Rules,
) -> Result<ServedVerdict, Failure> {
    let Some(unserved) = unserved_versions(old, new).filter(|_| rules == Rules::Ours) else {
        return Ok(ServedVerdict::default());
    };
    let Some(cluster) = cluster else {
        return Ok(unserved.unchecked("this needs a cluster"));
    };
    progress(&format!(
        "checking the use of the versions of {}.{}",
        unserved.plural, unserved.group
    ));
    match uses(cluster.client(), &unserved, &SearchLimits::default()).await {
        Ok(found) => Ok(unserved.evaluate(&found)),
        Err(error) => {
            let lasts = error.is_permanent(old);
            let failure = Failure::from(SourceError::from(error));
            if lasts {
                Ok(unserved.unchecked(&failure.message()))
            } else {
                Err(failure)
            }
        }
    }
}
