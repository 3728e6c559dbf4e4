//! YAML files of a bundle.

use olm_yaml::{Limits, RepeatedKey, YamlError};
use serde_json::Value;

/// Maximum memory of the values of all manifests, in bytes. The largest real bundle takes 22 MB.
pub(crate) const MAX_MEMORY: usize = 64 << 20;

/// Limits of a file; the largest real manifest has 2.5 MB.
const LIMITS: Limits = Limits {
    max_bytes: 16 << 20,
    max_depth: Limits::DEEPEST,
    max_memory: MAX_MEMORY,
};

/// Reads the documents of a file in order; skips empty ones. Their values take at most `memory` bytes.
pub(crate) fn documents(file: &[u8], memory: usize) -> Result<Vec<Value>, YamlError> {
    let limits = Limits {
        max_memory: memory,
        ..LIMITS
    };
    olm_yaml::documents(file, &limits)
}

/// Reads the first document of a file; an empty file is null.
pub(crate) fn document(file: &[u8]) -> Result<Value, YamlError> {
    olm_yaml::document(file, &LIMITS)
}

/// Returns the first few keys of a file that are repeated in one mapping.
pub(crate) fn repeated_keys(file: &[u8]) -> Vec<RepeatedKey> {
    olm_yaml::repeated_keys(file, &LIMITS)
}
