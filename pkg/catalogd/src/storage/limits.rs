//! What a catalog may cost to store. Everything in it is foreign, and each cap has its own message.

use olm_catalog_files::WalkLimits;

/// Deepest nesting of an object that can be read at all, see [`olm_fbc::Limits`].
const DEEPEST: usize = 120;

/// Caps on one catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of all its objects as they are served.
    pub content: u64,
    /// Most objects.
    pub objects: u32,
    /// Most bytes of one object as it is written. The values of a YAML document may take twice as much memory, aliases
    /// included.
    pub object: usize,
    /// Deepest nesting of an object.
    pub depth: usize,
    /// Its files and folders.
    pub tree: WalkLimits,
}

impl Default for Limits {
    /// 8 GiB, four million objects, of each 32 MiB and 100 levels.
    fn default() -> Self {
        Self {
            content: 8 * 1024 * 1024 * 1024,
            objects: 4_000_000,
            object: 32 * 1024 * 1024,
            depth: 100,
            tree: WalkLimits::default(),
        }
    }
}

impl Limits {
    /// What one file of the catalog may cost.
    pub(super) fn of_a_file(&self) -> olm_fbc::Limits {
        olm_fbc::Limits {
            max_meta_bytes: self.object,
            max_depth: self.depth.min(DEEPEST),
            max_documents: usize::try_from(self.objects).unwrap_or(usize::MAX),
        }
    }
}
