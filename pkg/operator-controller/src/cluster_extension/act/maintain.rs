//! Maintains the revisions before resolution: takes over a Helm release, follows the spec, resumes paused revisions, prunes archived
//! revisions.

use kube::Api;
use kube::api::DeleteParams;
use olm_api::ClusterObjectSet;

use super::{follow, pause, take_over};
use crate::cluster_extension::call::{CallError, call, chain};
use crate::cluster_extension::decide::{History, superfluous};
use crate::cluster_extension::gather::release::RevisionsError;
use crate::cluster_extension::gather::revisions::Observed;
use crate::cluster_extension::pass::Pass;

/// Revisions of an extension after the writes that they need whatever bundle is resolved.
pub(crate) struct Maintained {
    /// The revisions, as the later steps see them.
    pub history: History,
    /// False if an archived revision could not be deleted.
    pub pruned: bool,
}

/// Carries out what the revisions need whatever bundle is resolved.
pub(crate) async fn maintain(pass: &Pass<'_>, observed: Observed) -> Result<Maintained, RevisionsError> {
    let Observed {
        mut revisions,
        release,
    } = observed;
    if let Some(release) = release {
        let created = take_over::take_over(pass, &release).await?;
        pass.context.stores.wrote_revision(&pass.name, &created);
        revisions.push(created);
    }
    follow::follow(pass.context, pass.extension, &revisions).await?;
    pause::follow(pass, &revisions, false).await?;
    let history = History::read(&revisions);
    let pruned = prune(pass, &history).await;
    if let Err(error) = &pruned {
        tracing::warn!(
            error = chain(error),
            "an archived revision cannot be deleted; trying again"
        );
    }
    Ok(Maintained {
        history,
        pruned: pruned.is_ok(),
    })
}

/// Deletes the archived revisions beyond the number that is kept.
async fn prune(pass: &Pass<'_>, history: &History) -> Result<(), CallError> {
    let sets: Api<ClusterObjectSet> = Api::all(pass.context.shared.client.clone());
    for revision in superfluous(history).iter().map(|revision| &revision.name) {
        let what = format!("deleting the archived ClusterObjectSet \"{revision}\"");
        match call(what, sets.delete(revision, &DeleteParams::background())).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
