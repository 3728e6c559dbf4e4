//! Limits of the cost of a text.

/// Limits of a document. Texts are untrusted, so each limit is checked before its cost arises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a document, in bytes.
    pub max_bytes: usize,
    /// Maximum nesting, in levels; capped at [`Limits::DEEPEST`].
    pub max_depth: usize,
    /// Maximum memory of the values of a document, in bytes, with every alias expanded.
    pub max_memory: usize,
}

impl Limits {
    /// Upper bound of [`Limits::max_depth`]: below the recursion limit of the JSON reader, which is 128 levels.
    pub const DEEPEST: usize = 120;

    pub(crate) fn depth(&self) -> usize {
        self.max_depth.min(Self::DEEPEST)
    }
}

impl Default for Limits {
    /// 32 MiB of text, 100 levels, 64 MiB of values. The largest real document has 2.5 MB.
    fn default() -> Self {
        Self {
            max_bytes: 32 << 20,
            max_depth: 100,
            max_memory: 64 << 20,
        }
    }
}
