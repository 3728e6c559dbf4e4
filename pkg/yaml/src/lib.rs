//! YAML and JSON exactly as Kubernetes' own reader reads them.
//!
//! The reference is Go's `sigs.k8s.io/yaml` (YAML 1.1 by `go.yaml.in/yaml/v2`, then JSON) and, for files of several
//! documents, the YAML-or-JSON decoder of `k8s.io/apimachinery`. Upstream reads bundles and catalogs with both, so a
//! value that this crate reads is the value that upstream reads, and a text that it refuses is one that upstream
//! refuses. The exceptions are listed in `docs/deviations.md`; `test/integration` compares both readers.
//!
//! [`document`] reads one document, [`Frames`] cuts a stream into documents, [`json`] reads a JSON text, and
//! [`documents`] does all of this for a file in memory.
//!
//! Every text is hostile: size, depth and memory are bounded by [`Limits`], memory is counted before it is taken,
//! aliases as often as they are used, and nothing here recurses over a YAML document.

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

pub use compose::{Composed, RepeatedKey, compose};
pub use error::YamlError;
pub use frames::{Frame, Frames};
pub use json::{json, read_json};
pub use limits::Limits;

use serde_json::Value;

/// Reads the first document of a YAML text, as `sigs.k8s.io/yaml` does. An empty document is null.
///
/// # Errors
/// [`YamlError`], for everything that is no YAML, has no JSON form, or exceeds a limit.
pub fn document(text: &[u8], limits: &Limits) -> Result<Value, YamlError> {
    Ok(compose(text, limits)?.value)
}

/// Reads all documents of a file, YAML or JSON, in their order and without those that are null.
///
/// # Errors
/// [`YamlError`] of the first document that cannot be read.
pub fn documents(file: &[u8], limits: &Limits) -> Result<Vec<Value>, YamlError> {
    let mut frames = Frames::new(file, *limits);
    let mut values = Vec::new();
    // Fault of a document as JSON, which tells more than its fault as YAML where the document looks like JSON.
    let mut no_json = None;
    while let Some(frame) = frames.next().map_err(|error| no_json.take().unwrap_or(error))? {
        let (value, braces) = match frame {
            Frame::Yaml(text) => (document(text, limits), false),
            Frame::Json(text) => (json(text, limits), text.starts_with(b"{")),
        };
        match value {
            Ok(value) => {
                no_json = None;
                if !value.is_null() {
                    values.push(value);
                }
            }
            Err(error) if frames.retry_as_yaml()? => no_json = braces.then_some(error),
            Err(error) => return Err(no_json.unwrap_or(error)),
        }
    }
    Ok(values)
}

/// Returns the first few keys of a file that stand twice in one mapping, of which the last value counts. A file that
/// cannot be read has none.
pub fn repeated_keys(file: &[u8], limits: &Limits) -> Vec<RepeatedKey> {
    let mut frames = Frames::new(file, *limits);
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        // JSON is YAML, too, and the JSON reader would not tell.
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
