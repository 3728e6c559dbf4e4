//! Pulls the image of a catalog, and gives the outcome of a pull, a failure or a wait for the status.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Resource, runtime::controller::Action};
use olm_api::{CatalogPollResult, ClusterCatalog};
use olm_status::cluster_catalog::Outcome;

use super::{
    Check, Context, Failure, Inputs, Poll, act,
    decide::MAX_JITTER,
    report::{self, ReportError},
};
use crate::storage::ValidCatalogName;

/// End of a pull.
pub(super) enum Pull {
    /// The pull was interrupted; nothing is reported.
    Ended(Action),
    /// The catalog, the outcome for its status, and the delay before the next reconcile.
    Reported(Box<ClusterCatalog>, Outcome, Option<Duration>),
}

/// Resolves the image, stores its content if it is new, and records the check of the registry.
pub(super) async fn pull_and_record(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    mut catalog: ClusterCatalog,
    inputs: &Inputs,
) -> Result<Pull, ReportError> {
    let image = inputs.image.as_ref().ok().and_then(Option::as_ref);
    if let Some(damage) = context.store.take_damage(name) {
        report::damaged(context, name, &catalog, &damage);
    }
    let requested = image.map(|image| image.reference.clone()).unwrap_or_default();
    // The pull judges only content of the reference that it asks for, and can take long.
    let former = inputs
        .stored
        .as_ref()
        .filter(|stored| stored.requested != requested);
    if former.is_some()
        && let Some(refusal) = act::reject_stored(context, name).await
    {
        report::emit_refused(context, &catalog, &refusal);
    }
    catalog = report::loss(context, name, catalog).await?;
    // A deletion or a new spec ends the pull, which can take long: nothing of it is visible before it is complete.
    let pulled = tokio::select! {
        pulled = act::pull(context, name, &requested) => pulled,
        () = context.superseded(name, catalog.metadata.generation) => {
            return Ok(Pull::Ended(Action::requeue(Duration::ZERO)));
        }
    };
    if matches!(pulled, Err(act::ActError::Interrupted)) {
        return Ok(Pull::Ended(Action::await_change()));
    }
    // Only now: until a pull has ended, the next reconcile must still follow the request.
    context.update_history(name, |history| history.refresh = inputs.refresh);
    let checked = |result: CatalogPollResult| {
        Some(Check {
            reference: requested.clone(),
            at: Timestamp::now(),
            result,
        })
    };
    let (outcome, requeue_after) = match pulled {
        Ok(pulled) => {
            report::emit_pulled(context, &catalog, &pulled);
            let poll = Poll {
                at: Timestamp::now(),
                jitter: rand::random_range(0.0..=MAX_JITTER),
            };
            let result = match pulled.timings {
                Some(_) => CatalogPollResult::Stored,
                None => CatalogPollResult::Unchanged,
            };
            context.update_history(name, |history| {
                history.poll = Some(poll);
                history.failure = None;
                history.check = checked(result);
            });
            let interval = image.and_then(|image| image.poll);
            (
                Outcome::Serving(context.served(name, &pulled.generation)),
                interval.map(|interval| interval.mul_f64(1.0 + poll.jitter)),
            )
        }
        Err(error) => {
            report::emit_failed(context, &catalog, &error);
            judge_and_emit(context, name, &catalog).await;
            let retry = (!error.is_terminal()).then(|| {
                let wait = context.backoff.failed(name.clone());
                Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX)
            });
            context.update_history(name, |history| {
                history.check = checked(CatalogPollResult::Failed);
            });
            let failure = Failure {
                generation: inputs.generation,
                message: error.to_string(),
                retry,
                reference: requested,
            };
            record_failure(context, name, failure)
        }
    };
    Ok(Pull::Reported(Box::new(catalog), outcome, requeue_after))
}

/// Judges stored content that no pull judges: the new image of the spec cannot be pulled, or waits for a retry, or the spec does not
/// decode. Emits the event of a refusal.
pub(super) async fn judge_and_emit(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    catalog: &(impl Resource<DynamicType = ()> + Sync),
) {
    // A new spec requeues the catalog, so that its content is judged again.
    let refusal = tokio::select! {
        refusal = act::judge_stored(context, name) => refusal,
        () = context.superseded(name, catalog.meta().generation) => None,
    };
    if let Some(refusal) = refusal {
        report::emit_refused(context, catalog, &refusal);
    }
}

