//! Limits on a stored catalog. Its content is untrusted; each limit has its own message.

use olm_catalog_files::WalkLimits;

/// Deepest nesting of an object that [`olm_fbc::Limits`] allows.
const DEEPEST: usize = 120;

/// Limits on one catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum total size of its objects as they are served, in bytes.
    pub content: u64,
    /// Maximum number of objects.
    pub objects: u32,
    /// Maximum size of one object as written and as served, in bytes. The values of a YAML document may take three times
    /// as much memory, aliases included.
    pub object: usize,
    /// Maximum nesting of an object.
    pub depth: usize,
    /// Limits on its files and folders.
    pub tree: WalkLimits,
}

impl Default for Limits {
    /// Returns 8 GiB, four million objects, 16 MiB and 100 levels per object.
    fn default() -> Self {
        Self {
            content: 8 * 1024 * 1024 * 1024,
            objects: 4_000_000,
            object: 16 * 1024 * 1024,
            depth: 100,
            tree: WalkLimits::default(),
        }
    }
}

impl Limits {
    /// Returns the limits of one file of the catalog.
    pub(super) fn per_file(&self) -> olm_fbc::Limits {
        olm_fbc::Limits {
            max_meta_bytes: self.object,
            max_depth: self.depth.min(DEEPEST),
            max_documents: usize::try_from(self.objects).unwrap_or(usize::MAX),
        }
    }
}
