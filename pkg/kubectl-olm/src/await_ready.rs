//! Waiting for an object of OLM, with progress on standard error.

use std::time::Duration;

use tokio::time::Instant;

use crate::commands::common::progress;
use crate::failure::Failure;
use crate::source::SourceError;

/// Interval between two reads.
const POLL: Duration = Duration::from_millis(500);

/// State of an awaited object.
pub(crate) struct Seen<T> {
    /// The object.
    pub(crate) object: T,
    /// State in one line.
    pub(crate) line: String,
    /// True if waiting longer changes nothing: the object is ready, or fails until somebody changes something.
    pub(crate) settled: bool,
}

/// Reads the object with `read` until it is settled, and prints each new state. `what` names the object.
///
/// # Errors
/// The object is gone, cannot be read, or is not settled at the deadline.
pub(crate) async fn settled<T>(
    what: &str,
    deadline: Option<Instant>,
    mut read: impl AsyncFnMut() -> Result<Option<Seen<T>>, SourceError>,
) -> Result<T, Failure> {
    let mut told = String::new();
    loop {
        let Some(Seen {
            object,
            line,
            settled,
        }) = read().await?
        else {
            return Err(Failure::NegativeAnswer(format!("{what} is gone")));
        };
        if line != told {
            progress(&line);
            told.clone_from(&line);
        }
        if settled {
            return Ok(object);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Failure::NegativeAnswer(format!(
                "{what} is not ready in time: {line}. It is written and goes on; wait longer with --timeout"
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}
