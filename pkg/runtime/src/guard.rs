//! Panic guard: a panic in the reconcile of one object does not stop the controller.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use olm_text::{cut, printable};

/// Maximum length of a panic message, in bytes.
const MAX_MESSAGE: usize = 500;

/// Panic of a controller, caught so that the other objects are still reconciled. `Display` is the message for the status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller failed unexpectedly and tries again; this is a defect, please report it: {0}")]
pub struct Panicked(String);

/// Runs `work` and catches its panics. State that `work` shares must be consistent at every point of a panic, such
/// as locks that unwinding releases.
///
/// # Errors
/// [`Panicked`].
pub async fn guard<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|payload| Panicked(message(payload.as_ref())))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    cut(&printable(text.unwrap_or("panic without a text")), MAX_MESSAGE).into_owned()
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
