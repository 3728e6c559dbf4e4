//! Format and level of the log.

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Minimum level of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
    /// Failures that keep the process from its work.
    Error,
    /// Problems that need attention.
    Warn,
    /// Changes.
    Info,
    /// Every reconcile, request and decision.
    Debug,
    /// Everything.
    Trace,
}
