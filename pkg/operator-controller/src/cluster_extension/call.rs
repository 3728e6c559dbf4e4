//! Calls to the API server with a time limit and the purpose of each call in its errors.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt as _, stream};
use thiserror::Error;

/// Limit of one call, including the retries of the client.
const LIMIT: Duration = Duration::from_secs(30);
/// Most reads for one extension that run at once.
const READS_AT_ONCE: usize = 8;
/// Longest text of one cause, in bytes: responses of servers repeat refused values, which can be large.
const CAUSE_LIMIT: usize = 2048;

/// Failed call of the API server, with the purpose of the call.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// The API server did not answer in time.
    #[error("{what}: the API server gave no answer within {} seconds", LIMIT.as_secs())]
    Timeout {
        /// Purpose of the call.
        what: String,
    },
    /// The API server answered with an error, or the connection failed.
    #[error("{what}")]
    Api {
        /// Purpose of the call.
        what: String,
        /// Error of the client.
        #[source]
        source: Box<kube::Error>,
    },
    /// A revision of the wanted name exists.
    #[error(
        "{what}: a ClusterObjectSet of this name exists; if it belongs to somebody else, the rollout goes on when it is deleted"
    )]
    Exists {
        /// Purpose of the call, with the name of the revision.
        what: String,
    },
    /// Work between calls ended early: the process is stopping, or a task panicked.
    #[error("{what} was interrupted")]
    Interrupted {
        /// The work.
        what: String,
    },
}

impl CallError {
    /// Returns true if the API server answered that the object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { source, .. } if olm_runtime::client::is_absent(source))
    }

    /// Returns true if the API server refused the call for lack of rights.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_forbidden()))
    }

    /// Returns true if the API server refused the call itself: the same call has the same answer until somebody changes something.
    pub(crate) fn is_refused(&self) -> bool {
        match self {
            Self::Api { source, .. } => matches!(
                &**source,
                kube::Error::Api(status) if (400..500).contains(&status.code) && ![401, 409, 429].contains(&status.code)
            ),
            // An interrupted creation of this process has the same answer; the next pass finds its revision.
            Self::Exists { .. } | Self::Timeout { .. } | Self::Interrupted { .. } => false,
        }
    }

    /// Returns true if the object has changed since it was read.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_conflict()))
    }

    /// Returns true if the API server answered that the object exists.
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

/// Runs reads side by side, at most [`READS_AT_ONCE`]. The answers come in the order of the reads.
pub(crate) fn side_by_side<'a, T: Send + 'a>(
    reads: Vec<BoxFuture<'a, T>>,
) -> impl Stream<Item = T> + Send + Unpin + 'a {
    stream::iter(reads).buffered(READS_AT_ONCE)
}

/// Joins an error and its causes with `: `; each cause is cut to [`CAUSE_LIMIT`] bytes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    olm_text::chain_within(error, CAUSE_LIMIT)
}
