//! Pairs of specs: after a change from spec A to spec B, the cluster must be in the state of B alone, and A → B → A must lead
//! back.
//!
//! A *walk* applies one spec after the other to a single ClusterExtension. [`simulated`] walks in virtual time on the simulated
//! API server, [`real`] on a real one. Both have the same specs and the same checks; [`ways`] records the pairs.

mod real;
mod simulated;
mod ways;

pub use real::pairs as real_pairs;
pub use simulated::pairs;

use std::sync::Arc;

use anyhow::Context as _;
use olm_api::ClusterExtension;
use serde_json::Value;

use crate::check::Expected;
use crate::model::Goal;

impl Expected {
    /// Makes `spec` the spec of the only extension, and returns the extension with its goal. The goal starts from the bundle that
    /// the spec before has installed.
    fn only(&mut self, spec: &Value) -> anyhow::Result<(ClusterExtension, Goal)> {
        let extension: ClusterExtension =
            serde_json::from_value(spec.clone()).context("the spec cannot be read")?;
        let before = self
            .extensions
            .pop()
            .and_then(|(_, goals)| goals.into_iter().next());
        let mut goal = self.goal(&extension, before.and_then(|goal| goal.bundle));
        // A spec that cannot be resolved changes no object, so the objects still follow an earlier spec and are not compared.
        goal.stuck |= !goal.complete;
        self.extensions.push((extension.clone(), vec![goal.clone()]));
        Ok((extension, goal))
    }
}

impl Goal {
    /// Returns the name of the installed bundle if the spec is fulfilled.
    fn complete_bundle(&self) -> Option<String> {
        let bundle = self.bundle.as_ref().filter(|_| self.complete)?;
        Some(bundle.installed.name.as_str().to_owned())
    }
}

/// Returns the objects of an extension with their kinds, namespaces and names, without the fields that differ between equal
/// states.
fn managed<'a>(objects: &'a [Arc<Value>], extension: &'a str) -> impl Iterator<Item = (String, Value)> + 'a {
    let ours = objects.iter().filter(move |object| {
        object["metadata"]["labels"][olm_api::keys::OWNER_NAME_LABEL] == extension
            && object["kind"] != "ClusterObjectSet"
    });
    ours.map(|object| {
        let mut bare = Value::clone(object);
        for (pointer, names) in [
            ("", ["status"].as_slice()),
            (
                "/metadata",
                &[
                    "uid",
                    "resourceVersion",
                    "generation",
                    "creationTimestamp",
                    "managedFields",
                    "ownerReferences",
                ],
            ),
            (
                "/metadata/annotations",
                &[
                    olm_api::keys::REVISION_ANNOTATION,
                    "deployment.kubernetes.io/revision",
                ],
            ),
            // The API server assigns them, and they differ between Services.
            ("/spec", &["clusterIP", "clusterIPs"]),
        ] {
            if let Some(fields) = bare.pointer_mut(pointer).and_then(Value::as_object_mut) {
                fields.retain(|name, _| !names.contains(&name.as_str()));
            }
        }
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let key = format!(
            "{} {}/{}",
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name")
        );
        (key, bare)
    })
}
