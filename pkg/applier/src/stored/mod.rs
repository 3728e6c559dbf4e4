//! Surveys of the stored objects of a kind, one page in memory at a time: [`survey`] holds them against a schema, [`uses`]
//! finds the versions that they were written through.

mod list;
mod uses;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use olm_bundle::crd_schema::{Fault, Target};
use olm_text::object::ObjectId;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use list::{Form, Lister, Pages, Step};

pub use list::SurveyError;
pub use uses::{Reach, uses};

/// Most reasons for which objects could not be judged that are kept.
const UNKNOWN: usize = 64;

/// Limits of a survey.
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
    /// Limit of time.
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

/// Result of a survey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Objects looked at.
    pub objects: u64,
    /// Number of objects that would break.
    pub broken: u64,
    /// The survey stopped at [`Limits::broken`], so that there may be more.
    pub stopped: bool,
    /// The first that would break.
    pub named: Vec<Broken>,
    /// Checks that could not be decided, each with its reason.
    pub unknown: BTreeSet<String>,
}

/// An object that would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its namespace; empty when it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Faults that the new schema would find in the object.
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
    let lister = Lister::new(client, group, plural, &target.read, Form::Whole);
    let mut pages = Pages::new(&lister, limits.page, limits.bytes, limits.time);
    let what = || lister.what.clone();
    let mut survey = Survey::default();
    loop {
        let body = match pages.next(survey.objects).await? {
            Step::Page(body) => body,
            Step::Restart => {
                survey = Survey::default();
                continue;
            }
            Step::End => return Ok(survey),
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
        let more = pages.follow(next);
        if survey.broken >= limits.broken {
            survey.stopped = more;
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
        let id = ObjectId::of(&object);
        let (namespace, name) = (id.namespace.to_owned(), id.name.to_owned());
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
    Ok((out, page.metadata.next))
}
