//! Waiting for something to become true, with the last thing seen in the failure's text.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Calls `look` until it returns `Ok`, with growing pauses of 10 to 250 ms. What it returns as
/// an error is what it saw instead.
///
/// # Errors
/// When `timeout` is over: the text names `what` and what was seen last.
pub async fn eventually<T, F>(timeout: Duration, what: &str, mut look: F) -> Result<T>
where
    F: AsyncFnMut() -> Result<T>,
{
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        // A look that hangs must not outlast the limit by much.
        let left = timeout
            .saturating_sub(start.elapsed())
            .max(Duration::from_secs(1));
        let seen = match tokio::time::timeout(left, look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(seen)) => seen,
            Err(_) => anyhow!("no answer"),
        };
        if start.elapsed() > timeout {
            return Err(anyhow!(
                "not seen within {timeout:?}: {what}; last seen: {seen:#}"
            ));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
