//! Errors of the controller's own calls, each with a time limit.

use std::time::Duration;

use olm_applier::engine::chain;
use olm_runtime::client::is_absent;

/// Limit of a call of the controller itself.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Failure of a reconcile outside the engine. Every failure is retried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call to the API server failed.
    #[error("{step} ClusterObjectSet {name:?}")]
    Call {
        /// Purpose of the call.
        step: &'static str,
        /// Name of the revision.
        name: String,
        /// Answer of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// A call to the API server took too long.
    #[error("{step} ClusterObjectSet {name:?}: the API server did not answer within 30 seconds")]
    Timeout {
        /// Purpose of the call.
        step: &'static str,
        /// Name of the revision.
        name: String,
    },
}

impl Error {
    /// Returns the API server's message, bounded.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Call { source, .. } => chain(source.as_ref()),
            other @ Self::Timeout { .. } => other.to_string(),
        }
    }

    /// Returns true if the object changed or vanished between read and write. Such a conflict is expected.
    pub(super) fn overtaken(&self) -> bool {
        matches!(self, Self::Call { source, .. } if is_stale(source))
    }
}

/// Returns true if the object changed or vanished since it was read.
pub(super) fn is_stale(error: &kube::Error) -> bool {
    is_absent(error) || matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Waits for a call of the controller, at most [`CALL_LIMIT`].
pub(super) async fn limited<T>(
    step: &'static str,
    name: &str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::Call {
            step,
            name: name.to_owned(),
            source: Box::new(source),
        }),
        Err(_) => Err(Error::Timeout {
            step,
            name: name.to_owned(),
        }),
    }
}
