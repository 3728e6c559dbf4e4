//! Desired content of the catalogs according to the API. Pure.

use std::collections::BTreeMap;

use kube::{ResourceExt, core::DeserializeGuard, runtime::watcher};
use olm_api::{
    AvailabilityMode, CatalogPollResult, ClusterCatalog,
    condition::{find_true, reasons, types},
};

use super::gather::template;
use crate::storage::ValidCatalogName;

pub(super) type Guarded = DeserializeGuard<ClusterCatalog>;

/// Desired content of one catalog according to the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogState {
    /// Image in the status, by digest.
    pub resolved: Option<String>,
    /// Reference from which the leader resolved that image: that of the spec, or what the image template gave. `None` if the status
    /// does not prove it.
    pub requested: Option<String>,
    /// The catalog is being deleted or has `availabilityMode: Unavailable`.
    pub withdrawn: bool,
    /// The present object does not decode. The other fields are those of the last object that did, and catalogd cannot write the status.
    pub undecodable: bool,
}

impl CatalogState {
    fn of(catalog: &ClusterCatalog) -> Self {
        let status = catalog.status.as_ref();
        Self {
            resolved: status.and_then(|status| Some(status.resolved_source.as_ref()?.image.ref_.clone())),
            requested: resolved_from(catalog).map(str::to_owned),
            withdrawn: catalog.metadata.deletion_timestamp.is_some()
                || catalog.spec.availability_mode == Some(AvailabilityMode::Unavailable),
            undecodable: false,
        }
    }
}

/// Returns the reference from which the image in the status was resolved; `None` if the status does not prove it. After a change of
/// the spec or a failure, the status still names the former image.
fn resolved_from(catalog: &ClusterCatalog) -> Option<&str> {
    let poll = catalog.status.as_ref().and_then(|status| status.poll.as_ref());
    if template(catalog).is_some() {
        // Only the leader reads the cluster's version.
        return poll
            .filter(|poll| poll.result != CatalogPollResult::Failed)
            .map(|poll| poll.image.as_str());
    }
    let reference = &catalog.spec.source.image.as_ref()?.ref_;
    let progressing = find_true(catalog.conditions(), types::Catalog::Progressing)?;
    let succeeded = progressing.reason == reasons::Catalog::Succeeded.as_ref()
        && progressing.observed_generation == catalog.metadata.generation;
    // A template that was removed leaves its image: annotations do not change the generation.
    let asked_for = poll.is_none_or(|poll| poll.image == *reference);
    (succeeded && asked_for).then_some(reference.as_str())
}

/// Catalogs that a watch has listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    states: BTreeMap<ValidCatalogName, CatalogState>,
    /// States before the list that is in progress.
    former: BTreeMap<ValidCatalogName, CatalogState>,
}

impl Listed {
    /// Applies an event of the watch. Returns the states unless a list is in progress.
    pub(super) fn apply(
        &mut self,
        event: &watcher::Event<Guarded>,
    ) -> Option<&BTreeMap<ValidCatalogName, CatalogState>> {
        match event {
            watcher::Event::Init => {
                // A list that failed halfway has taken some of the former states.
                let listed = std::mem::take(&mut self.states);
                self.former.extend(listed);
                return None;
            }
            watcher::Event::InitApply(catalog) => {
                self.insert(catalog);
                return None;
            }
            watcher::Event::Apply(catalog) => self.insert(catalog),
            watcher::Event::Delete(catalog) => {
                if let Ok(name) = ValidCatalogName::new(catalog.name_any()) {
                    self.states.remove(&name);
                }
            }
            watcher::Event::InitDone => self.former.clear(),
        }
        Some(&self.states)
    }

    /// Inserts the state of a catalog. A catalog that cannot be decoded keeps its former state: it exists, so its content must stay.
    /// The controller reports it.
    fn insert(&mut self, catalog: &Guarded) {
        let Ok(name) = ValidCatalogName::new(catalog.name_any()) else {
            return;
        };
        let state = if let Ok(catalog) = &catalog.0 {
            CatalogState::of(catalog)
        } else {
            let former = self.states.get(&name).or_else(|| self.former.get(&name));
            CatalogState {
                undecodable: true,
                ..former.cloned().unwrap_or_default()
            }
        };
        self.states.insert(name, state);
    }
}

#[cfg(test)]
mod tests {
    use olm_api::keys;
    use serde_json::{Value, json};

    use super::*;

    const V1: &str = "registry.example/c:v1";
    const V2: &str = "registry.example/c:v2";
    const DIGEST: &str = "registry.example/c@sha256:aa";

