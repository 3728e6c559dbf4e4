//! YAML files of a bundle.

use olm_yaml::{Limits, RepeatedKey, YamlError};
use serde_json::Value;

/// Limits of a file; the largest real manifest has 2.5 MB.
const LIMITS: Limits = Limits {
    max_bytes: 16 << 20,
    max_depth: Limits::DEEPEST,
    max_memory: 64 << 20,
};

/// Reads the documents of a file in order; skips empty ones.
pub(crate) fn documents(file: &[u8]) -> Result<Vec<Value>, YamlError> {
    olm_yaml::documents(file, &LIMITS)
}

/// Reads the first document of a file; an empty file is null.
pub(crate) fn document(file: &[u8]) -> Result<Value, YamlError> {
    olm_yaml::document(file, &LIMITS)
}

/// Returns the first few keys of a file that are repeated in one mapping.
pub(crate) fn repeated_keys(file: &[u8]) -> Vec<RepeatedKey> {
    olm_yaml::repeated_keys(file, &LIMITS)
}
