//! Waits until clients can discover what an `APIService` registers.
//!
//! The API server proxies to a registered server before it lists the server's kinds: it refreshes its aggregated discovery
//! document in the background. kubectl and controllers take their kinds from that document, so a revision is complete only when
//! the document has them.

use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use olm_text::object::text;
use serde::Deserialize;

use super::call::timed;
use super::{Engine, EngineError, PreparedObject};

/// Delay before the document is read again: the API server refreshes it within a second, and announces no change.
pub(super) const REFRESH: Duration = Duration::from_secs(1);

/// Media types of the document, the newest first. API servers before Kubernetes 1.26 answer with the list of groups.
const MEDIA_TYPES: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                           application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// The parts of `APIGroupDiscoveryList` and of `APIGroupList` that are needed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    items: Vec<DiscoveredGroup>,
    groups: Vec<ListedGroup>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiscoveredGroup {
    metadata: Named,
    versions: Vec<DiscoveredVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiscoveredVersion {
    version: String,
    /// `Stale` if the server could not be asked.
    freshness: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedGroup {
    name: String,
    versions: Vec<ListedVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedVersion {
    version: String,
}

impl Document {
    /// Returns true if the document has the kinds of a group and version, fresh from their server.
    fn has(&self, group: &str, version: &str) -> bool {
        let discovered = self.items.iter().filter(|item| item.metadata.name == group);
        let listed = self.groups.iter().filter(|listed| listed.name == group);
        discovered
            .flat_map(|item| &item.versions)
            .any(|found| found.version == version && found.freshness != "Stale")
            || listed
                .flat_map(|group| &group.versions)
                .any(|found| found.version == version)
    }
}

impl Engine {
    /// Returns what is missing until clients can discover the kinds of an `APIService`; `None` for every other object, and
    /// once they could.
    pub(super) async fn undiscovered(
        &self,
        uid: &str,
        item: &PreparedObject,
    ) -> Result<Option<String>, EngineError> {
        let id = &item.id;
        if (id.group.as_str(), id.kind.as_str()) != ("apiregistration.k8s.io", "APIService")
            || self.is_discovered(uid, &id.name)
        {
            return Ok(None);
        }
        let (group, version) = (
            text(&item.desired, "/spec/group"),
            text(&item.desired, "/spec/version"),
        );
        // The request has no foreign part, so it can always be built.
        let request = Request::get("/apis").header(ACCEPT, MEDIA_TYPES).body(Vec::new());
        let Ok(request) = request else { return Ok(None) };
        let document = timed(self.client.request::<Document>(request)).await;
        let document = document
            .map_err(|source| EngineError::object(id, "reading the API server's discovery", source))?;
        if document.has(group, version) {
            self.record_discovery(uid, &id.name);
            return Ok(None);
        }
        Ok(Some(format!(
            "the API server's discovery does not list {group}/{version} yet"
        )))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Document;

    #[test]
    fn both_forms_of_the_document_are_read() {
        let read = |document| serde_json::from_value::<Document>(document).unwrap();
        let version = |freshness: &str| json!({"version": "v1", "freshness": freshness, "resources": []});
        let aggregated = |freshness| {
            read(json!({"kind": "APIGroupDiscoveryList", "items": [
                {"metadata": {"name": "apps"}, "versions": [{"version": "v1"}]},
                {"metadata": {"name": "example.com"}, "versions": [version(freshness)]},
            ]}))
        };
        assert!(aggregated("Current").has("example.com", "v1"));
        assert!(!aggregated("Stale").has("example.com", "v1"));
        assert!(!aggregated("Current").has("example.com", "v2"));
        let listed = read(json!({"kind": "APIGroupList", "groups": [
            {"name": "example.com", "versions": [{"groupVersion": "example.com/v1", "version": "v1"}]}]}));
        assert!(listed.has("example.com", "v1") && !listed.has("example.org", "v1"));
        assert!(!read(json!({})).has("example.com", "v1"));
    }
}
