//! What goes wrong while applying or taking down, and how it reads.

use std::error::Error;

use olm_api::names::InvalidName;
use olm_text::{causes, cut};

use super::call::CallError;
use super::{Id, shown};
use crate::account::Account;

/// Why a revision could not be applied or taken down. All of it may pass by itself or by a change on the cluster, so all is retried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A step on one object failed.
    #[error("reconciling object: {head}: {step}")]
    Object {
        /// Which object, and within which part.
        head: String,
        /// What was being done.
        step: &'static str,
        /// What the API server said.
        #[source]
        source: CallError,
    },
    /// The object's kind is not served.
    #[error("reconciling object: {head}")]
    Kind {
        /// Which object.
        head: String,
        /// What the API server said.
        #[source]
        source: CallError,
    },
    /// The object cannot be as it stands.
    #[error("reconciling object: {head}: {why}")]
    Invalid {
        /// Which object.
        head: String,
        /// What is wrong with it.
        why: String,
    },
    /// No API server can hold an object of that name.
    #[error("reconciling object: {head}")]
    Name {
        /// Which object.
        head: String,
        /// Reason.
        #[source]
        source: InvalidName,
    },
    /// The service account to act as is not there.
    #[error(
        "service account \"{}\" not found in namespace \"{}\": unable to authenticate with the Kubernetes cluster; create it again, or \
         {otherwise}", .account.name(), .account.namespace()
    )]
    NoAccount {
        /// The account.
        account: Account,
        /// Another next step.
        otherwise: &'static str,
    },
    /// Whether the service account exists cannot be told, or it cannot be acted as.
    #[error("reading {account}")]
    Account {
        /// The account.
        account: Account,
        /// What the API server said.
        #[source]
        source: CallError,
    },
    /// Several objects failed.
    #[error("{}", join(.0))]
    Many(Vec<EngineError>),
}

/// How many errors of one phase are told one by one.
const TOLD: usize = 20;
/// Longest of them, in bytes, so that none hides the others.
const LINE_LIMIT: usize = 1024;
/// Longest answer of the API server in a message, in bytes. Answers repeat what they refuse, which may be large.
const ANSWER_LIMIT: usize = 2048;

/// A line each; what several objects have in common is said once.
fn join(errors: &[EngineError]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for error in errors {
        let line = cut(&chain(error), LINE_LIMIT).into_owned();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(TOLD);
    lines.truncate(TOLD);
    if more > 0 {
        lines.push(format!("and {more} more errors"));
    }
    lines.join("\n")
}

impl EngineError {
    /// Whether trying again is pointless. Nothing here is: rights, namespaces and APIs come and go.
    #[must_use]
    pub fn terminal(&self) -> bool {
        false
    }

    /// Whether the object was changed by somebody between our reading and our writing it.
    pub(super) fn is_race(&self) -> bool {
        matches!(self, Self::Object { source, .. } if source.code() == 409 && source.field_conflicts().is_empty())
    }

    pub(super) fn object(id: &Id, step: &'static str, source: CallError) -> Self {
        Self::Object {
            head: format!("reconciling {}", named(id)),
            step,
            source,
        }
    }

    pub(super) fn validating(id: &Id, source: CallError) -> Self {
        Self::Kind {
            head: format!("validating: {}", named(id)),
            source,
        }
    }

    pub(super) fn kind(id: &Id, source: CallError) -> Self {
        Self::Kind {
            head: format!(
                "validating: {}: no matches for kind \"{}\" in version \"{}\"",
                named(id),
                shown(&id.kind),
                shown(&id.api_version())
            ),
            source,
        }
    }

    pub(super) fn name(id: &Id, source: InvalidName) -> Self {
        Self::Name {
            head: format!("validating: {}", named(id)),
            source,
        }
    }

    pub(super) fn scope(id: &Id, why: &str) -> Self {
        Self::Invalid {
            head: format!("validating: {}", named(id)),
            why: format!("the object {why}"),
        }
    }

    pub(super) fn invalid(id: &Id, why: String) -> Self {
        Self::Invalid {
            head: format!("reconciling {}", named(id)),
            why,
        }
    }

    /// Whether the kind itself is not served.
    pub(super) fn is_missing_kind(&self) -> bool {
        match self {
            Self::Kind {
                source: CallError::Kube(error),
                ..
            } => match &**error {
                kube::Error::Api(status) => status.code == 404,
                kube::Error::Discovery(_) => true,
                _ => false,
            },
            _ => false,
        }
    }
}

fn named(id: &Id) -> String {
    let (api_version, kind, name) = (shown(&id.api_version()), shown(&id.kind), shown(&id.name));
    if id.namespace.is_empty() {
        return format!("{api_version}, Kind={kind} {name}");
    }
    format!("{api_version}, Kind={kind} {}/{name}", shown(&id.namespace))
}

/// Joins an error and its causes with `: `; an answer of the API server reads as its message alone, without causes.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut texts = Vec::new();
    for cause in causes(error) {
        if let Some(message) = api_message(cause) {
            texts.push(message);
            break;
        }
        texts.push(cause.to_string());
    }
    texts.join(": ")
}

fn api_message(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(CallError::Kube(inner)) = error.downcast_ref::<CallError>() {
        return Some(match &**inner {
            kube::Error::Api(status) => answer(&status.message),
            other => answer(&other.to_string()),
        });
    }
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(answer(&status.message)),
        _ => None,
    }
}

fn answer(text: &str) -> String {
    cut(text, ANSWER_LIMIT).into_owned()
}
