//! Catches panics, so that one object's fault does not end the work on all others.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use olm_text::{cut, printable};

/// Longest text of a panic that is kept, in bytes.
const TEXT_LIMIT: usize = 500;

/// A panic that was caught.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller failed unexpectedly and tries again; this is a defect, please report it: {0}")]
pub struct Panicked(String);

/// Does `work`; a panic in it ends it, and nothing else. What `work` shares with others must be sound at every point at which it can
/// panic: locks that are released by unwinding are.
///
/// # Errors
/// [`Panicked`].
pub async fn guard<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|payload| Panicked(text(payload.as_ref())))
}

fn text(payload: &(dyn Any + Send)) -> String {
    let said = payload.downcast_ref::<&str>().copied();
    let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    cut(&printable(said.unwrap_or("panic without a text")), TEXT_LIMIT).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error() {
        assert_eq!(guard(async { 1 }).await, Ok(1));
        let number = 7;
        let caught = guard(async { assert!(number < 7, "number {number}\x1b[0m") }).await;
        assert_eq!(caught, Err(Panicked("number 7\\u{1b}[0m".to_owned())));
    }
}
