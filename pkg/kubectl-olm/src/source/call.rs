//! Calls to the API server.

use std::future::Future;
use std::time::Duration;

use olm_runtime::client::is_absent;

use super::error::SourceError;

/// Time limit of one API call.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for a call for at most [`CALL_TIMEOUT`]. `what` names the call in errors.
pub(super) fn call<T>(
    what: &str,
    work: impl Future<Output = kube::Result<T>>,
) -> impl Future<Output = Result<T, SourceError>> {
    // No async function: it would hold `work` twice.
    within(CALL_TIMEOUT, what, work)
}

/// Variant of [`call`] with another time limit.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = kube::Result<T>>,
) -> Result<T, SourceError> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done.map_err(|source| SourceError::Cluster {
            what: what.to_owned(),
            source: Box::new(source),
        }),
        Err(_) => Err(SourceError::Slow {
            what: what.to_owned(),
        }),
    }
}

/// Waits like [`call`] for an object that may be absent.
pub(super) async fn find<T>(
    what: &str,
    work: impl Future<Output = kube::Result<Option<T>>>,
) -> Result<Option<T>, SourceError> {
    match call(what, work).await {
        Err(SourceError::Cluster { source, .. }) if is_absent(&source) => Ok(None),
        found => found,
    }
}
