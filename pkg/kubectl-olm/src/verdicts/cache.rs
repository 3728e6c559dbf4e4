//! Verdicts in the user's cache, by the digests of both bundles.

use std::fs;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use olm_graph::EdgeVerdict;
use sha2::{Digest as _, Sha256};

use crate::source::cache_dir;

/// Version of the rules and of the form of a verdict; raised if one of them changes.
const FORM: &str = concat!("2 ", env!("CARGO_PKG_VERSION"));
/// Maximum size of an entry, in bytes.
const ENTRY_LIMIT: u64 = 1 << 20;

/// Cache of verdicts. A failed read is a miss, and a failed write is not reported: the cache only saves time.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the cache of the user.
    pub(super) fn open() -> Self {
        Self {
            dir: cache_dir().join("verdicts"),
        }
    }

    fn path(&self, from: &str, to: &str) -> PathBuf {
        let key = Sha256::digest(format!("{FORM}\n{from}\n{to}"));
        self.dir.join(format!("{}.json", HEXLOWER.encode(&key)))
    }

    /// Returns the verdict on an upgrade between two digests.
    pub(super) fn get(&self, from: &str, to: &str) -> Option<EdgeVerdict> {
        let path = self.path(from, to);
        if fs::metadata(&path).ok()?.len() > ENTRY_LIMIT {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Keeps a verdict.
    pub(super) fn put(&self, from: &str, to: &str, verdict: &EdgeVerdict) {
        let write = || {
            fs::create_dir_all(&self.dir)?;
            let file = tempfile::NamedTempFile::new_in(&self.dir)?;
            serde_json::to_writer(&file, verdict)?;
            // A rename: other processes read whole entries only.
            file.persist(self.path(from, to)).map_err(std::io::Error::from)
        };
        if let Err(error) = write() {
            tracing::debug!(%error, "a verdict cannot be cached");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_both_digests() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache {
            dir: dir.path().join("verdicts"),
        };
        let verdict = EdgeVerdict {
            findings: 3,
            ..EdgeVerdict::default()
        };
        assert_eq!(cache.get("a", "b"), None);
        cache.put("a", "b", &verdict);
        assert_eq!(cache.get("a", "b"), Some(verdict));
        assert_eq!(cache.get("b", "a"), None);
        fs::write(cache.path("a", "b"), "broken").unwrap();
        assert_eq!(cache.get("a", "b"), None);
    }
}
