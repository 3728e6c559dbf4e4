//! Tokens of YAML 1.1.

use crate::cursor::Mark;

/// A token and its start.
#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) mark: Mark,
}

/// Kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    StreamEnd,
    /// `%YAML` with its major and minor version.
    Version(u8, u8),
    /// `%TAG` with its handle and prefix.
    TagPrefix(String, String),
    DocumentStart,
    DocumentEnd,
    BlockSequence,
    BlockMapping,
    /// End of a block collection, at a smaller indentation.
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    /// `-`
    BlockEntry,
    /// `,`
    FlowEntry,
    /// `?`, or the start of a key without `?`, known by its `:`.
    Key,
    /// `:`
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    /// Handle and suffix of a tag; a tag in its full form has no handle.
    Tag(String, String),
    Scalar {
        text: String,
        plain: bool,
    },
}
