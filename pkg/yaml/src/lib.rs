//! YAML and JSON parser with the results of Kubernetes' own.
//!
//! The reference is Go's `sigs.k8s.io/yaml` (YAML 1.1 by `go.yaml.in/yaml/v2`, then JSON) and, for files of several
//! documents, the YAML-or-JSON decoder of `k8s.io/apimachinery`. Upstream reads bundles and catalogs with both, so
//! this crate returns the values that upstream reads and refuses the texts that upstream refuses. `docs/deviations.md`
//! lists the exceptions; `test/integration` compares both parsers.
//!
//! [`document`] reads one document, [`Frames`] splits a stream into documents, [`json`] reads a JSON text, and
//! [`documents`] does all of this for a file in memory.
//!
//! Texts are untrusted: [`Limits`] bounds size, depth and memory. Memory is counted before it is allocated, for aliases
//! at each use. The crate does not recurse over a YAML document.

mod budget;
mod compose;
mod cursor;
mod error;
mod events;
mod float;
mod frames;
mod json;
mod json_extent;
mod limits;
mod parser;
mod scalar;
mod scanner;
mod source;
mod timestamp;
mod token;

pub use budget::memory;
pub use compose::{Composed, RepeatedKey, compose};
pub use error::YamlError;
pub use frames::{Frame, Frames};
pub use json::{json, read_json};
pub use limits::Limits;

use serde_json::Value;

/// Reads the first document of a YAML text, as `sigs.k8s.io/yaml` does. An empty document is null.
///
/// # Errors
/// [`YamlError`] if the text is not YAML, has no JSON form, or exceeds a limit.
pub fn document(text: &[u8], limits: &Limits) -> Result<Value, YamlError> {
    Ok(compose(text, limits)?.value)
}

/// Reads the documents of a file, YAML or JSON, in order; skips null documents. [`Limits::max_memory`] is the memory of all
/// of them together.
///
/// # Errors
/// [`YamlError`] of the first document that cannot be read.
pub fn documents(file: &[u8], limits: &Limits) -> Result<Vec<Value>, YamlError> {
    let mut left = *limits;
    let mut frames = Frames::new(file, *limits);
    let mut values = Vec::new();
    // The JSON error of a document, which is more useful than its YAML error if the document looks like JSON.
    let mut json_error = None;
    while let Some(frame) = frames
        .next()
        .map_err(|error| json_error.take().unwrap_or(error))?
    {
        let (value, braces) = match frame {
            Frame::Yaml(text) => (document(text, &left), false),
            Frame::Json(text) => (json(text, &left), text.starts_with(b"{")),
        };
        match value {
            Ok(value) => {
                json_error = None;
                if !value.is_null() {
                    left.max_memory = left.max_memory.saturating_sub(memory(&value));
                    values.push(value);
                }
            }
            Err(error) if frames.retry_as_yaml()? => json_error = braces.then_some(error),
            Err(error) => return Err(json_error.unwrap_or(error)),
        }
    }
    Ok(values)
}

/// Returns the first few keys of a file that are repeated in one mapping; the last value is used. An unreadable file
/// has none.
pub fn repeated_keys(file: &[u8], limits: &Limits) -> Vec<RepeatedKey> {
    let mut frames = Frames::new(file, *limits);
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        // JSON is YAML, too, and the JSON parser does not report repeated keys.
        let (Frame::Json(text) | Frame::Yaml(text)) = frame;
        let repeated = compose(text, limits)
            .map(|composed| composed.repeated)
            .unwrap_or_default();
        let before = frames.start() - 1;
        found.extend(repeated.into_iter().map(|key| RepeatedKey {
            line: key.line + before,
            ..key
        }));
    }
    found
}

#[cfg(test)]
mod tests;
