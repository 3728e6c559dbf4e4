//! One problem of a pod, and the foreign text in it. Pure.

use olm_text::{cut, printable, quoted};

/// Maximum length of a foreign message in bytes.
const MAX_MESSAGE: usize = 300;
/// Maximum length of a foreign name or reason in bytes.
const MAX_WORD: usize = 128;

/// Severity of a problem, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// The workload cannot create pods, or has failed.
    Workload,
    /// A container does not start, or ends.
    Container,
    /// No node takes the pod.
    Unschedulable,
    /// A container runs and is not ready.
    NotReady,
    /// A pod has failed; the workload replaces it.
    Failed,
    /// A pod has not started for long, without an error.
    Slow,
}

/// A problem of a pod, or of the workload itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) severity: Severity,
    /// Problems with the same key are shown once.
    pub(super) key: String,
    /// Name of the pod; empty for the workload itself.
    pub(super) pod: String,
    pub(super) text: String,
    /// A state between two others that say more about the same problem.
    pub(super) passing: bool,
}

impl Problem {
    pub(super) fn new(severity: Severity, key: &str, text: String) -> Self {
        Self {
            severity,
            key: key.to_owned(),
            pod: String::new(),
            text,
            passing: false,
        }
    }

    /// Marks a state that alternates with a more telling one.
    pub(super) fn passing(self) -> Self {
        Self {
            passing: true,
            ..self
        }
    }
}

/// Formats a foreign name.
pub(super) fn foreign(name: &str) -> String {
    printable(&cut(name, MAX_WORD)).replace(['\n', '\t'], " ")
}

/// Formats a foreign reason and message: `Reason: "message"`.
pub(super) fn reason(reason: &str, message: &str) -> String {
    match (reason.trim(), message.trim()) {
        ("", "") => String::new(),
        (why, "") => foreign(why),
        ("", message) => quoted(message, MAX_MESSAGE),
        (why, message) => format!("{}: {}", foreign(why), quoted(message, MAX_MESSAGE)),
    }
}
