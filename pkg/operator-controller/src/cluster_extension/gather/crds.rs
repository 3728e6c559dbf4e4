//! Refuses a bundle whose CRDs are unsafe for the stored objects, judged by their schemas and, if the spec asks for it, by the stored
//! objects themselves ([`stored`]).

use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Resource as _, ResourceExt as _};
use olm_api::names::Segment;
use olm_api::{ClusterExtension, CrdStoredObjects, CrdUpgradeSafety, CrdUpgradeSafetyEnforcement};
use olm_bundle::crd_safety::Rules;
use olm_bundle::crd_schema;
use olm_decide::extension::crd_findings::{CrdChange, Findings};
use olm_runtime::{Feature, FeatureGates};
use olm_text::object::ObjectId;
use serde_json::Value;
use tokio::time::Instant;

use super::served;
use super::stored::{self, StoredCheck};
use crate::cluster_extension::call::{CallError, call, side_by_side};
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::{Context, account};

/// Compares every CRD among `objects` with the one on the cluster. Findings without a waiver are a [`Failure`] that names as many as
/// fit; the log has all.
pub(crate) async fn check(
    context: &Context,
    extension: &ClusterExtension,
    objects: &[Value],
    change: CrdChange,
) -> Result<(), Failure> {
    let safety = settings(extension);
    let compares = safety.is_none_or(|safety| safety.enforcement != CrdUpgradeSafetyEnforcement::None);
    let looks = safety.is_some_and(|safety| safety.stored_objects == Some(CrdStoredObjects::Check));
    if !compares && !looks {
        return Ok(());
    }
    let given = safety
        .and_then(|safety| safety.waivers.as_deref())
        .unwrap_or_default();
    let rules = rules(&context.features);
    // Untyped: a typed copy would lose fields that this build does not know and report them as removed.
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(account::reader(context, extension)?, &kind);
    let mut checks = Vec::new();
    let mut findings = Findings::new(given, change);
    let mut took = Duration::ZERO;
    // Searched after all reads: a search can take longer than the answer to a read may.
    let mut dropped = Vec::new();
    let mut present = present(&api, objects);
    while let Some((name, new, old)) = present.next().await {
        let Some(old) = old? else {
            continue;
        };
        let old = serde_json::to_value(old).map_err(|_| Failure::Interrupted("reading a CRD"))?;
        let unserved = if compares {
            findings.compare(name, &old, new, rules)
        } else {
            None
        };
        let presumed = findings.take_left_to_objects(name);
        if looks || !presumed.is_empty() {
            let mut plan = crd_schema::plan(&old, new);
            if !presumed.is_empty() {
                plan = plan.refusing_loss();
            }
            checks.push(StoredCheck {
                crd: name.to_owned(),
                plan,
                presumed,
            });
        }
        dropped.extend(unserved.map(|unserved| (name, old, unserved)));
    }
    drop(present);
    for (name, old, unserved) in dropped {
        let started = Instant::now();
        let found = served::look(context, extension, name, &old, &unserved).await?;
        findings.add(name, found);
        took += started.elapsed();
    }
    let idle = findings.idle();
    if findings.refused.is_empty() {
        let warn = |reason, note: &str| {
            let object = extension.object_ref(&());
            context.events.warning(object, reason, "Reconcile", note);
        };
        if compares && !idle.is_empty() {
            let idle = idle.join("; ");
            let note = format!("waivers that match no change of a CRD, and can go: {idle}");
            warn("WaiverUnused", &note);
        }
        if !findings.warnings.is_empty() {
            warn("ServedVersionRemoved", &findings.warnings.join("; "));
        }
        return stored::check(context, extension, checks, change).await;
    }
    for finding in &findings.refused {
        tracing::warn!(finding, "unsafe change of a CRD");
    }
    let text = findings.message(&extension.name_any());
    Err(Failure::CrdSafety { text, took })
}

/// Reads the CRDs of the cluster that have the names of the CRDs among `objects`, each with its name and the object, in the order of the
/// objects.
fn present<'a>(
    api: &'a Api<DynamicObject>,
    objects: &'a [Value],
) -> impl Stream<Item = (&'a str, &'a Value, Result<Option<DynamicObject>, CallError>)> + Send + Unpin {
    let crds = objects.iter().filter(|object| ObjectId::of(object).is_crd());
    let reads = crds.filter_map(|new| {
        let name = new.pointer("/metadata/name").and_then(Value::as_str)?;
        let segment = Segment::new(name).ok()?;
        let what = format!("reading CustomResourceDefinition \"{name}\"");
        Some(async move { (name, new, call(what, api.get_opt(&segment)).await) }.boxed())
    });
    side_by_side(reads.collect())
}

/// Returns the rules for changes of CRDs.
pub(super) fn rules(features: &FeatureGates) -> Rules {
    if features.enabled(Feature::UpstreamCrdUpgradeSafety) {
        Rules::Upstream
    } else {
        Rules::Ours
    }
}

fn settings(extension: &ClusterExtension) -> Option<&CrdUpgradeSafety> {
    let install = extension.spec.install.as_ref()?;
    Some(&install.preflight.as_ref()?.crd_upgrade_safety)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use tokio::sync::Barrier;

    use super::*;

    fn crd(name: &str) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}})
    }

    #[tokio::test]
    async fn crds_are_read_side_by_side_and_in_order() {
        // The API server answers once two reads wait, and the second one first.
        let both = Arc::new(Barrier::new(2));
        let service = tower::service_fn(move |request: Request<Body>| {
            let both = Arc::clone(&both);
            async move {
                let path = request.uri().path().to_owned();
                both.wait().await;
                let (code, answer) = if path.ends_with("/a.example.com") {
                    tokio::task::yield_now().await;
                    (200, crd("a.example.com"))
                } else {
                    let status = json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "NotFound",
                        "code": 404});
                    (404, status)
                };
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, tower::BoxError>(answer?)
            }
        });
        let kind = ApiResource::erase::<CustomResourceDefinition>(&());
        let api: Api<DynamicObject> = Api::all_with(Client::new(service, "default"), &kind);
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        let objects = [
            crd("a.example.com"),
            other,
            crd("not/a/name"),
            crd("b.example.com"),
        ];
        let found: Vec<(&str, bool)> = present(&api, &objects)
            .map(|(name, _, old)| (name, old.unwrap().is_some()))
            .collect()
            .await;
        assert_eq!(found, [("a.example.com", true), ("b.example.com", false)]);
    }
}
