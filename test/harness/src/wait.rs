//! Waits for conditions, with the last observation in the error.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Calls `check` until it returns `Ok`, with growing pauses of 10 to 250 ms. Its error describes the observed state.
///
/// # Errors
/// The `timeout` is over: the message has `what` and the last error.
pub async fn eventually<T, F>(timeout: Duration, what: &str, mut check: F) -> Result<T>
where
    F: AsyncFnMut() -> Result<T>,
{
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        // A check that hangs must not exceed the timeout by much.
        let left = timeout
            .saturating_sub(start.elapsed())
            .max(Duration::from_secs(1));
        let last = match tokio::time::timeout(left, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(last)) => last,
            Err(_) => anyhow!("no answer"),
        };
        if start.elapsed() > timeout {
            return Err(anyhow!(
                "not seen within {timeout:?}: {what}; last seen: {last:#}"
            ));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
