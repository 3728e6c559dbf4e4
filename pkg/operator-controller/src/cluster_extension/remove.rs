//! Deletion: the revisions go first, in the care of their own controller, then what was kept for the extension.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};

use super::call::{CallError, call};
use super::gather;
use super::{Context, account};

/// The finalizer by which `kubectl delete --cascade=orphan` asks to leave everything where it is.
const ORPHAN: &str = "orphan";
/// How many revisions a message names.
const NAMED: usize = 5;

/// What is left of an extension that is being deleted.
#[derive(Debug)]
pub(crate) enum Removal {
    /// Nothing: the finalizers may go.
    Done,
    /// Revisions that are still taken down; the text says which and how far they are.
    Waiting(String),
}

/// Takes the next step of removing everything of `extension`.
pub(crate) async fn remove(context: &Context, extension: &ClusterExtension) -> Result<Removal, CallError> {
    let name = extension.name_any();
    if !extension.finalizers().iter().any(|finalizer| finalizer == ORPHAN) {
        let left = gather::revisions(context, &name, extension.metadata.uid.as_deref()).await?;
        // The spec may have been changed since, so that the removal can go on.
        account::follow(context, extension, &left).await?;
        for revision in left.iter().filter(|r| r.metadata.deletion_timestamp.is_none()) {
            delete(context, revision).await?;
        }
        if !left.is_empty() {
            return Ok(Removal::Waiting(waiting(&left)));
        }
        delete_secrets(context, &name).await?;
    }
    context.forget(&name).await;
    Ok(Removal::Done)
}

async fn delete(context: &Context, revision: &ClusterObjectSet) -> Result<(), CallError> {
    let api: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let name = revision.name_any();
    // Not another object that has taken the name meanwhile.
    let only_this = DeleteParams {
        preconditions: Some(Preconditions {
            uid: revision.uid(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match call(
        format!("deleting ClusterObjectSet \"{name}\""),
        api.delete(&name, &only_this),
    )
    .await
    {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Object Secrets that no revision came to own, after a crash between the two writes.
async fn delete_secrets(context: &Context, name: &str) -> Result<(), CallError> {
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &context.shared.system_namespace);
    let ours = ListParams::default()
        .labels(&format!("{}={name}", keys::OWNER_NAME_LABEL))
        .fields(&format!("type={}", keys::OBJECT_DATA_SECRET_TYPE));
    let what = format!("listing the object Secrets of ClusterExtension \"{name}\"");
    for secret in call(what, api.list_metadata(&ours)).await?.items {
        let secret = secret.name_any();
        let what = format!("deleting Secret \"{secret}\"");
        match call(what, api.delete(&secret, &DeleteParams::background())).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn waiting(left: &[ClusterObjectSet]) -> String {
    let mut names: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut text = format!(
        "being deleted: waiting for the objects of {} to be removed",
        names.join(", ")
    );
    if more > 0 {
        text.push_str(" and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    // What its own controller says of the newest tells what it is held up by.
    let newest = left.iter().max_by_key(|revision| revision.spec.revision);
    let conditions = newest
        .and_then(|r| r.status.as_ref())
        .and_then(|s| s.conditions.as_ref());
    let held_up = conditions
        .into_iter()
        .flatten()
        .find(|c| c.type_ == "Progressing" && c.reason == "Retrying");
    if let Some(condition) = held_up {
        text.push_str(": ");
        text.push_str(&condition.message);
    }
    text
}
