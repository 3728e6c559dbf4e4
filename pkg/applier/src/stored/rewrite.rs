//! Rewrite of all stored objects of a kind, so that the API server stores them in the present storage version.
//!
//! An update without a change is enough: the API server writes an object that is stored in another version, and skips one
//! whose stored form stays the same. A rewrite that was interrupted can therefore start again at no cost but the reads.

use std::time::Duration;

use kube::Client;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind, Request, Resource as _};
use olm_api::names::Segment;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Page;
use super::list::{Lister, NextPage, ObjectForm, Pages, SurveyError};

/// Timeout of one write or read.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of attempts for an object that others change at the same time.
const MAX_ATTEMPTS: usize = 5;

/// Limits of a rewrite.
#[derive(Clone, Debug)]
pub struct RewriteLimits {
    /// Objects per page.
    pub page: u32,
    /// Maximum size of a page's JSON in bytes; larger pages are requested in parts.
    pub bytes: usize,
    /// Maximum number of failures that are named.
    pub named: usize,
    /// Number of failures after which the rewrite stops.
    pub failures: u64,
    /// Limit of time.
    pub time: Duration,
}

impl Default for RewriteLimits {
    fn default() -> Self {
        Self {
            page: 100,
            bytes: 8 * 1024 * 1024,
            named: 10,
            failures: 100,
            time: Duration::from_hours(1),
        }
    }
}

/// Result of a rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Number of objects that were read.
    pub objects: u64,
    /// Number of objects that the API server refused to write.
    pub failed: u64,
    /// The first refused objects, `namespace/name`, each with the reason.
    pub named: Vec<(String, String)>,
    /// The rewrite stopped at [`RewriteLimits::failures`].
    pub stopped: bool,
}

/// Writes all objects of `plural` in `group` back, read in the served version `version`. Calls `progress` with the number
/// of objects after each page.
///
/// # Errors
/// The list is incomplete. Refused writes are part of the result.
pub async fn rewrite(
    client: &Client,
    group: &str,
    plural: &str,
    version: &str,
    limits: &RewriteLimits,
    mut progress: impl FnMut(u64),
) -> Result<Rewrite, SurveyError> {
    let lister = Lister::new(client, group, plural, version, ObjectForm::Full);
    let mut pages = Pages::new(&lister, limits.page, limits.bytes, limits.time);
    let kind = GroupVersionKind::gvk(group, version, "");
    let writer = Writer {
        client,
        resource: ApiResource::from_gvk_with_plural(&kind, plural),
    };
    let mut done = Rewrite::default();
    loop {
        let body = match pages.next(done.objects).await? {
            NextPage::Page(body) => body,
            NextPage::Restart => {
                done = Rewrite::default();
                continue;
            }
            NextPage::End => return Ok(done),
        };
        let page: Page<'_> = serde_json::from_slice(&body).map_err(|source| SurveyError::Unreadable {
            resource: lister.resource.clone(),
            source,
        })?;
        for item in page.items {
            done.objects += 1;
            let Err(failed) = writer.write(item).await else {
                continue;
            };
            done.failed += 1;
            if done.named.len() < limits.named {
                done.named.push(failed);
            }
            if done.failed >= limits.failures {
                done.stopped = true;
                return Ok(done);
            }
        }
        progress(done.objects);
        pages.advance(page.metadata.next);
    }
}

/// Name of an object.
#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    metadata: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    namespace: String,
    name: String,
}

struct Writer<'a> {
    client: &'a Client,
    resource: ApiResource,
}

impl Writer<'_> {
    /// Writes an object back as it was read. A conflict means that the object changed; it is read again, since only a
    /// write after the change of the storage version counts.
    async fn write(&self, item: &RawValue) -> Result<(), (String, String)> {
        let Named { metadata } = serde_json::from_str(item.get()).unwrap_or_default();
        let title = if metadata.namespace.is_empty() {
            metadata.name.clone()
        } else {
            format!("{}/{}", metadata.namespace, metadata.name)
        };
        let failed = |why: String| Err((title.clone(), why));
        let Ok(name) = Segment::new(&metadata.name) else {
            return failed("its name cannot be part of a request".to_owned());
        };
        let namespace = Some(metadata.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let requests = Request::new(DynamicObject::url_path(&self.resource, namespace));
        let mut body = item.get().as_bytes().to_vec();
        for _ in 0..MAX_ATTEMPTS {
            let put = match requests.replace(&name, &PostParams::default(), body) {
                Ok(put) => put,
                Err(error) => return failed(error.to_string()),
            };
            match self.call(put).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return failed(reason(&error)),
            }
            let get = match requests.get(&name, &kube::api::GetParams::default()) {
                Ok(get) => get,
                Err(error) => return failed(error.to_string()),
            };
            match self.call(get).await {
                Ok(present) => body = present.into_bytes(),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(error) => return failed(reason(&error)),
            }
        }
        failed("it changes faster than it can be written".to_owned())
    }

    async fn call(&self, request: http::Request<Vec<u8>>) -> Result<String, kube::Error> {
        match tokio::time::timeout(CALL_TIMEOUT, self.client.request_text(request)).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
        }
    }
}

fn reason(error: &kube::Error) -> String {
    crate::engine::chain(error)
}
