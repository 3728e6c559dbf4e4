//! A list of stored objects, page by page.
//!
//! Pages come in the version the API server is asked for, as raw JSON. A page larger than a limit is asked for again in
//! smaller parts. When the list grows too old in between (410), it goes on where the API server says, or from the beginning.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind, Request, Resource as _, Status};
use thiserror::Error;
use tokio::time::{Instant, timeout};

/// No single page may take longer.
const PAGE_TIME: Duration = Duration::from_secs(30);
/// Most times that a list is begun anew.
const RESTARTS: u32 = 3;
/// Most bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;
/// Codes of answers that another attempt may improve.
const OVERLOADED: [u16; 4] = [429, 502, 503, 504];

/// A survey that came to no end.
#[derive(Debug, Error)]
pub enum SurveyError {
    /// The API server refused, or could not be reached.
    #[error("listing the stored {what}")]
    List {
        /// Objects: `PLURAL.GROUP/VERSION`.
        what: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// A page did not come in time.
    #[error(
        "listing the stored {what}: the API server gave no answer within {} seconds",
        PAGE_TIME.as_secs()
    )]
    Slow {
        /// Objects that were listed.
        what: String,
    },
    /// The answer is no list of objects.
    #[error("listing the stored {what}: the answer cannot be read")]
    Unreadable {
        /// Objects that were listed.
        what: String,
        /// Fault of the answer.
        #[source]
        source: serde_json::Error,
    },
    /// A single object is larger than a page may be.
    #[error("listing the stored {what}: an object is larger than {limit} bytes")]
    TooLarge {
        /// Objects that were listed.
        what: String,
        /// Limit.
        limit: usize,
    },
    /// The list kept growing too old.
    #[error("listing the stored {what}: they change faster than they can be read")]
    Restless {
        /// Objects that were listed.
        what: String,
    },
    /// It took too long.
    #[error(
        "looking at the stored {what} took more than {} seconds; {objects} were looked at",
        limit.as_secs()
    )]
    TooLong {
        /// Objects that were listed.
        what: String,
        /// Number of objects that were looked at.
        objects: u64,
        /// Limit of time.
        limit: Duration,
    },
    /// The process is stopping.
    #[error("looking at the stored {what} was interrupted")]
    Interrupted {
        /// Objects that were listed.
        what: String,
    },
}

impl SurveyError {
    /// True if the API server said no for good, or there is more to read than a survey may: another attempt finds the
    /// same. Not for outages and overload.
    pub fn lasts(&self) -> bool {
        match self {
            Self::List { source, .. } => {
                matches!(source.as_ref(), kube::Error::Api(status) if !OVERLOADED.contains(&status.code))
            }
            Self::TooLarge { .. }
            | Self::TooLong { .. }
            | Self::Restless { .. }
            | Self::Unreadable { .. } => true,
            Self::Slow { .. } | Self::Interrupted { .. } => false,
        }
    }
}

/// The next step of going through a list.
pub(super) enum Step {
    /// The JSON of a page; [`Pages::follow`] takes its `continue` token.
    Page(Vec<u8>),
    /// The list begins anew: what was gathered so far counts no more.
    Restart,
    /// There are no more pages.
    End,
}

/// The place in a list.
pub(super) struct Pages<'a> {
    lister: &'a Lister<'a>,
    page: u32,
    bytes: usize,
    time: Duration,
    started: Instant,
    token: Option<String>,
    restarts: u32,
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
            ended: false,
        }
    }

    /// Asks for the next page. `objects` is how many were looked at before.
    pub(super) async fn next(&mut self, objects: u64) -> Result<Step, SurveyError> {
        let what = || self.lister.what.clone();
        while !self.ended {
            if self.started.elapsed() > self.time {
                return Err(SurveyError::TooLong {
                    what: what(),
                    objects,
                    limit: self.time,
                });
            }
            match self
                .lister
                .page(self.token.as_deref(), self.page, self.bytes)
                .await?
            {
                Answer::Page(body) => return Ok(Step::Page(body)),
                Answer::TooLarge if self.page == 1 => {
                    return Err(SurveyError::TooLarge {
                        what: what(),
                        limit: self.bytes,
                    });
                }
                Answer::TooLarge => self.page = (self.page / 4).max(1),
                Answer::Expired(next) => {
                    self.restarts += 1;
                    if self.restarts > RESTARTS {
                        return Err(SurveyError::Restless { what: what() });
                    }
                    self.token = next;
                    if self.token.is_none() {
                        return Ok(Step::Restart);
                    }
                }
            }
        }
        Ok(Step::End)
    }

    /// Goes on after a page with its `continue` token; false when it was the last page.
    pub(super) fn follow(&mut self, next: Option<String>) -> bool {
        self.token = next.filter(|next| !next.is_empty());
        self.ended = self.token.is_none();
        !self.ended
    }
}

enum Answer {
    Page(Vec<u8>),
    TooLarge,
    /// The token is too old; perhaps there is one to go on with.
    Expired(Option<String>),
}

/// Extent of the objects that a list returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The whole object.
    Whole,
    /// Metadata alone.
    Metadata,
}

/// A list of all objects of a kind in one version.
pub(super) struct Lister<'a> {
    client: &'a Client,
    path: String,
    form: Form,
    /// The listed objects, as errors name them: `PLURAL.GROUP/VERSION`.
    pub(super) what: String,
}

impl<'a> Lister<'a> {
    pub(super) fn new(client: &'a Client, group: &str, plural: &str, version: &str, form: Form) -> Self {
        let kind = GroupVersionKind::gvk(group, version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Self {
            client,
            path: DynamicObject::url_path(&resource, None),
            form,
            what: format!("{plural}.{group}/{version}"),
        }
    }

    /// One page, as far as it fits into `bytes`.
    async fn page(&self, token: Option<&str>, limit: u32, bytes: usize) -> Result<Answer, SurveyError> {
        match timeout(PAGE_TIME, self.ask(token, limit, bytes)).await {
            Ok(answer) => answer.map_err(|source| SurveyError::List {
                what: self.what.clone(),
                source: Box::new(source),
            }),
            Err(_) => Err(SurveyError::Slow {
                what: self.what.clone(),
            }),
        }
    }

    async fn ask(&self, token: Option<&str>, limit: u32, bytes: usize) -> Result<Answer, kube::Error> {
        let params = ListParams {
            limit: Some(limit),
            continue_token: token.map(ToOwned::to_owned),
            ..ListParams::default()
        };
        let request = Request::new(&self.path);
        let request = match self.form {
            Form::Whole => request.list(&params),
            Form::Metadata => request.list_metadata(&params),
        };
        let request = request.map_err(kube::Error::BuildRequest)?;
        let response = self.client.send(request.map(Body::from)).await?;
        let code = response.status();
        let body = response.into_body();
        if code.is_success() {
            return Ok(read(body, bytes).await?.map_or(Answer::TooLarge, Answer::Page));
        }
        let text = read(body, ERROR_BYTES).await?.unwrap_or_default();
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

/// The whole body; none when it is longer than `limit`.
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
