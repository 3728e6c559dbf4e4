//! Surveys of the stored objects of a kind, with one page in memory at a time: [`survey`] validates them against a
//! schema, [`uses`] finds the versions through which they were written, [`rewrite()`] writes them back.

mod list;
mod rewrite;
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

use list::{Lister, NextPage, ObjectForm, Pages};

pub use list::SurveyError;
pub use rewrite::{Rewrite, RewriteLimits, rewrite};
pub use uses::{SearchLimits, uses};

/// Maximum number of distinct reasons for undecided checks.
const MAX_UNKNOWN: usize = 64;

/// Limits of a survey.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Objects per page.
    pub page: u32,
    /// Maximum size of a page's JSON in bytes; larger pages are requested in parts.
    pub bytes: usize,
    /// Maximum number of invalid objects that are named.
    pub named: usize,
    /// Number of invalid objects after which the survey stops.
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
    /// Number of objects read.
    pub objects: u64,
    /// Number of objects that the new schema would reject.
    pub broken: u64,
    /// The survey stopped at [`Limits::broken`]; there may be more invalid objects.
    pub stopped: bool,
    /// The first invalid objects.
    pub named: Vec<InvalidObject>,
    /// Reasons of undecided checks.
    pub unknown: BTreeSet<String>,
}

/// An object that the new schema would reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidObject {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Faults of the object under the new schema.
    pub faults: Vec<Fault>,
}

impl std::fmt::Display for InvalidObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// Validates all objects of `plural` in `group`, read in version [`Target::read`], against the target's schema.
///
/// # Errors
/// The list is incomplete.
pub async fn survey(
    client: &Client,
    group: &str,
    plural: &str,
    target: Arc<Target>,
    limits: &Limits,
) -> Result<Survey, SurveyError> {
    let lister = Lister::new(client, group, plural, &target.read, ObjectForm::Full);
    let mut pages = Pages::new(&lister, limits.page, limits.bytes, limits.time);
    let resource = || lister.resource.clone();
    let mut survey = Survey::default();
    loop {
        let body = match pages.next(survey.objects).await? {
            NextPage::Page(body) => body,
            NextPage::Restart => {
                survey = Survey::default();
                continue;
            }
            NextPage::End => return Ok(survey),
        };
        let (target, named) = (
            Arc::clone(&target),
            limits.named.saturating_sub(survey.named.len()),
        );
        let checked = tokio::task::spawn_blocking(move || check_page(&body, &target, named)).await;
        let (part, next) = checked
            .map_err(|_| SurveyError::Interrupted { resource: resource() })?
            .map_err(|source| SurveyError::Unreadable {
                resource: resource(),
                source,
            })?;
        survey.add(part);
        let more = pages.advance(next);
        if survey.broken >= limits.broken {
            survey.stopped = more;
            return Ok(survey);
        }
    }
}

impl Survey {
    /// Returns the reasons of undecided checks of objects, those of the whole schema of `target` included.
    pub fn undecided<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a String> {
        let any = self.objects > 0;
        let reasons = self.unknown.iter().chain(target.unknown());
        reasons.filter(move |_| any)
    }

    fn add(&mut self, part: Self) {
        self.objects += part.objects;
        self.broken += part.broken;
        self.named.extend(part.named);
        for unknown in part.unknown {
            if self.unknown.len() < MAX_UNKNOWN {
                self.unknown.insert(unknown);
            }
        }
    }
}

/// JSON of a list; the objects stay as they were sent, and are parsed one by one.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default, borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// Validates a page; returns its results and the token of the next page.
fn check_page(
    body: &[u8],
    target: &Target,
    named: usize,
) -> Result<(Survey, Option<String>), serde_json::Error> {
    let page: Page<'_> = serde_json::from_slice(body)?;
    let mut out = Survey::default();
    for item in page.items {
        out.objects += 1;
        // The nesting exceeds the parser's limit.
        let Ok(object) = serde_json::from_str::<Value>(item.get()) else {
            out.unknown.insert("an object cannot be read".to_owned());
            continue;
        };
        let id = ObjectId::of(&object);
        let (namespace, name) = (id.namespace.to_owned(), id.name.to_owned());
        let result = target.check(object);
        out.unknown.extend(result.unknown);
        if result.faults.is_empty() {
            continue;
        }
        out.broken += 1;
        if out.named.len() < named {
            out.named.push(InvalidObject {
                namespace,
                name,
                faults: result.faults,
            });
        }
    }
    Ok((out, page.metadata.next))
}
