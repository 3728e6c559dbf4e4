//! Follower: pulls the images that the leader resolved, so that every replica serves the same content. Writes nothing
//! to the API.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::watch::Receiver, task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Context, act,
    catalog_state::CatalogState,
    decide::POLICY_INTERVAL,
    watch::{CatalogStates, CatalogWatch},
};
use crate::storage::{Store, ValidCatalogName};

/// Maximum delay before a retry: the leader pulled the image, so it should be available.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Follows the leader until `stop`. A slow or broken catalog does not delay the others.
pub async fn follow(context: Arc<Context>, watch: CatalogWatch, stop: CancellationToken) {
    let mut states = watch.subscribe();
    let mut damages = context.store.damages();
    let mut tasks = JoinSet::new();
    let mut running: HashSet<ValidCatalogName> = HashSet::new();
    loop {
        let now = states.borrow_and_update().clone();
        let stored = stored_names(&context.store).await;
        let unaccepted = unaccepted(&context, &stored).await;
        for (name, task) in pending_tasks(&context, stored, &unaccepted, &now) {
            if running.insert(name.clone()) {
                let span = tracing::error_span!("catalog", catalog = %name);
                let task = run_task(context.clone(), name, task, watch.subscribe());
                tasks.spawn(task.instrument(span));
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(POLICY_INTERVAL) => {}
            changed = states.changed() => if changed.is_err() { return },
            reported = damages.changed() => if reported.is_err() { return },
            Some(done) = tasks.join_next() => match done {
                Ok(name) => {
                    running.remove(&name);
                }
                // The name of a panicked task is unknown; the next round finds the remaining work.
                Err(_) if tasks.is_empty() => running.clear(),
                Err(_) => {}
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    /// Pull the image of the status.
    Pull {
        requested: String,
        resolved: String,
    },
    /// Verify stored content that the status does not name. A refusal removes the content.
    Verify {
        requested: String,
        resolved: String,
    },
    Remove,
}

/// Returns the catalogs in the store. A store that cannot be read removes nothing until the next round.
async fn stored_names(store: &Arc<Store>) -> Vec<ValidCatalogName> {
    let store = store.clone();
    match tokio::task::spawn_blocking(move || store.names()).await {
        Ok(Ok(names)) => names,
        Ok(Err(error)) => {
            tracing::warn!(
                error = olm_text::chain(&error),
                "could not list the stored catalogs"
            );
            Vec::new()
        }
        Err(error) => {
            tracing::error!(%error, "could not list the stored catalogs");
            Vec::new()
        }
    }
}

/// Returns the differences between this replica, which has content of the catalogs in `stored`, and the API.
fn pending_tasks(
    context: &Context,
    stored: Vec<ValidCatalogName>,
    unaccepted: &BTreeSet<ValidCatalogName>,
    states: &CatalogStates,
) -> Vec<(ValidCatalogName, Task)> {
    let Some(states) = states else {
        return Vec::new();
    };
    let gone = stored
        .into_iter()
        .filter(|name| !states.contains_key(name))
        .map(|name| (name, Task::Remove));
    let changed: BTreeMap<_, _> = states
        .iter()
        .filter_map(|(name, state)| {
            Some((
                name.clone(),
                task_for(context, name, state, !unaccepted.contains(name))?,
            ))
        })
        .collect();
    gone.chain(changed).collect()
}

/// Returns the stored catalogs that the signature policy does not accept as they are stored. A pull judges them.
async fn unaccepted(context: &Context, stored: &[ValidCatalogName]) -> BTreeSet<ValidCatalogName> {
    let mut names = BTreeSet::new();
    for name in stored {
        if let Some(generation) = context.store.get(name)
            && !context
                .images
                .accepts(&generation.manifest().origin)
                .await
                .unwrap_or(false)
        {
            names.insert(name.clone());
        }
    }
    names
}

/// Returns the next task for a catalog. `accepted` says that the signature policy accepts the stored content, if there is any.
fn task_for(
    context: &Context,
    name: &ValidCatalogName,
    state: &CatalogState,
    accepted: bool,
) -> Option<Task> {
    let stored = context.store.get(name);
    if state.withdrawn {
        return stored.map(|_| Task::Remove);
    }
    let own = stored.map(|stored| stored.manifest().origin.clone());
    let Some(resolved) = state.resolved.clone() else {
        // The leader serves nothing, perhaps because its policy refused the image.
        return own.filter(|_| !accepted).map(|own| Task::Verify {
            requested: own.requested,
            resolved: own.resolved,
        });
    };
    let current = accepted && own.is_some_and(|own| own.resolved == resolved);
    (!current).then(|| Task::Pull {
        // With the digest, a replica that leads later resolves the reference of the spec instead of taking it for resolved.
        requested: state.requested.clone().unwrap_or_else(|| resolved.clone()),
        resolved,
    })
}

/// Runs a task, or waits out the backoff after a failure. A pull ends without effect if its image is no longer wanted.
async fn run_task(
    context: Arc<Context>,
    name: ValidCatalogName,
    task: Task,
    states: Receiver<CatalogStates>,
) -> ValidCatalogName {
    let work = async {
        match &task {
            Task::Pull { requested, resolved } => {
                let unwanted = unwanted(states, &name, Some(resolved));
                let pull = Box::pin(pull_image(&context, &name, requested, resolved));
                while_wanted(pull, unwanted).await
            }
            Task::Verify { requested, resolved } => {
                let pull = Box::pin(act::pull_resolved(&context, &name, requested, resolved));
                while_wanted(pull, unwanted(states, &name, None)).await
            }
            Task::Remove => act::remove(&context, &name).await,
        }
    };
    let failed = match context
        .reconciles
        .guard("ClusterCatalog", name.as_str(), work)
        .await
    {
        Ok(done) => done.err().map(|error| olm_text::chain(&error)),
        Err(panicked) => Some(panicked.to_string()),
    };
    match failed {
        None => context.backoff.clear(&name),
        Some(error) => {
            tracing::warn!(error, "could not follow the leader");
            sleep(context.backoff.failed(name.clone()).min(MAX_BACKOFF)).await;
        }
    }
    name
}

/// Pulls the image of the status. Other content that is served meanwhile, or because the pull fails, is judged by its own reference.
async fn pull_image(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    requested: &str,
    resolved: &str,
) -> Result<act::Pulled, act::ActError> {
    act::reject_stored(context, name).await;
    let pulled = act::pull_resolved(context, name, requested, resolved).await;
    if pulled.is_err() {
        act::judge_stored(context, name).await;
    }
    pulled
}

/// Pulls an image until `unwanted` ends.
async fn while_wanted(
    pull: impl Future<Output = Result<act::Pulled, act::ActError>>,
    unwanted: impl Future<Output = ()>,
) -> Result<(), act::ActError> {
    tokio::select! {
        pulled = pull => pulled.map(drop),
        () = unwanted => Ok(()),
    }
}

/// Waits until the status no longer names this image of a catalog, or, with `None`, until it names one.
async fn unwanted(mut states: Receiver<CatalogStates>, name: &ValidCatalogName, resolved: Option<&str>) {
    let changed = states.wait_for(|states| {
        let state = states.as_ref().and_then(|states| states.get(name));
        !state.is_some_and(|state| !state.withdrawn && state.resolved.as_deref() == resolved)
    });
    if changed.await.is_err() {
        // The watch has ended.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests;
