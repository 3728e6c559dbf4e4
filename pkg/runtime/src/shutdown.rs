//! One token that ends everything: cancelled on SIGTERM or Ctrl-C.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled on the first SIGTERM or SIGINT.
///
/// A second signal ends the process at once, with the shell's status for it. Must be called
/// within a tokio runtime.
#[must_use]
pub fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let (terminate, interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "signals cannot be listened to; only killing ends this process");
            return token;
        }
    };
    let cancelled = token.clone();
    tokio::spawn(async move {
        let (mut terminate, mut interrupt) = (terminate, interrupt);
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => ("SIGTERM", 143),
                _ = interrupt.recv() => ("SIGINT", 130),
            }
        };
        let (name, _) = next().await;
        tracing::info!(signal = name, "stopping");
        cancelled.cancel();
        let (name, code) = next().await;
        tracing::warn!(signal = name, "stopping at once");
        #[expect(
            clippy::disallowed_methods,
            reason = "the user asked twice; nothing is left to wait for"
        )]
        std::process::exit(code);
    });
    token
}
