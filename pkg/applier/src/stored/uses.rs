//! Evidence that clients use a version: objects that a field manager wrote through it.

use std::time::Duration;

use kube::Client;
use olm_bundle::crd_safety::{Unserved, Uses, Writer};
use serde::Deserialize;

use super::list::{Form, Lister, Pages, Step, SurveyError};

/// Limits of the search for uses.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Objects a page.
    pub page: u32,
    /// Bytes of a page's JSON; what does not fit is asked for in smaller pages.
    pub bytes: usize,
    /// Objects after which it stops.
    pub objects: u64,
    /// Limit of time.
    pub time: Duration,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            page: 500,
            bytes: 8 * 1024 * 1024,
            objects: 100_000,
            time: Duration::from_mins(1),
        }
    }
}

/// Searches the objects of a kind for such that were written through a version that is no longer to be served. Reads
/// metadata only, and stops when every such version is shown to be used, or at the end of its reach.
///
/// # Errors
/// The objects could not be listed.
pub async fn uses(client: &Client, unserved: &Unserved, reach: &Reach) -> Result<Uses, SurveyError> {
    let Unserved {
        group, plural, read, ..
    } = unserved;
    let lister = Lister::new(client, group, plural, read, Form::Metadata);
    let mut pages = Pages::new(&lister, reach.page, reach.bytes, reach.time);
    let mut found = Uses::default();
    loop {
        let body = match pages.next(found.objects).await {
            Ok(Step::Page(body)) => body,
            Ok(Step::Restart) => {
                found = Uses::default();
                continue;
            }
            Ok(Step::End) => return Ok(found),
            Err(SurveyError::TooLong { .. }) => {
                found.partial = true;
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        let page: Page = serde_json::from_slice(&body).map_err(|source| SurveyError::Unreadable {
            what: lister.what.clone(),
            source,
        })?;
        for item in page.items {
            found.objects += 1;
            item.metadata.add_to(&mut found, unserved);
        }
        let more = pages.follow(page.metadata.next);
        if unserved.all_used(&found) {
            return Ok(found);
        }
        if found.objects >= reach.objects {
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

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    next: Option<String>,
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
    fn add_to(&self, found: &mut Uses, unserved: &Unserved) {
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
