//! Output of the demo: lines with the time since the start, and changed conditions.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Printer to stdout.
#[derive(Debug)]
pub struct Console {
    started: Instant,
    shown: Mutex<BTreeMap<String, String>>,
}

impl Default for Console {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            shown: Mutex::default(),
        }
    }
}

impl Console {
    /// Prints a line with the seconds since the start.
    pub fn line(&self, text: &str) {
        self.plain(&format!(
            "[{:6.1} s] {text}",
            self.started.elapsed().as_secs_f64()
        ));
    }

    /// Prints a line.
    pub fn plain(&self, text: &str) {
        // The demo continues even if stdout is closed.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    /// Prints a line for each condition that is new or has changed since it was printed.
    pub fn conditions(&self, object: &str, conditions: &[Condition]) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for condition in conditions {
            let key = format!("{object} {}", condition.type_);
            let text = format!(
                "{}={} ({}) {}",
                condition.type_, condition.status, condition.reason, condition.message
            );
            if shown.get(&key) != Some(&text) {
                self.line(&format!("  {object}: {}", text.trim_end()));
                shown.insert(key, text);
            }
        }
    }
}
