//! Calls to the API server: none waits for ever, and each failure says what was being done.

use std::future::Future;
use std::time::Duration;

use thiserror::Error;

/// Longest any single call may take, the client's own retries included.
const LIMIT: Duration = Duration::from_secs(30);
/// Longest text of one cause, in bytes: answers of servers repeat what they refuse, which may be large.
const CAUSE_LIMIT: usize = 2048;

/// A call that failed.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// No answer in time.
    #[error("{what}: the API server gave no answer within {} seconds", LIMIT.as_secs())]
    Timeout {
        /// What was being done.
        what: String,
    },
    /// An answer, but not the one hoped for.
    #[error("{what}")]
    Api {
        /// What was being done.
        what: String,
        /// The answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl CallError {
    /// Whether the API server says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { source, .. } if olm_runtime::client::is_absent(source))
    }

    /// Whether the API server says that it is not allowed.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_forbidden()))
    }

    /// Whether the API server says that it is there already.
    pub(crate) fn is_already_exists(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_already_exists()))
    }
}

/// Waits for `call`, at most [`LIMIT`].
pub(crate) async fn call<T>(
    what: impl Into<String>,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
    let what = what.into();
    match tokio::time::timeout(LIMIT, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(CallError::Api {
            what,
            source: Box::new(source),
        }),
        Err(_) => Err(CallError::Timeout { what }),
    }
}

/// Joins an error and its causes with `: `; each cause is cut to [`CAUSE_LIMIT`] bytes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    olm_text::chain_within(error, CAUSE_LIMIT)
}
