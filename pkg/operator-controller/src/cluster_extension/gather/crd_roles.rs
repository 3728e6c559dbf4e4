//! `ClusterRole`s for the custom resources of a bundle, added to its objects.
//!
//! The roles are an extra: an installation never fails because of them. They are left out, and an event says so, if the service account
//! may not write them or if a `ClusterRole` of the same name belongs to somebody else.

use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use olm_api::event::Reason;
use olm_api::keys;
use olm_api::names::Segment;
use olm_bundle::crd_roles;
use olm_text::object::metadata_name;
use serde_json::Value;

use super::rights;
use super::target::Target;
use crate::cluster_extension::account;
use crate::cluster_extension::call::{CallError, call, side_by_side};
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Most roles that an event names.
const NAMED: usize = 5;

/// Returns the roles for the CRDs among `objects`.
pub(crate) async fn roles(
    pass: &Pass<'_>,
    target: &Target,
    objects: &[Value],
) -> Result<Vec<Value>, Failure> {
    if !pass.context.shared.crd_roles {
        return Ok(Vec::new());
    }
    let roles = crd_roles(objects);
    if roles.is_empty() {
        return Ok(roles);
    }
    if let Some(account) = &target.account {
        match rights::check(pass.context, account, &roles).await {
            Ok(()) => {}
            Err(Failure::Rights { .. }) => {
                let why =
                    format!("the {account} lacks the rights to write them; the next revision tries again");
                left_out(pass, &roles, &why);
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        }
    }
    let reader = account::reader(pass.context, pass.extension)?;
    let (kept, foreign) = divide(&reader, &pass.name, roles).await?;
    if !foreign.is_empty() {
        left_out(
            pass,
            &foreign,
            "ClusterRoles of these names exist and belong to others",
        );
    }
    Ok(kept)
}

/// Divides the roles into those that the extension can write, and those whose names are taken.
async fn divide(
    reader: &Client,
    extension: &str,
    roles: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>), CallError> {
    let looks = roles
        .into_iter()
        .map(|role| async move { (is_taken(reader, extension, metadata_name(&role)).await, role) }.boxed());
    let mut looks = side_by_side(looks.collect());
    let (mut kept, mut foreign) = (Vec::new(), Vec::new());
    while let Some((taken, role)) = looks.next().await {
        if taken? {
            foreign.push(role);
        } else {
            kept.push(role);
        }
    }
    Ok((kept, foreign))
}

/// Returns true if a role of this name belongs to somebody else. A role that may not be read is not taken: its revision reports a
/// collision.
async fn is_taken(reader: &Client, extension: &str, name: &str) -> Result<bool, CallError> {
    let api: Api<ClusterRole> = Api::all(reader.clone());
    let Ok(segment) = Segment::new(name) else {
        return Ok(true);
    };
    let what = format!("reading ClusterRole \"{name}\"");
    match call(what, api.get_metadata_opt(&segment)).await {
        Ok(found) => Ok(found.is_some_and(|role| {
            role.labels().get(keys::OWNER_NAME_LABEL).map(String::as_str) != Some(extension)
        })),
        Err(error) if error.is_forbidden() => Ok(false),
        Err(error) => Err(error),
    }
}

fn left_out(pass: &Pass<'_>, roles: &[Value], why: &str) {
    let names: Vec<&str> = roles.iter().take(NAMED).map(metadata_name).collect();
    let more = match roles.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let note = format!(
        "ClusterRoles for custom resources are left out: {}{more}: {why}",
        names.join(", ")
    );
    tracing::info!("{note}");
    let (object, reason) = (pass.extension.object_ref(&()), Reason::CrdRolesLeftOut.as_str());
    pass.context.events.normal(object, reason, "Reconcile", &note);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn roles_are_looked_up_side_by_side() {
        let all = Arc::new(Barrier::new(3));
        let service = tower::service_fn(move |request: Request<Body>| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                let name = request
                    .uri()
                    .path()
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                let owner = if name == "b" { "y" } else { "x" };
                let role = json!({"metadata": {"name": name, "labels": {keys::OWNER_NAME_LABEL: owner}}});
                let answer = Response::builder().body(Body::from(role.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        let reader = Client::new(service, "default");
        let roles = ["a", "b", "c"].map(|name| json!({"metadata": {"name": name}}));
        let (kept, foreign) = divide(&reader, "x", roles.to_vec()).await.unwrap();
        assert_eq!(kept, [roles[0].clone(), roles[2].clone()]);
        assert_eq!(foreign, [roles[1].clone()]);
    }
}
