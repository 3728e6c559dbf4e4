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

    /// Removes refused values from the API server's message. The error of a Secret is for readers of statuses, events and logs, who need
    /// no right to read the Secret.
    pub(super) fn without_values(mut self) -> Self {
        if let Self::Kube(error) = &mut self
            && let kube::Error::Api(status) = &mut **error
        {
            status.message = without_values(&status.message);
        }
        self
    }
}

/// Removes values from a message of the API server about a field of a wrong type: `.data.key: expected string, got ...`. There is a line
/// for each field, as line breaks in values are escaped. In all other messages about a Secret, the API server masks values itself.
fn without_values(message: &str) -> String {
    let lines = message.lines().map(|line| match line.split_once(", got ") {
        Some((expected, _)) => format!("{expected}, got another type"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
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

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn refused_values_are_removed() {
        let message = "failed to create typed patch object (n/s; /v1, Kind=Secret): errors:\n  \
            .data.a: expected string, got &value.valueUnstructured{Value:31415}\n  \
            .data.b: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"c\":\"x, got y\"}}";
        let shown = "failed to create typed patch object (n/s; /v1, Kind=Secret): errors:\n  \
            .data.a: expected string, got another type\n  \
            .data.b: expected string, got another type";
        assert_eq!(without_values(message), shown);
        let other = "Secret \"s\" is invalid: type: Invalid value: \"Opaque\": field is immutable";
        assert_eq!(without_values(other), other);
    }
}
