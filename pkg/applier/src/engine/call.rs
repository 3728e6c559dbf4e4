//! Calls to the API server: their timeout, their errors, and how many run at once.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};

/// Maximum number of concurrent calls for the objects of one phase.
const MAX_CONCURRENT: usize = 8;

/// Timeout of a single call, including the client's own retries.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Status code of the API server for a missing right.
pub(super) const FORBIDDEN: u16 = 403;

/// Error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The API server refused the request or is unreachable.
    #[error("the API server refused")]
    Kube(#[source] Box<kube::Error>),
    /// The call timed out.
    #[error("the API server did not answer within 30 seconds")]
    Timeout,
}

impl CallError {
    pub(super) fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Kube(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::Timeout => None,
        }
    }

    pub(super) fn code(&self) -> u16 {
        self.status().map_or(0, |status| status.code)
    }

    /// Returns the conflicts of a server-side apply with other field managers, in the API server's words; empty for
    /// other errors.
    pub(super) fn field_conflicts(&self) -> Vec<String> {
        let Some(status) = self.status().filter(|status| status.code == 409) else {
            return Vec::new();
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }
}

/// Runs a call for at most [`TIMEOUT`].
pub(super) async fn timed<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(CallError::Kube(Box::new(error))),
        Err(_) => Err(CallError::Timeout),
    }
}

/// Runs the futures, at most [`MAX_CONCURRENT`] at a time, and returns the results in order.
pub(super) async fn run_concurrently<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(futures).buffered(MAX_CONCURRENT).collect().await
}
