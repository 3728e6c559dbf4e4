//! Evidence that clients use a version: objects that a field manager wrote through it.

use std::time::Duration;

use kube::Client;
use olm_bundle::crd_safety::{UnservedVersions, VersionUses, Writer};
use serde::Deserialize;

use super::ListMeta;
use super::list::{Lister, NextPage, ObjectForm, Pages, SurveyError};

/// Limits of the search for uses.
#[derive(Clone, Debug)]
pub struct SearchLimits {
    /// Objects per page.
    pub page: u32,
    /// Maximum size of a page's JSON in bytes; larger pages are requested in parts.
    pub bytes: usize,
    /// Number of objects after which the search stops.
    pub objects: u64,
    /// Limit of time.
    pub time: Duration,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self {
            page: 500,
            bytes: 8 * 1024 * 1024,
            objects: 100_000,
            time: Duration::from_mins(1),
        }
    }
}

/// Searches the objects of a kind for field managers of versions that will not be served. Reads only metadata. Stops
/// when every such version has a use, or at a limit.
///
/// # Errors
/// The list failed.
pub async fn uses(
    client: &Client,
    unserved: &UnservedVersions,
    limits: &SearchLimits,
) -> Result<VersionUses, SurveyError> {
    let UnservedVersions {
        group, plural, read, ..
    } = unserved;
    let lister = Lister::new(client, group, plural, read, ObjectForm::Metadata);
    let mut pages = Pages::new(&lister, limits.page, limits.bytes, limits.time);
    let mut found = VersionUses::default();
    loop {
        let body = match pages.next(found.objects).await {
            Ok(NextPage::Page(body)) => body,
            Ok(NextPage::Restart) => {
                found = VersionUses::default();
                continue;
            }
            Ok(NextPage::End) => return Ok(found),
            Err(SurveyError::TimeLimit { .. }) => {
                found.partial = true;
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        let page: Page = serde_json::from_slice(&body).map_err(|source| SurveyError::Unreadable {
            resource: lister.resource.clone(),
            source,
        })?;
        for item in page.items {
            found.objects += 1;
            item.metadata.add_to(&mut found, unserved);
        }
        let more = pages.advance(page.metadata.next);
        if unserved.all_used(&found) {
            return Ok(found);
        }
        if found.objects >= limits.objects {
            found.partial = more;
            return Ok(found);
        }
    }
}

/// A `PartialObjectMetadataList`.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectMeta {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    managed_fields: Vec<ManagedFields>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFields {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    api_version: String,
}

impl ObjectMeta {
    fn add_to(&self, found: &mut VersionUses, unserved: &UnservedVersions) {
        for entry in &self.managed_fields {
            let Some(version) = entry
                .api_version
                .strip_prefix(unserved.group.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
            else {
                continue;
            };
            if found.writers.contains_key(version) || !unserved.versions().any(|other| other == version) {
                continue;
            }
            let object = if self.namespace.is_empty() {
                self.name.clone()
            } else {
                format!("{}/{}", self.namespace, self.name)
            };
            let writer = Writer {
                object,
                manager: entry.manager.clone(),
            };
            found.writers.insert(version.to_owned(), writer);
        }
    }
}