/// Records a failure.
pub(super) fn record_failure(
    context: &Context,
    name: &ValidCatalogName,
    failure: Failure,
) -> (Outcome, Option<Duration>) {
    tracing::warn!(error = failure.message, "catalog content could not be updated");
    let requeue_after = failure
        .retry
        .map(|at| Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
    context.update_history(name, |history| history.failure = Some(failure.clone()));
    (failure_outcome(context, name, failure), requeue_after)
}

pub(super) fn failure_outcome(context: &Context, name: &ValidCatalogName, failure: Failure) -> Outcome {
    let (message, served) = (failure.message, context.served_now(name));
    match failure.retry {
        Some(_) => Outcome::Retrying { message, served },
        None => Outcome::Blocked { message, served },
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response, StatusCode};
    use kube::{Client, client::Body};
    use olm_api::condition::{find, types};
    use serde_json::json;

    use super::*;
    use crate::controller::{
        gather::gather,
        judged::{Judged, REQUESTED, name, resolved},
    };

    /// Returns a catalog whose status names the stored content, and whose spec asks for another image.
    fn catalog() -> ClusterCatalog {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {
                "name": "c", "generation": 2,
                "annotations": {olm_api::keys::REFRESH_REQUESTED_ANNOTATION: "2026-01-01T00:00:00Z"},
            },
            "spec": {"source": {"type": "Image", "image": {"ref": "127.0.0.1:1/other:v2"}}},
            "status": {
                "resolvedSource": {"type": "Image", "image": {"ref": resolved()}},
                "conditions": [{
                    "type": "Serving", "status": "True", "reason": "Available", "message": "",
                    "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            },
        }))
        .unwrap()
    }

    /// The pull can take long. A conflict repeats the reconcile, which finds nothing stored.
    #[tokio::test]
    async fn a_refusal_is_in_the_status_before_the_next_pull() {
        let mut judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
        judged.policy_of(&[("127.0.0.1:1/c", &json!({"type": "reject"}))]);
        let conflicts = tower::service_fn(async |_: Request<Body>| {
            let mut conflict = Response::new(Body::empty());
            *conflict.status_mut() = StatusCode::CONFLICT;
            Ok::<_, Infallible>(conflict)
        });
        let own = Arc::get_mut(&mut judged.context).unwrap();
        let accepting = std::mem::replace(&mut own.client, Client::new(conflicts, "default"));
        let inputs = gather(&judged.context, &name(), &catalog(), Timestamp::now()).await;
        let failed = pull_and_record(&judged.context, &name(), catalog(), &inputs).await;
        assert!(failed.is_err());
        assert!(!judged.is_served());
        let followed = |context: &Context| context.history_of(&name()).refresh;
        assert_eq!(followed(&judged.context), None, "nothing was pulled");

        Arc::get_mut(&mut judged.context).unwrap().client = accepting;
        let inputs = gather(&judged.context, &name(), &catalog(), Timestamp::now()).await;
        let ended = pull_and_record(&judged.context, &name(), catalog(), &inputs)
            .await
            .unwrap();
        let Pull::Reported(told, ..) = ended else {
            panic!("the pull was interrupted");
        };
        let serving = find(told.conditions(), types::Catalog::Serving).unwrap();
        assert!(
            serving.message.contains("the signature policy refuses it"),
            "{serving:?}"
        );
        assert!(told.status.unwrap().resolved_source.is_none());
        assert!(inputs.refresh.is_some());
        assert_eq!(followed(&judged.context), inputs.refresh);
    }

    /// A new spec of the same image leaves the content current: without the request, nothing would check the registry.
    #[tokio::test(start_paused = true)]
    async fn a_request_outlives_the_pull_that_a_new_spec_ends() {
        let judged = Judged::new(REQUESTED, &json!({"type": "insecureAcceptAnything"}));
        let context = &judged.context;
        let mut catalog = catalog();
        // A digest needs no registry, so that the pull waits for the lock.
        catalog.spec.source.image.as_mut().unwrap().ref_ = resolved();
        let _storing = context.store.lock(&name()).await;
        // The catalog is not in the controller's store: it was deleted.
        assert!(context.catalogs.set(kube::runtime::reflector::store().0).is_ok());
        let inputs = gather(context, &name(), &catalog, Timestamp::now()).await;
        let ended = pull_and_record(context, &name(), catalog, &inputs).await.unwrap();
        assert!(matches!(ended, Pull::Ended(_)));
        assert_eq!(context.history_of(&name()).refresh, None);
    }
}
