//! Errors of the parser.

/// Reason why a text is refused.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// The source of a stream fails. A second attempt may succeed, unlike for all other errors.
    #[error("the input cannot be read")]
    Read {
        /// Error of the source.
        source: std::io::Error,
    },
    /// The text is malformed. The message is that of the Go reader if both readers find the same fault.
    #[error("yaml: {}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// Line of the fault as the Go reader counts it, if known.
        line: Option<u64>,
        /// Description of the fault.
        problem: String,
    },
    /// A value is not JSON.
    #[error("malformed JSON: {source}")]
    Json {
        /// Fault and its position in the value.
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
    /// Returns an error without a line.
    pub(crate) fn problem(problem: impl Into<String>) -> Self {
        Self::Syntax {
            line: None,
            problem: problem.into(),
        }
    }

    /// Returns true if the same bytes fail again.
    pub fn terminal(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }
}
