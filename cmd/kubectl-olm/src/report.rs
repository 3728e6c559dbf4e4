//! What a command answers.

use serde_json::Value;

/// One answer, for programs and for people.
#[derive(Debug)]
pub(crate) struct Report {
    /// For `-o json` and `-o yaml`.
    pub(crate) value: Value,
    /// For `-o table`; ends in a line feed.
    pub(crate) text: String,
    /// Whether the exit code is 0; else 1.
    pub(crate) positive: bool,
}

impl Report {
    /// A positive answer.
    pub(crate) fn new(value: Value, text: String) -> Self {
        Self {
            value,
            text,
            positive: true,
        }
    }

    /// The same answer, positive or not.
    pub(crate) fn positive(self, positive: bool) -> Self {
        Self { positive, ..self }
    }
}
