//! Holds all stored objects of a kind against a schema, one page in memory at a time.
//!
//! Objects are listed in pages, in the version the API server is asked for, as raw JSON; each is judged and forgotten. A page
//! larger than [`Limits::bytes`] is asked for again in smaller parts. When the list grows too old in between (410), it goes
//! on where the API server says, or from the beginning.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind, Request, Resource as _, Status};
use olm_bundle::crd_schema::{Fault, Target};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::time::{Instant, timeout};

/// No single page may take longer.
const PAGE_TIME: Duration = Duration::from_secs(30);
/// How often a list may be begun anew.
const RESTARTS: u32 = 3;
/// Most bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;
/// Most reasons for which objects could not be judged that are kept.
const UNKNOWN: usize = 64;

/// How far a survey goes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Objects a page.
    pub page: u32,
    /// Bytes of a page's JSON; what does not fit is asked for in smaller pages.
    pub bytes: usize,
    /// Objects that would break which are named.
    pub named: usize,
    /// Objects that would break after which it stops.
    pub broken: u64,
    /// How long it may take.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            page: 500,
            bytes: 8 * 1024 * 1024,
            named: 10,
            broken: 10_000,
            time: Duration::from_mins(5),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Objects looked at.
    pub objects: u64,
    /// How many of them would break.
    pub broken: u64,
    /// Whether it stopped at [`Limits::broken`], so that there may be more.
    pub stopped: bool,
    /// The first that would break.
    pub named: Vec<Broken>,
    /// What could not be decided, and why.
    pub unknown: BTreeSet<String>,
}

/// An object that would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its namespace; empty when it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What would be wrong with it.
    pub faults: Vec<Fault>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// A survey that came to no end.
#[derive(Debug, Error)]
pub enum SurveyError {
    /// The API server refused, or could not be reached.
    #[error("listing the stored {what}")]
    List {
        /// Which objects: `PLURAL.GROUP/VERSION`.
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
        /// Which objects.
        what: String,
    },
    /// The answer is no list of objects.
    #[error("listing the stored {what}: the answer cannot be read")]
    Unreadable {
        /// Which objects.
        what: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A single object is larger than a page may be.
    #[error("listing the stored {what}: an object is larger than {limit} bytes")]
    TooLarge {
        /// Which objects.
        what: String,
        /// What may be.
        limit: usize,
    },
    /// The list kept growing too old.
    #[error("listing the stored {what}: they change faster than they can be read")]
    Restless {
        /// Which objects.
        what: String,
    },
    /// It took too long.
    #[error(
        "looking at the stored {what} took more than {} seconds; {objects} were looked at",
        limit.as_secs()
    )]
    TooLong {
        /// Which objects.
        what: String,
        /// How many were looked at.
        objects: u64,
        /// How long it may take.
        limit: Duration,
    },
    /// The process is stopping.
    #[error("looking at the stored {what} was interrupted")]
    Interrupted {
        /// Which objects.
        what: String,
    },
}

/// Holds every object of `plural` in `group`, as it is read in [`Target::read`], against the target's schema.
///
/// # Errors
/// Not all objects could be looked at.
pub async fn survey(
    client: &Client,
    group: &str,
    plural: &str,
    target: Arc<Target>,
    limits: &Limits,
) -> Result<Survey, SurveyError> {
    let started = Instant::now();
    let lister = Lister::new(client, group, plural, &target.read);
    let what = || lister.what.clone();
    let mut survey = Survey::default();
    let mut token: Option<String> = None;
    let mut page = limits.page.max(1);
    let mut restarts = 0;
    loop {
        if started.elapsed() > limits.time {
            return Err(SurveyError::TooLong {
                what: what(),
                objects: survey.objects,
                limit: limits.time,
            });
        }
        let body = match lister.page(token.as_deref(), page, limits.bytes).await? {
            Answer::Page(body) => body,
            Answer::TooLarge if page == 1 => {
                return Err(SurveyError::TooLarge {
                    what: what(),
                    limit: limits.bytes,
                });
            }
            Answer::TooLarge => {
                page = (page / 4).max(1);
                continue;
            }
            Answer::Expired(next) => {
                restarts += 1;
                if restarts > RESTARTS {
                    return Err(SurveyError::Restless { what: what() });
                }
                if next.is_none() {
                    survey = Survey::default();
                }
                token = next;
                continue;
            }
        };
        let (target, named) = (
            Arc::clone(&target),
            limits.named.saturating_sub(survey.named.len()),
        );
        let judged = tokio::task::spawn_blocking(move || judge(&body, &target, named)).await;
        let (part, next) = judged
            .map_err(|_| SurveyError::Interrupted { what: what() })?
            .map_err(|source| SurveyError::Unreadable { what: what(), source })?;
        survey.add(part);
        if survey.broken >= limits.broken {
            survey.stopped = next.is_some();
            return Ok(survey);
        }
        token = next;
        if token.is_none() {
            return Ok(survey);
        }
    }
}

impl Survey {
    fn add(&mut self, part: Self) {
        self.objects += part.objects;
        self.broken += part.broken;
        self.named.extend(part.named);
        for unknown in part.unknown {
            if self.unknown.len() < UNKNOWN {
                self.unknown.insert(unknown);
            }
        }
    }
}

/// A list's JSON; the objects stay texts until it is their turn.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default, borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// Judges a page; returns what is in it, and where the next one begins.
fn judge(body: &[u8], target: &Target, named: usize) -> Result<(Survey, Option<String>), serde_json::Error> {
    let page: Page<'_> = serde_json::from_slice(body)?;
    let mut out = Survey::default();
    for item in page.items {
        out.objects += 1;
        // Nested more deeply than anything sensible.
        let Ok(object) = serde_json::from_str::<Value>(item.get()) else {
            out.unknown.insert("an object cannot be read".to_owned());
            continue;
        };
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let verdict = target.check(object);
        out.unknown.extend(verdict.unknown);
        if verdict.faults.is_empty() {
            continue;
        }
        out.broken += 1;
        if out.named.len() < named {
            out.named.push(Broken {
                namespace,
                name,
                faults: verdict.faults,
            });
        }
    }
    Ok((out, page.metadata.next.filter(|next| !next.is_empty())))
}

enum Answer {
    Page(Vec<u8>),
    TooLarge,
    /// The token is too old; perhaps there is one to go on with.
    Expired(Option<String>),
}

struct Lister<'a> {
    client: &'a Client,
    path: String,
    what: String,
}

impl<'a> Lister<'a> {
    fn new(client: &'a Client, group: &str, plural: &str, version: &str) -> Self {
        let kind = GroupVersionKind::gvk(group, version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Self {
            client,
            path: DynamicObject::url_path(&resource, None),
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
        let request = Request::new(&self.path)
            .list(&params)
            .map_err(kube::Error::BuildRequest)?;
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
