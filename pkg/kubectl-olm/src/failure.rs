//! Failures of commands, with their exit codes.

use serde_json::{Value, json};

use crate::source::SourceError;

/// Reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The answer is negative, for example because the package does not exist. Exit code 1.
    #[error("{0}")]
    NegativeAnswer(String),
    /// The arguments are invalid. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// There is no plan, because the change would be refused before. Exit code 2.
    #[error("{0}")]
    Refused(String),
    /// There is no plan, because something that it starts from does not exist. Exit code 3.
    #[error("{0}")]
    NoPlan(String),
    /// A catalog cannot be read, or the cluster does not answer or refuses a request, also one that writes. Exit code 3.
    #[error(transparent)]
    CouldNotAsk(#[from] SourceError),
}

impl Failure {
    /// Returns the failure with its causes in one line.
    pub(crate) fn message(&self) -> String {
        olm_text::chain(self)
    }

    /// Returns the HTTP status with which the API server refused, if it did: 401 or 403.
    pub(crate) fn refusal(&self) -> Option<u16> {
        match self {
            Self::CouldNotAsk(error) => error.refusal(),
            _ => None,
        }
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::NegativeAnswer(_) => 1,
            Self::Usage(_) | Self::Refused(_) => 2,
            Self::NoPlan(_) | Self::CouldNotAsk(_) => 3,
        }
    }

    /// Returns the failure as data.
    pub(crate) fn value(&self) -> Value {
        let kind = match self {
            Self::NegativeAnswer(_) => "NegativeAnswer",
            Self::Usage(_) => "WrongUsage",
            Self::Refused(_) => "Refused",
            Self::NoPlan(_) | Self::CouldNotAsk(_) => "CouldNotAsk",
        };
        json!({"error": {"message": self.message(), "kind": kind, "exitCode": self.code()}})
    }
}
