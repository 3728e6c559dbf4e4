//! Errors of the reader.

/// Reason why a text is refused.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// The source of a stream fails. The only error that a second attempt may cure.
    #[error("the input cannot be read")]
    Read {
        /// Error of the source.
        source: std::io::Error,
    },
    /// The text is malformed. The words are those of the Go reader where both readers find the same fault.
    #[error("yaml: {}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// Line of the fault as the Go reader counts it, if the fault has a place.
        line: Option<u64>,
        /// Description of the fault.
        problem: String,
    },
    /// A value is no JSON.
    #[error("malformed JSON: {source}")]
    Json {
        /// Fault and its place in the value.
        source: serde_json::Error,
    },
    /// A document is nested too deeply.
    #[error("a document is nested deeper than {limit} levels")]
    TooDeep {
        /// Limit in levels.
        limit: usize,
    },
    /// A document of a stream is too long.
    #[error("a document is larger than {limit} bytes")]
    TooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// The values of a document, with all aliases expanded, take too much memory.
    #[error("the values of a document, aliases included, take more than {limit} bytes of memory")]
    TooCostly {
        /// Limit in bytes.
        limit: usize,
    },
}

impl YamlError {
    /// Returns an error without a place.
    pub(crate) fn problem(problem: impl Into<String>) -> Self {
        Self::Syntax {
            line: None,
            problem: problem.into(),
        }
    }

    /// Reports whether the same bytes fail again.
    pub fn terminal(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }
}
