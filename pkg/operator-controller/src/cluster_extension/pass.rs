//! A pass over an extension: what every step works with.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use olm_api::ClusterExtension;
use olm_rollout::{WindowError, Windows};
use tracing::Instrument as _;

use super::Context;
use super::failure::Failure;
use crate::metrics::Step;

/// Namespaces that an extension selects by labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// Names of the namespaces, sorted.
    pub names: Vec<String>,
    /// Time until a change of the namespaces is worth a rollout; `None` if they did not change lately.
    pub settles: Option<Duration>,
}

/// One pass over an extension.
pub(crate) struct Pass<'a> {
    /// State and clients of the controller.
    pub context: &'a Context,
    /// The extension as read at the start of the pass.
    pub extension: &'a ClusterExtension,
    /// Name of the extension.
    pub name: String,
    /// Time of the pass.
    pub now: Timestamp,
    /// Windows of `spec.rollout`.
    pub windows: Result<Windows, WindowError>,
    /// Namespaces of `watchNamespaceSelector`, if the configuration has that field; the text of a failed list.
    pub namespaces: Result<Option<Selected>, String>,
}

impl<'a> Pass<'a> {
    /// A pass over `extension` at `now`.
    pub(crate) fn new(context: &'a Context, extension: &'a ClusterExtension, now: Timestamp) -> Self {
        let windows = extension
            .spec
            .rollout
            .as_ref()
            .and_then(|rollout| rollout.windows.as_deref());
        Self {
            context,
            extension,
            name: extension.name_any(),
            now,
            windows: Windows::read(windows.unwrap_or_default()),
            namespaces: Ok(None),
        }
    }

    /// Returns the selected namespaces; `None` without a selector and if the list failed.
    pub(crate) fn selected(&self) -> Option<&Selected> {
        self.namespaces.as_ref().ok()?.as_ref()
    }

    /// Returns true if `spec.rollout.paused` is true.
    pub(crate) fn is_paused(&self) -> bool {
        let rollout = self.extension.spec.rollout.as_ref();
        rollout.and_then(|rollout| rollout.paused) == Some(true)
    }

    /// Runs one step in a span of its own and measures its duration.
    pub(super) fn step<T>(&self, step: Step, work: impl Future<Output = T>) -> impl Future<Output = T> {
        let span = tracing::debug_span!("step", step = step.label());
        // Boxed, since the futures of a whole pass would add up.
        Box::pin(self.context.shared.metrics.measure(step, work)).instrument(span)
    }

    /// Waits for a pull, which can take long, unless the extension is deleted or its spec changes.
    pub(crate) async fn unless_superseded<T>(
        &self,
        pulling: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let generation = self.extension.metadata.generation;
        tokio::select! {
            pulled = pulling => pulled,
            () = self.context.stores.superseded(&self.name, generation) => Err(Failure::Superseded),
        }
    }
}
