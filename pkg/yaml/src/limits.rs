//! Limits of what one text may cost.

/// Limits of a document. Texts are foreign, so each limit is checked before its cost arises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest document of a stream, in bytes.
    pub max_bytes: usize,
    /// Deepest nesting, in levels. At most [`Limits::DEEPEST`] counts.
    pub max_depth: usize,
    /// Memory that the values of one document may take, in bytes, with every alias expanded.
    pub max_memory: usize,
}

impl Limits {
    /// Deepest nesting that any limit allows: below the recursion limit of the JSON reader, which is 128 levels.
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
