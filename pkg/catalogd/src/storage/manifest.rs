//! What a generation says about itself: `manifest.json`, written last.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use super::StorageError;

/// The layout this build reads and writes. Another number means: store again.
const FORMAT: u32 = 2;
/// Longest manifest that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Where content comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The reference as the catalog's spec has it.
    pub requested: String,
    /// What it resolved to, `<repository>@<algorithm>:<digest>`.
    pub resolved: String,
    /// When the image was unpacked, seconds since the Unix epoch.
    pub unpacked_at: i64,
}

/// How many objects a catalog has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All of them.
    pub metas: u64,
    /// Of schema `olm.package`.
    pub packages: u64,
    /// Of schema `olm.channel`.
    pub channels: u64,
    /// Of schema `olm.bundle`.
    pub bundles: u64,
}

/// Size and digest of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileInfo {
    pub(super) size: u64,
    pub(super) sha256: String,
}

/// What is known of a generation without opening its other files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) format: u32,
    /// Where the content comes from.
    pub origin: Origin,
    /// SHA-256 of `catalog.jsonl`, hexadecimal.
    pub digest: String,
    /// How many objects it has.
    pub counts: Counts,
    /// When this content was first stored, seconds since the Unix epoch: HTTP's `Last-Modified`.
    pub stored_at: i64,
    pub(super) files: BTreeMap<String, FileInfo>,
}

impl Manifest {
    pub(super) fn new(
        origin: Origin,
        counts: Counts,
        stored_at: i64,
        digest: String,
        files: BTreeMap<String, FileInfo>,
    ) -> Self {
        Self {
            format: FORMAT,
            origin,
            digest,
            counts,
            stored_at,
            files,
        }
    }

    /// Size of a file of the generation in bytes, 0 when there is no such file.
    pub(super) fn size(&self, file: &str) -> u64 {
        self.files.get(file).map_or(0, |info| info.size)
    }

    pub(super) fn read(path: &Path) -> Result<Self, StorageError> {
        let damaged = |what| StorageError::Damaged {
            path: path.to_owned(),
            what,
        };
        let size = std::fs::metadata(path)
            .map_err(StorageError::io("read", path))?
            .len();
        if size > MAX_BYTES {
            return Err(damaged("the manifest is too long"));
        }
        let bytes = std::fs::read(path).map_err(StorageError::io("read", path))?;
        let manifest: Self =
            serde_json::from_slice(&bytes).map_err(|_| damaged("the manifest is not readable"))?;
        if manifest.format == FORMAT {
            Ok(manifest)
        } else {
            Err(damaged("the layout is another version's"))
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}
