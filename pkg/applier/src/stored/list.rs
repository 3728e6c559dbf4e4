//! Paged lists of stored objects.
//!
//! The API server returns pages as raw JSON, in the requested version. A page beyond the size limit is requested
//! again with fewer objects. If the list expires (410), the listing continues with the API server's token or
//! restarts.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind, Request, Resource as _, Status};
use serde_json::Value;
use thiserror::Error;
use tokio::time::{Instant, timeout};

use crate::refusal;

/// Timeout of one page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of restarts of a list.
const MAX_RESTARTS: u32 = 3;
/// Maximum number of successive answers that a token expired, each with a new token. A long list needs one after each compaction
/// of etcd, every five minutes; a page follows it.
const MAX_RENEWALS: u32 = 3;
/// Maximum number of bytes of an error's body.
const MAX_ERROR: usize = 64 * 1024;

/// Error of a survey.
#[derive(Debug, Error)]
pub enum SurveyError {
    /// The API server refused the list or is unreachable.
    #[error("listing the stored {resource}")]
    List {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// A page timed out.
    #[error(
        "listing the stored {resource}: the API server gave no answer within {} seconds",
        PAGE_TIMEOUT.as_secs()
    )]
    Timeout {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
    },
    /// The response is no list of objects.
    #[error("listing the stored {resource}: the answer cannot be read")]
    Unreadable {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
        /// Fault of the answer.
        #[source]
        source: serde_json::Error,
    },
    /// A single object is larger than the page limit.
    #[error("listing the stored {resource}: an object is larger than {limit} bytes")]
    TooLarge {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
        /// Limit in bytes.
        limit: usize,
    },
    /// The list expired too often.
    #[error("listing the stored {resource}: they change faster than the list can be read")]
    Expired {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
    },
    /// The survey exceeded its time limit.
    #[error(
        "reading the stored {resource} took more than {} seconds; {objects} were read",
        limit.as_secs()
    )]
    TimeLimit {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
        /// Number of objects that were read.
        objects: u64,
        /// Limit of time.
        limit: Duration,
    },
    /// The process is stopping.
    #[error("reading the stored {resource} was interrupted")]
    Interrupted {
        /// Listed objects as `PLURAL.GROUP/VERSION`.
        resource: String,
    },
}

impl SurveyError {
    /// Returns true if a retry would end the same way: the API server refused for good, the webhook that converts the objects of
    /// `crd`, as it is in the cluster, is broken, or the survey exceeds its limits. Returns false for outages and overload.
    pub fn is_permanent(&self, crd: &Value) -> bool {
        match self {
            Self::List { source, .. } => {
                matches!(source.as_ref(), kube::Error::Api(status) if refusal::lasts(status.code, crd))
            }
            Self::TooLarge { .. }
            | Self::TimeLimit { .. }
            | Self::Expired { .. }
            | Self::Unreadable { .. } => true,
            Self::Timeout { .. } | Self::Interrupted { .. } => false,
        }
    }
}

/// Result of a request for the next page.
pub(super) enum NextPage {
    /// JSON of a page; [`Pages::advance`] takes its `continue` token.
    Page(Vec<u8>),
    /// The list restarts: earlier results are void.
    Restart,
    /// The list has no more pages.
    End,
}

/// Iterator over the pages of a list.
pub(super) struct Pages<'a> {
    lister: &'a Lister<'a>,
    page: u32,
    bytes: usize,
    time: Duration,
    started: Instant,
    token: Option<String>,
    restarts: u32,
    /// New tokens since the last page.
    renewals: u32,
    ended: bool,
}

impl<'a> Pages<'a> {
    pub(super) fn new(lister: &'a Lister<'a>, page: u32, bytes: usize, time: Duration) -> Self {
        Self {
            lister,
            page: page.max(1),
            bytes,
            time,
            started: Instant::now(),
            token: None,
            restarts: 0,
            renewals: 0,
            ended: false,
        }
    }

