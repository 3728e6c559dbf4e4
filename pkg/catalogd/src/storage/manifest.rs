//! `manifest.json` of a generation, written last.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use super::StorageError;

/// Version of the layout. Content with another version is stored again.
const FORMAT: u32 = 2;
/// Maximum size of a manifest, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Source of the content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Reference in the catalog's spec.
    pub requested: String,
    /// Resolved reference, `<repository>@<algorithm>:<digest>`.
    pub resolved: String,
    /// Time at which the image was unpacked, in seconds since the Unix epoch.
    pub unpacked_at: i64,
    /// Fingerprint of the signature policy whose signatures were verified; `None` if it required none, and in stores of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
}

/// Numbers of a catalog's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Objects of all schemas.
    pub metas: u64,
    /// Objects of schema `olm.package`.
    pub packages: u64,
    /// Objects of schema `olm.channel`.
    pub channels: u64,
    /// Objects of schema `olm.bundle`.
    pub bundles: u64,
}

/// Size and digest of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileInfo {
    pub(super) size: u64,
    pub(super) sha256: String,
}

/// Description of a generation, readable without its other files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) format: u32,
    /// Source of the content.
    pub origin: Origin,
    /// SHA-256 of `catalog.jsonl`, hexadecimal.
    pub digest: String,
    /// Numbers of objects.
    pub counts: Counts,
    /// Time at which this content was first stored, in seconds since the Unix epoch: HTTP's `Last-Modified`.
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

    /// Returns the size of a file in bytes, 0 if the generation has no such file.
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
            return Err(damaged("the manifest is too large"));
        }
        let bytes = std::fs::read(path).map_err(StorageError::io("read", path))?;
        let manifest: Self =
            serde_json::from_slice(&bytes).map_err(|_| damaged("the manifest cannot be decoded"))?;
        if manifest.format == FORMAT {
            Ok(manifest)
        } else {
            Err(damaged("its layout has another version"))
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}
