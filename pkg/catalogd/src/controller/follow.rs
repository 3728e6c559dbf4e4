//! What a replica does while another one leads: it pulls what the leader resolved, so that every
//! replica serves the same, and writes nothing to the API.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Context, act,
    claims::{Claim, Claims, Known},
};
use crate::storage::CatalogName;

/// Longest pause before what failed is tried again: the leader had it, so it should be there.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Keeps up with the leader until `stop`. One catalog that is slow or broken holds up no other.
pub async fn follow(context: Arc<Context>, claims: Claims, stop: CancellationToken) {
    let mut known = claims.subscribe();
    let mut damages = context.store.damages();
    let mut tasks = JoinSet::new();
    let mut at_work: HashSet<CatalogName> = HashSet::new();
    loop {
        let now = known.borrow_and_update().clone();
        for (name, task) in due(&context, &now) {
            if at_work.insert(name.clone()) {
                tasks.spawn(keep_up(context.clone(), name, task));
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = known.changed() => if changed.is_err() { return },
            reported = damages.changed() => if reported.is_err() { return },
            Some(done) = tasks.join_next() => match done {
                Ok(name) => {
                    at_work.remove(&name);
                }
                // Whose work it was is not known any more; the next round sees what is left to do.
                Err(_) if tasks.is_empty() => at_work.clear(),
                Err(_) => {}
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    Pull { requested: String, resolved: String },
    Remove,
}

/// What is not as the API says.
fn due(context: &Context, known: &Known) -> Vec<(CatalogName, Task)> {
    let Some(claims) = known else {
        return Vec::new();
    };
    let stored = context.store.names().unwrap_or_default();
    let gone = stored
        .into_iter()
        .filter(|name| !claims.contains_key(name))
        .map(|name| (name, Task::Remove));
    let kept: BTreeMap<_, _> = claims
        .iter()
        .filter_map(|(name, claim)| Some((name.clone(), task(context, name, claim)?)))
        .collect();
    gone.chain(kept).collect()
}

fn task(context: &Context, name: &CatalogName, claim: &Claim) -> Option<Task> {
    let stored = context.store.get(name);
    if claim.withdrawn {
        return stored.map(|_| Task::Remove);
    }
    let resolved = claim.served.clone()?;
    let own = stored.map(|stored| stored.manifest().origin.resolved.clone());
    (own.as_ref() != Some(&resolved)).then(|| Task::Pull {
        requested: claim.requested.clone(),
        resolved,
    })
}

/// Does the task, or waits before it is tried again.
async fn keep_up(context: Arc<Context>, name: CatalogName, task: Task) -> CatalogName {
    let work = async {
        match &task {
            Task::Pull { requested, resolved } => {
                let pull = act::pull_resolved(&context, &name, requested, resolved);
                Box::pin(pull).await.map(drop)
            }
            Task::Remove => act::remove(&context, &name).await,
        }
    };
    let failed = match context
        .reconciles
        .guard("ClusterCatalog", name.as_str(), work)
        .await
    {
        Ok(done) => done.err().map(|error| olm_runtime::telemetry::chain(&error)),
        Err(panicked) => Some(panicked.to_string()),
    };
    match failed {
        None => context.backoff.clear(&name),
        Some(error) => {
            tracing::warn!(catalog = %name, error, "not following the leader yet");
            sleep(context.backoff.failed(name.clone()).min(LONGEST_PAUSE)).await;
        }
    }
    name
}
