//! Somebody who reads the pages.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::door::SessionKey;
use crate::cli::AccessArgs;
use crate::source::{Bearer, Cluster};

/// Maximum number of pages of a reader that follow the cluster at a time: each has three watches.
const STREAMS: usize = 8;
/// Variant of [`STREAMS`] and [`PLANS`] for the only reader of a server on loopback.
const OWN: usize = 32;

/// Maximum number of plans of a reader at a time. The plans of all readers wait in one queue, which one reader must not fill.
const PLANS: usize = 1;

/// A reader. All that a page shows of a cluster is read through `cluster`.
pub(crate) struct Reader {
    /// The cluster, with the rights of the reader.
    pub(super) cluster: Cluster,
    /// How images are pulled for a plan.
    pub(super) access: AccessArgs,
    /// The reader's token; none for the user of this machine.
    pub(super) bearer: Option<Arc<Bearer>>,
    /// The reader's session; none for the user of this machine.
    pub(super) session: Option<SessionKey>,
    /// True if the reader can end the session.
    pub(super) signs_out: bool,
    /// Permits for pages that follow the cluster.
    pub(super) streams: Arc<Semaphore>,
    /// Permits for plans.
    pub(super) plans: Semaphore,
    /// Cancelled when the session ends.
    pub(super) ended: CancellationToken,
}

impl Reader {
    /// Creates the reader who is the user of this machine.
    pub(crate) fn of_user(cluster: Cluster, access: AccessArgs) -> Self {
        Self {
            cluster,
            access,
            bearer: None,
            session: None,
            signs_out: false,
            streams: Arc::new(Semaphore::new(OWN)),
            plans: Semaphore::new(OWN),
            ended: CancellationToken::new(),
        }
    }

    /// Creates a reader who brought a token.
    pub(super) fn of_bearer(
        cluster: Cluster,
        access: AccessArgs,
        bearer: Arc<Bearer>,
        session: SessionKey,
        ended: CancellationToken,
    ) -> Self {
        Self {
            cluster,
            access,
            bearer: Some(bearer),
            session: Some(session),
            signs_out: false,
            streams: Arc::new(Semaphore::new(STREAMS)),
            plans: Semaphore::new(PLANS),
            ended,
        }
    }

    /// Returns a reader of a cluster that does not exist.
    #[cfg(test)]
    pub(super) fn for_tests() -> Self {
        // Nobody asks it; a client takes long to make.
        static CLUSTER: std::sync::LazyLock<Cluster> = std::sync::LazyLock::new(Cluster::for_tests);
        Self::of_user(CLUSTER.clone(), AccessArgs::default())
    }
}
