//! Reads the revisions of an extension.

use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use olm_api::{ClusterObjectSet, keys};

use super::release::{self, Release, RevisionsError};
use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};
use crate::cluster_extension::pass::Pass;

/// Revisions of an extension at the start of a pass.
pub(crate) struct Observed {
    /// The revisions, in any order.
    pub revisions: Vec<ClusterObjectSet>,
    /// Deployed Helm release of upstream's former runtime, if no revision exists.
    pub release: Option<Release>,
}

/// Reads the revisions of the extension, and its Helm release if it has none.
pub(crate) async fn observe(pass: &Pass<'_>) -> Result<Observed, RevisionsError> {
    let revisions = revisions(pass.context, &pass.name, pass.extension.metadata.uid.as_deref()).await?;
    let release = match revisions.as_slice() {
        [] => release::deployed(pass.context, &pass.name).await?,
        _ => None,
    };
    Ok(Observed { revisions, release })
}

/// Returns the revisions of the extension `name`, in any order.
///
/// Revisions that another extension object controls belong to an earlier extension of the same name and are left out.
pub(crate) async fn revisions(
    context: &Context,
    name: &str,
    uid: Option<&str>,
) -> Result<Vec<ClusterObjectSet>, CallError> {
    let ours = |object: &ClusterObjectSet| {
        let controller = object
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true));
        controller.is_none_or(|owner| uid.is_none_or(|uid| owner.uid == uid))
    };
    if let Some(known) = context.stores.revisions(name) {
        return Ok(known.into_iter().filter(ours).collect());
    }
    let api: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let selector = keys::selector_of_extension(Some(name));
    let what = format!("listing the ClusterObjectSets of ClusterExtension \"{name}\"");
    let list = call(what, api.list(&ListParams::default().labels(&selector))).await?;
    context.stores.listed(name, &list.items);
    Ok(list.items.into_iter().filter(ours).collect())
}
