//! Errors of applying and teardown, and their messages.

use std::error::Error;
use std::time::Duration;

use olm_api::names::InvalidName;
use olm_text::{causes, cut};

use super::call::CallError;
use super::{Id, printable_name};
use crate::account::Account;

/// Error while applying a revision or tearing it down. All variants are retried: rights, namespaces
/// and APIs come and go.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A call for one object failed.
    #[error("reconciling object: {head}: {call}")]
    Object {
        /// The object, with its part of the revision.
        head: String,
        /// Name of the call.
        call: &'static str,
        /// Answer of the API server.
        #[source]
        source: CallError,
    },
    /// The kind is not served.
    #[error("reconciling object: {head}")]
    Kind {
        /// The object.
        head: String,
        /// Answer of the API server.
        #[source]
        source: CallError,
    },
    /// The object is invalid.
    #[error("reconciling object: {head}: {reason}")]
    Invalid {
        /// The object.
        head: String,
        /// Description of the problem.
        reason: String,
    },
    /// The object is being deleted.
    #[error("reconciling object: {head}: the object is being deleted; it is created again when it is gone")]
    Going {
        /// The object.
        head: String,
        /// True if a watch shows its end.
        watched: bool,
    },
    /// The name is invalid for every API server.
    #[error("reconciling object: {head}")]
    Name {
        /// The object.
        head: String,
        /// Reason.
        #[source]
        source: InvalidName,
    },
    /// The service account of the revision does not exist.
    #[error(
        "service account \"{}\" not found in namespace \"{}\": unable to authenticate with the Kubernetes cluster; create it again, or \
         {alternative}", .account.name(), .account.namespace()
    )]
    MissingAccount {
        /// The account.
        account: Account,
        /// Alternative next step for the user.
        alternative: &'static str,
    },
    /// The lookup or impersonation of the service account failed.
    #[error("reading {account}")]
    Account {
        /// The account.
        account: Account,
        /// Answer of the API server.
        #[source]
        source: CallError,
    },
    /// Several objects failed.
    #[error("{}", join(.0))]
    Multiple(Vec<EngineError>),
}

/// Longest delay before the retry for an object that is being deleted: no watch shows the end of an object of others.
const GOING_RECHECK: Duration = Duration::from_secs(10);
/// Maximum number of errors of one phase in a message.
const MAX_ERRORS: usize = 20;
/// Maximum length of one error in bytes, so that none hides the others.
const MAX_LINE: usize = 1024;
/// Maximum length of an API server's message in bytes. Such messages repeat the refused value, which may be large.
const MAX_ANSWER: usize = 2048;

/// Joins the errors, one line each, without duplicates.
fn join(errors: &[EngineError]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for error in errors {
        let line = cut(&chain(error), MAX_LINE).into_owned();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(MAX_ERRORS);
    lines.truncate(MAX_ERRORS);
    if more > 0 {
        lines.push(format!("and {more} more errors"));
    }
    lines.join("\n")
}

impl EngineError {
    /// Returns the longest delay before the retry; `None` for the usual backoff.
    #[must_use]
    pub fn max_delay(&self) -> Option<Duration> {
        match self {
            Self::Going { watched, .. } => (!watched).then_some(GOING_RECHECK),
            Self::Multiple(errors) => errors.iter().find_map(Self::max_delay),
            _ => None,
        }
    }

    /// Returns true if the object is not in the state that a write expected, be it its version or its field managers.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Object { source, .. } if source.code() == 409)
    }

    /// Returns true if the object changed between read and write.
    pub(super) fn is_race(&self) -> bool {
        self.is_conflict()
            && matches!(self, Self::Object { source, .. } if source.field_conflicts().is_empty())
    }

    pub(super) fn object(id: &Id, call: &'static str, source: CallError) -> Self {
        let is_secret = id.group.is_empty() && id.kind == "Secret";
        Self::Object {
            head: format!("reconciling {}", display_name(id)),
            call,
            source: if is_secret {
                source.without_values()
            } else {
                source
            },
        }
    }

    pub(super) fn kind(id: &Id, source: CallError) -> Self {
        Self::Kind {
            head: format!(
                "validating: {}: no matches for kind \"{}\" in version \"{}\"",
                display_name(id),
                printable_name(&id.kind),
                printable_name(&id.api_version())
            ),
            source,
        }
    }

    pub(super) fn name(id: &Id, source: InvalidName) -> Self {
        Self::Name {
            head: format!("validating: {}", display_name(id)),
            source,
        }
    }

    pub(super) fn scope(id: &Id, reason: &str) -> Self {
        Self::Invalid {
            head: format!("validating: {}", display_name(id)),
            reason: format!("the object {reason}"),
        }
    }

    pub(super) fn invalid(id: &Id, reason: String) -> Self {
        Self::Invalid {
            head: format!("reconciling {}", display_name(id)),
            reason,
        }
    }

    pub(super) fn going(id: &Id, watched: bool) -> Self {
        Self::Going {
            head: format!("reconciling {}", display_name(id)),
            watched,
        }
    }

    /// Returns true if the kind is not served.
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

fn display_name(id: &Id) -> String {
    let (api_version, kind, name) = (
        printable_name(&id.api_version()),
        printable_name(&id.kind),
        printable_name(&id.name),
    );
    if id.namespace.is_empty() {
        return format!("{api_version}, Kind={kind} {name}");
    }
    format!(
        "{api_version}, Kind={kind} {}/{name}",
        printable_name(&id.namespace)
    )
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
            kube::Error::Api(status) => truncated(&status.message),
            other => truncated(&other.to_string()),
        });
    }
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(truncated(&status.message)),
        _ => None,
    }
}

fn truncated(text: &str) -> String {
    cut(text, MAX_ANSWER).into_owned()
}
