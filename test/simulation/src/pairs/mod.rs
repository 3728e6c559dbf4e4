//! Pairs of specs: the state after A → B is the state of B alone, and A → B → A leads back.
//!
//! [`simulated`] walks in virtual time on the simulated API server, [`real`] on a real one, with the same specs and the same check.

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
    /// Makes `spec` the only extension, from what the cluster is, and returns what it becomes.
    fn only(&mut self, spec: &Value) -> anyhow::Result<(ClusterExtension, Goal)> {
        let extension: ClusterExtension =
            serde_json::from_value(spec.clone()).context("the spec cannot be read")?;
        let before = self
            .extensions
            .pop()
            .and_then(|(_, goals)| goals.into_iter().next());
        let mut goal = self.goal(&extension, before.and_then(|goal| goal.bundle));
        // What cannot be resolved changes nothing: the objects stay those of an earlier spec.
        goal.stuck |= !goal.complete;
        self.extensions.push((extension.clone(), vec![goal.clone()]));
        Ok((extension, goal))
    }
}

impl Goal {
    /// Returns the bundle if the spec is fulfilled.
    fn complete_bundle(&self) -> Option<String> {
        let bundle = self.bundle.as_ref().filter(|_| self.complete)?;
        Some(bundle.installed.name.as_str().to_owned())
    }
}

/// Returns the objects of an extension without what differs between equal states, by kind, namespace and name.
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
            // Given by the API server, another one for each Service.
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
