//! Reads the objects of the newest revision, for the plan of the next one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};
use olm_api::names::Segment;
use olm_api::{ClusterObjectSet, ObjectSourceRef};
use olm_applier::plan;
use serde_json::Value;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};
use crate::cluster_extension::decide::Revision;
use crate::cluster_extension::decide::plan::Previous;

/// Reads the objects of `revision`, inline or from its Secrets. Objects that are gone are named, since an upgrade must not
/// depend on them.
pub(crate) async fn previous<'a>(
    context: &Context,
    revision: &'a Revision,
) -> Result<Previous<'a>, CallError> {
    let sets: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let what = format!("reading ClusterObjectSet \"{}\"", revision.name);
    let found = match call(what, sets.get_opt(&revision.name)).await? {
        Some(set) => objects(context, &set).await?,
        None => Found::default(),
    };
    Ok(Previous {
        revision,
        objects: found.objects,
        missing: found.missing,
    })
}

/// Objects of a revision, as far as they can be read.
#[derive(Default)]
pub(super) struct Found {
    /// The objects.
    pub(super) objects: Vec<Value>,
    /// Sentences that name the objects that are gone.
    pub(super) missing: Vec<String>,
}

/// Reads the objects of `set`, inline or from its Secrets.
pub(super) async fn objects(context: &Context, set: &ClusterObjectSet) -> Result<Found, CallError> {
    let mut found = Found::default();
    let phases = set.spec.phases.iter().flatten();
    let mut secrets: BTreeMap<(String, String), Option<Secret>> = BTreeMap::new();
    for entry in phases.flat_map(|phase| &phase.objects) {
        if let Some(object) = &entry.object {
            found.objects.push(object.clone());
        }
        let Some(reference) = &entry.ref_ else { continue };
        let place = place(context, reference);
        if !secrets.contains_key(&place) {
            secrets.insert(place.clone(), secret(context, &place).await?);
        }
        let stored = secrets.get(&place).and_then(Option::as_ref);
        let stored = stored.and_then(|secret| secret.data.as_ref()?.get(&reference.key));
        match stored.and_then(|bytes| plan::unpack(&bytes.0).ok().flatten()) {
            Some(object) => found.objects.push(object),
            None => found.missing.push(format!(
                "object \"{}\" of revision \"{}\": Secret {}/{} is gone or has no such object",
                reference.key,
                set.name_any(),
                place.0,
                place.1
            )),
        }
    }
    Ok(found)
}

fn place(context: &Context, reference: &ObjectSourceRef) -> (String, String) {
    let named = reference
        .namespace
        .clone()
        .filter(|namespace| !namespace.is_empty());
    let namespace = named.unwrap_or_else(|| context.shared.system_namespace.to_string());
    (namespace, reference.name.clone())
}

/// Reads a Secret; a name that no API server accepts belongs to none.
async fn secret(context: &Context, place: &(String, String)) -> Result<Option<Secret>, CallError> {
    let (Ok(namespace), Ok(name)) = (Segment::new(&place.0), Segment::new(&place.1)) else {
        return Ok(None);
    };
    let api: Api<Secret> = Api::namespaced(context.shared.client.clone(), &namespace);
    let what = format!("reading Secret {}/{}", place.0, place.1);
    call(what, api.get_opt(&name)).await
}