    /// Returns a catalog of generation 2 that serves [`DIGEST`]. `change` has the status's `reason`, `observed` generation and `poll`,
    /// and a `template`.
    fn catalog(reference: &str, change: &Value) -> Guarded {
        let mut catalog = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "c", "generation": 2},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
            "status": {
                "resolvedSource": {"type": "Image", "image": {"ref": DIGEST}},
                "conditions": [{
                    "type": "Progressing", "status": "True", "message": "",
                    "reason": change.get("reason").unwrap_or(&json!("Succeeded")),
                    "observedGeneration": change.get("observed").unwrap_or(&json!(2)),
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            },
        });
        if let Some([image, result]) = change.get("poll").and_then(Value::as_array).map(Vec::as_slice) {
            catalog["status"]["poll"] =
                json!({"image": image, "result": result, "lastTime": "2026-01-01T00:00:00Z"});
        }
        if let Some(template) = change.get("template") {
            catalog["metadata"]["annotations"] = json!({ keys::CATALOG_IMAGE_TEMPLATE_ANNOTATION: template });
        }
        serde_json::from_value(catalog).unwrap()
    }

    fn undecodable() -> Guarded {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "c", "generation": 3}, "spec": {"source": 1},
        }))
        .unwrap()
    }

    #[test]
    fn the_reference_is_known_only_if_the_status_proves_it() {
        let template = "registry.example/c:v{kube_minor_version}";
        let cases = [
            (json!({}), Some(V2)),
            // The spec changed and the leader has not seen it, or cannot pull its image: the status still names the former image.
            (json!({"observed": 1}), None),
            (json!({"reason": "Retrying"}), None),
            (json!({"reason": "Retrying", "poll": [V2, "Failed"]}), None),
            (json!({"poll": [V2, "Unchanged"]}), Some(V2)),
            // An image template was removed.
            (json!({"poll": [V1, "Stored"]}), None),
            (json!({"template": template}), None),
            (json!({"template": template, "poll": [V1, "Stored"]}), Some(V1)),
            (json!({"template": template, "poll": [V1, "Failed"]}), None),
            // A new template whose image cannot be pulled, or a spec that the template overrides.
            (
                json!({"template": template, "poll": [V1, "Stored"], "observed": 1}),
                Some(V1),
            ),
        ];
        for (change, requested) in cases {
            let state = CatalogState::of(&catalog(V2, &change).0.unwrap());
            assert_eq!(state.requested.as_deref(), requested, "{change}");
            assert_eq!(state.resolved.as_deref(), Some(DIGEST));
        }
    }

    #[test]
    fn a_catalog_that_no_longer_decodes_stays_over_a_new_list() {
        use watcher::Event;
        let name = ValidCatalogName::new("c").unwrap();
        let mut listed = Listed::default();
        assert_eq!(listed.apply(&Event::Init), None);
        assert_eq!(listed.apply(&Event::InitApply(catalog(V1, &json!({})))), None);
        let states = listed.apply(&Event::InitDone).cloned().unwrap();
        assert_eq!(
            states.get(&name).and_then(|state| state.resolved.as_deref()),
            Some(DIGEST)
        );
        let mut kept = states;
        for state in kept.values_mut() {
            state.undecodable = true;
        }
        assert_eq!(listed.apply(&Event::Apply(undecodable())), Some(&kept));
        // The first list fails halfway.
        for _ in 0..2 {
            assert_eq!(listed.apply(&Event::Init), None);
            assert_eq!(listed.apply(&Event::InitApply(undecodable())), None);
        }
        assert_eq!(listed.apply(&Event::InitDone), Some(&kept));
        let none = BTreeMap::new();
        assert_eq!(listed.apply(&Event::Delete(undecodable())), Some(&none));
        // A catalog that never decoded exists, with nothing to pull.
        let unknown = CatalogState {
            undecodable: true,
            ..CatalogState::default()
        };
        let unknown = BTreeMap::from([(name, unknown)]);
        assert_eq!(listed.apply(&Event::Apply(undecodable())), Some(&unknown));
        // Catalogs that a new list lacks are gone.
        listed.apply(&Event::Init);
        assert_eq!(listed.apply(&Event::InitDone), Some(&none));
    }

    #[test]
    fn a_catalog_without_an_image_exists() {
        let object = serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "c"}, "spec": {"source": {"type": "Image"}},
        }))
        .unwrap();
        let mut listed = Listed::default();
        let states = listed.apply(&watcher::Event::Apply(object)).unwrap();
        assert_eq!(states.values().collect::<Vec<_>>(), [&CatalogState::default()]);
    }
}
