//! Error chains.

use std::error::Error;
use std::iter::successors;

use crate::cut;

/// Returns an error and its causes, outermost first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// Joins an error and its causes with `: `. Errors of libraries often repeat their cause; a cause that the text already
/// contains is skipped.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    chain_within(error, usize::MAX)
}

/// Joins an error and its causes like [`chain`]; each cause is cut to `limit` bytes.
#[must_use]
pub fn chain_within(error: &dyn Error, limit: usize) -> String {
    let mut text = error.to_string();
    for cause in successors(error.source(), |&cause| cause.source()) {
        let cause = cause.to_string();
        let cause = cut(&cause, limit);
        if !text.contains(&*cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Fault(&'static str, Option<Box<Fault>>);

    impl fmt::Display for Fault {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Fault {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &dyn Error)
        }
    }

    fn faults(texts: &[&'static str]) -> Fault {
        let (first, rest) = texts.split_first().unwrap();
        Fault(first, (!rest.is_empty()).then(|| Box::new(faults(rest))))
    }

    #[test]
    fn each_cause_is_printed_once() {
        assert_eq!(chain(&faults(&["a"])), "a");
        assert_eq!(
            chain(&faults(&["pull", "request: refused", "refused", "socket"])),
            "pull: request: refused: socket"
        );
        assert_eq!(
            chain_within(&faults(&["pulling", "a long text"]), 9),
            "pulling: a long…"
        );
        assert_eq!(causes(&faults(&["a", "b", "c"])).count(), 3);
    }
}
