//! Shutdown token: cancelled on SIGTERM or Ctrl-C.

use std::future::{Future, pending};

use futures::FutureExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that is cancelled on the first SIGTERM or SIGINT.
///
/// A second signal exits the process at once, with the shell's status for it. Must be called within a tokio runtime.
#[must_use]
pub fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let (terminate, interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "signals cannot be handled; only SIGKILL ends this process");
            return token;
        }
    };
    let cancelled = token.clone();
    tokio::spawn(async move {
        let (mut terminate, mut interrupt) = (terminate, interrupt);
        let mut next_signal = async || {
            tokio::select! {
                _ = terminate.recv() => ("SIGTERM", 143),
                _ = interrupt.recv() => ("SIGINT", 130),
            }
        };
        let (name, _) = next_signal().await;
        tracing::info!(signal = name, "stopping");
        cancelled.cancel();
        let (name, code) = next_signal().await;
        tracing::warn!(signal = name, "exiting at once");
        #[expect(
            clippy::disallowed_methods,
            reason = "the user asked twice; nothing is left to wait for"
        )]
        std::process::exit(code);
    });
    token
}

/// Drives a kube controller until it has ended.
///
/// A controller that is stopped before `ready`, its first list, waits for that list forever, although its reflector
/// has ended (kube 5.0). No reconcile runs at that point, so the controller is dropped.
pub async fn drive(
    controller: impl Future<Output = ()>,
    ready: impl Future,
    stopping: impl Future<Output = ()>,
) {
    let stuck = async move {
        stopping.await;
        if ready.now_or_never().is_some() {
            // Running reconciles finish.
            pending::<()>().await;
        }
    };
    tokio::select! {
        () = controller => {}
        () = stuck => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_controller_without_its_first_list_does_not_block_the_shutdown() {
        drive(pending(), pending::<()>(), async {}).await;
    }

    #[tokio::test]
    async fn running_reconciles_are_waited_for() {
        let ended = drive(pending(), async {}, async {}).now_or_never();
        assert!(ended.is_none());
        let work = async {
            tokio::task::yield_now().await;
        };
        drive(work, async {}, async {}).await;
    }
}
