//! Time limits on calls to the API server.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};

/// Objects of one phase that are looked at or written at the same time.
const PARALLEL: usize = 8;

/// No single call may take longer; it includes the client's own retries.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The API server or the way to it failed.
    #[error("the API server refused")]
    Kube(#[source] Box<kube::Error>),
    /// It took too long.
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

    /// The field managers a server-side apply conflicts with, as the API server words it; empty when it is no such conflict.
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

/// Runs a call for at most [`LIMIT`].
pub(super) async fn timed<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    match tokio::time::timeout(LIMIT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(CallError::Kube(Box::new(error))),
        Err(_) => Err(CallError::Timeout),
    }
}

/// Runs the futures, at most [`PARALLEL`] at a time; the answers are in their order.
pub(super) async fn together<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(futures).buffered(PARALLEL).collect().await
}