    /// Requests the next page. `objects` is the number of objects read so far.
    pub(super) async fn next(&mut self, objects: u64) -> Result<NextPage, SurveyError> {
        let resource = || self.lister.resource.clone();
        while !self.ended {
            if self.started.elapsed() > self.time {
                return Err(SurveyError::TimeLimit {
                    resource: resource(),
                    objects,
                    limit: self.time,
                });
            }
            match self
                .lister
                .page(self.token.as_deref(), self.page, self.bytes)
                .await?
            {
                Answer::Page(body) => {
                    self.renewals = 0;
                    return Ok(NextPage::Page(body));
                }
                Answer::TooLarge if self.page == 1 => {
                    return Err(SurveyError::TooLarge {
                        resource: resource(),
                        limit: self.bytes,
                    });
                }
                Answer::TooLarge => self.page = (self.page / 4).max(1),
                Answer::Expired(next) => {
                    self.token = next;
                    let restart = self.token.is_none();
                    if restart {
                        self.restarts += 1;
                    } else {
                        self.renewals += 1;
                    }
                    if self.restarts > MAX_RESTARTS || self.renewals > MAX_RENEWALS {
                        return Err(SurveyError::Expired { resource: resource() });
                    }
                    if restart {
                        return Ok(NextPage::Restart);
                    }
                }
            }
        }
        Ok(NextPage::End)
    }

    /// Advances past a page with its `continue` token; returns false after the last page.
    pub(super) fn advance(&mut self, next: Option<String>) -> bool {
        self.token = next.filter(|next| !next.is_empty());
        self.ended = self.token.is_none();
        !self.ended
    }
}

enum Answer {
    Page(Vec<u8>),
    TooLarge,
    /// The token expired; holds a token for continuing, if any.
    Expired(Option<String>),
}

/// Form of listed objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectForm {
    /// The complete object.
    Full,
    /// Metadata only.
    Metadata,
}

/// Client for the list of all objects of a kind in one version.
pub(super) struct Lister<'a> {
    client: &'a Client,
    path: String,
    form: ObjectForm,
    /// Listed objects for errors: `PLURAL.GROUP/VERSION`.
    pub(super) resource: String,
}

impl<'a> Lister<'a> {
    pub(super) fn new(
        client: &'a Client,
        group: &str,
        plural: &str,
        version: &str,
        form: ObjectForm,
    ) -> Self {
        let kind = GroupVersionKind::gvk(group, version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Self {
            client,
            path: DynamicObject::url_path(&resource, None),
            form,
            resource: format!("{plural}.{group}/{version}"),
        }
    }

    /// Requests one page of at most `bytes`.
    async fn page(&self, token: Option<&str>, limit: u32, bytes: usize) -> Result<Answer, SurveyError> {
        match timeout(PAGE_TIMEOUT, self.request_page(token, limit, bytes)).await {
            Ok(answer) => answer.map_err(|source| SurveyError::List {
                resource: self.resource.clone(),
                source: Box::new(source),
            }),
            Err(_) => Err(SurveyError::Timeout {
                resource: self.resource.clone(),
            }),
        }
    }

    async fn request_page(
        &self,
        token: Option<&str>,
        limit: u32,
        bytes: usize,
    ) -> Result<Answer, kube::Error> {
        let params = ListParams {
            limit: Some(limit),
            continue_token: token.map(ToOwned::to_owned),
            ..ListParams::default()
        };
        let request = Request::new(&self.path);
        let request = match self.form {
            ObjectForm::Full => request.list(&params),
            ObjectForm::Metadata => request.list_metadata(&params),
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        let response = self.client.send(request.map(Body::from)).await?;
        let code = response.status();
        let body = response.into_body();
        if code.is_success() {
            return Ok(read(body, bytes).await?.map_or(Answer::TooLarge, Answer::Page));
        }
        let text = read(body, MAX_ERROR).await?.unwrap_or_default();
        let status = serde_json::from_slice::<Status>(&text).unwrap_or_else(|_| {
            let message = String::from_utf8_lossy(text.get(..text.len().min(200)).unwrap_or_default());
            Status::failure(&message, code.as_str()).with_code(code.as_u16())
        });
        if code.as_u16() == 410 {
            let next = status.metadata.and_then(|metadata| metadata.continue_);
            return Ok(Answer::Expired(next.filter(|next| !next.is_empty())));
        }
        Err(kube::Error::Api(status.boxed()))
    }
}

/// Reads a body; returns `None` if it is longer than `limit`.
async fn read(mut body: Body, limit: usize) -> Result<Option<Vec<u8>>, kube::Error> {
    let mut out = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if out.len() + data.len() > limit {
            return Ok(None);
        }
        out.extend_from_slice(&data);
    }
    Ok(Some(out))
}
