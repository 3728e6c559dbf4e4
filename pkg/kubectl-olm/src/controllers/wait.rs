//! Waiting for CRDs, Deployments and deletions, with progress on standard error.

use std::time::Duration;

use olm_applier::plan::default_probes;
use olm_applier::probe::Prober;
use olm_applier::workload::Workload;
use serde_json::Value;
use tokio::time::Instant;

use super::title;
use crate::commands::common::progress;
use crate::failure::Failure;
use crate::source::{Cluster, Kinds, SourceError};

/// Interval between two reads of an object.
const POLL: Duration = Duration::from_millis(500);

/// Waits until the CRDs and Deployments among `objects` are established and available.
///
/// # Errors
/// The time is over; the error says why the first object is not ready.
pub(crate) async fn until_ready(
    cluster: &Cluster,
    objects: &[Value],
    kinds: &Kinds,
    deadline: Instant,
) -> Result<(), Failure> {
    // The probes of extensions fit: they establish CRDs and await the rollout of Deployments.
    let prober = Prober::new(&default_probes()).unwrap_or_default();
    for object in objects.iter().filter(|object| prober.selects(object)) {
        let mut told = String::new();
        loop {
            let why = unready(cluster, object, kinds, &prober).await?;
            let Some(why) = why else {
                progress(&format!("{} is ready", title(object)));
                break;
            };
            if why != told {
                progress(&format!("{}: {why}", title(object)));
                told.clone_from(&why);
            }
            if Instant::now() >= deadline {
                return Err(Failure::NegativeAnswer(format!(
                    "{} is not ready in time: {why}. The installation is applied; wait longer with --timeout, or ask \
                     `kubectl olm doctor`",
                    title(object)
                )));
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

/// Returns the reason why an object is not ready; none if it is.
async fn unready(
    cluster: &Cluster,
    object: &Value,
    kinds: &Kinds,
    prober: &Prober,
) -> Result<Option<String>, SourceError> {
    let Some(present) = cluster.present(object, kinds).await? else {
        return Ok(Some("it does not exist".to_owned()));
    };
    let present = serde_json::to_value(present).unwrap_or_default();
    let result = prober.check(&present);
    if result.ready {
        return Ok(None);
    }
    if let Some(workload) = Workload::of(&present)
        && let Some(why) = cluster.diagnosis(&workload).await.clause()
    {
        return Ok(Some(why));
    }
    Ok(Some(result.messages.join(" and ")))
}

/// Waits until none of `objects` exists with its uid.
///
/// # Errors
/// The time is over.
pub(crate) async fn until_gone(
    cluster: &Cluster,
    objects: &[(Value, Option<String>)],
    kinds: &Kinds,
    deadline: Instant,
) -> Result<(), Failure> {
    for (object, uid) in objects {
        loop {
            let present = cluster.present(object, kinds).await?;
            if present.is_none_or(|present| present.metadata.uid != *uid) {
                break;
            }
            if Instant::now() >= deadline {
                return Err(Failure::NegativeAnswer(format!(
                    "{} is not gone in time: a finalizer in its metadata may hold it",
                    title(object)
                )));
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}
