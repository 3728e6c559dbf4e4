//! Sizes, and digests.

use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
pub(crate) use olm_harness::ProcessStats;
use sha2::{Digest as _, Sha256};

/// Returns the total size of all files below a folder, in bytes. Files that vanish meanwhile do not count.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => size_of(&entry.path()),
            Ok(found) if found.is_file() => found.len(),
            _ => 0,
        })
        .sum()
}

/// Returns a number of bytes in MB.
pub(crate) fn megabytes(bytes: u64) -> f64 {
    // The number of whole kilobytes fits in 32 bits, which convert to a float exactly.
    f64::from(u32::try_from(bytes / 1000).unwrap_or(u32::MAX)) / 1e3
}

/// Returns the SHA-256 as hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}
