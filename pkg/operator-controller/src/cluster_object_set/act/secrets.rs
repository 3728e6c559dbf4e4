//! Makes a revision the owner of the Secrets with its objects, which exist before the revision.

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource as _, ResourceExt as _};
use olm_api::ClusterObjectSet;
use olm_runtime::client::is_absent;
use serde_json::json;

use crate::cluster_object_set::error::{Error, limited};
use crate::cluster_object_set::gather::SecretKey;

/// Most Secrets that get their owner at once.
const AT_ONCE: usize = 8;

/// Makes the revision the owner of these Secrets. Secrets that are gone are left out.
///
/// # Errors
/// A sentence about the first Secret that cannot be changed.
pub(super) async fn own(
    client: &Client,
    set: &ClusterObjectSet,
    unowned: &[SecretKey],
) -> Result<(), String> {
    let Some(owner) = set.controller_owner_ref(&()) else {
        return Ok(());
    };
    let name = set.name_any();
    let patches: Vec<_> = unowned
        .iter()
        .map(|secret| own_one(client, &name, &owner, secret).boxed())
        .collect();
    stream::iter(patches).buffered(AT_ONCE).try_collect().await
}

async fn own_one(
    client: &Client,
    revision: &str,
    owner: &OwnerReference,
    secret: &SecretKey,
) -> Result<(), String> {
    let SecretKey {
        place,
        uid,
        resource_version,
    } = secret;
    let api: Api<Secret> = Api::namespaced(client.clone(), &place.namespace);
    let patch =
        json!({"metadata": {"uid": uid, "resourceVersion": resource_version, "ownerReferences": [owner]}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    let call = api.patch_metadata(&place.name, &params, &patch);
    match limited("making a Secret go with", revision, call).await {
        Ok(_) => Ok(()),
        Err(Error::Call { source, .. }) if is_absent(&source) => Ok(()),
        Err(error) => {
            let why = error.why();
            Err(format!("making Secret {place} go with the revision: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use olm_applier::content::SecretPlace;
    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn secrets_get_their_owner_side_by_side() {
        // The API server answers once all three requests wait. The first Secret is gone, and the others may not be changed.
        let all = Arc::new(Barrier::new(3));
        let service = tower::service_fn(move |request: Request<Body>| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                let (code, reason) = match request.uri().path().rsplit('/').next() {
                    Some("a") => (404, "NotFound"),
                    _ => (403, "Forbidden"),
                };
                let status = json!({"kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code});
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(status.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        let set = json!({"metadata": {"name": "x-1", "uid": "u"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}});
        let set: ClusterObjectSet = serde_json::from_value(set).unwrap();
        let unowned = ["a", "b", "c"].map(|name| SecretKey {
            place: SecretPlace {
                namespace: "system".to_owned(),
                name: name.to_owned(),
            },
            uid: None,
            resource_version: None,
        });
        let why = own(&Client::new(service, "default"), &set, &unowned)
            .await
            .unwrap_err();
        let expected = "making Secret system/b go with the revision: ";
        assert!(why.starts_with(expected), "{why}");
    }
}
