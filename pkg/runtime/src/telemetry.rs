//! Logging on standard error, as text or JSON.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt};

use crate::args::{CommonArgs, LogFormat, LogLevel};

/// Error of the logging setup.
#[derive(Debug, thiserror::Error)]
#[error("logging is already set up in this process")]
pub struct TelemetryError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Starts logging for the whole process.
///
/// `RUST_LOG` overrides `--log-level`, which overrides `--v`. Without `RUST_LOG` the libraries below are limited to
/// `warn`, as their debug lines contain whole requests.
///
/// # Errors
/// [`TelemetryError`] if a logger is already installed.
pub fn init(args: &CommonArgs) -> Result<(), TelemetryError> {
    init_with(args.log_format, level(args))
}

/// Variant of [`init`] for a program without the flags of the controllers.
///
/// # Errors
/// [`TelemetryError`] if a logger is already installed.
pub fn init_with(format: LogFormat, level: LogLevel) -> Result<(), TelemetryError> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(level)));
    // Files and `kubectl logs` get no colours; https://no-color.org turns them off on a terminal, too.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && !no_color)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(TelemetryError)
}

/// Returns the level that the flags request.
fn level(args: &CommonArgs) -> LogLevel {
    args.log_level.unwrap_or(match args.klog.verbosity {
        0 => LogLevel::Info,
        1..=4 => LogLevel::Debug,
        _ => LogLevel::Trace,
    })
}

fn directives(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info,hyper=warn,h2=warn,rustls=warn,tower=warn,kube_client=warn",
        LogLevel::Debug => "debug,hyper=warn,h2=warn,rustls=warn,tower=warn,kube_client=info",
        // Higher levels of these libraries log bodies with tokens and Secrets, and the values that the API server refuses.
        LogLevel::Trace => "trace,hyper=info,h2=info,rustls=info,tower=info,kube_client=info",
    }
}
