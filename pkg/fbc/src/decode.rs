//! Reading a catalog file as a stream of metas.
//!
//! A file that starts with `{` holds JSON values one after another, any other YAML documents. Either way the
//! text of one meta is cut out first, within the limits, and read then: memory is bounded by the largest.

use crate::frames::{Frame, Frames};
use crate::{Meta, canonical, json, yaml};
use std::io::Read;

/// What a catalog file may cost. Everything in it is foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest single meta, in bytes of its source; also what the aliases of a YAML document may expand to.
    pub max_meta_bytes: usize,
    /// Deepest nesting of a meta; never more than 120.
    pub max_depth: usize,
    /// Most metas in one file.
    pub max_documents: usize,
}

impl Default for Limits {
    /// 32 MiB, 100 levels, a million metas.
    fn default() -> Self {
        Self {
            max_meta_bytes: 32 * 1024 * 1024,
            max_depth: 100,
            max_documents: 1_000_000,
        }
    }
}

/// Why a catalog file cannot be read. `document` counts from 1.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The reader failed.
    #[error("cannot read the catalog file")]
    Read {
        /// The reader's error.
        source: std::io::Error,
    },
    /// A meta is longer than the limit.
    #[error("a meta is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A meta is nested deeper than the limit.
    #[error("a meta is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// There are more metas than the limit.
    #[error("the file has more than {limit} metas")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Aliases expand to more than the limit.
    #[error("the aliases of a YAML document expand to more than {limit} bytes")]
    AliasBomb {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The file ends inside a JSON value.
    #[error("the file ends inside a JSON value")]
    Truncated,
    /// A value is not JSON.
    #[error("malformed JSON")]
    Json {
        /// What is wrong, and where in the value.
        source: serde_json::Error,
    },
    /// A document is not YAML.
    #[error("malformed YAML: {reason}")]
    Yaml {
        /// What is wrong, and where in the document.
        reason: String,
    },
    /// A YAML document is not UTF-8.
    #[error("a YAML document is not UTF-8")]
    Encoding {
        /// Where.
        source: std::str::Utf8Error,
    },
    /// A meta is no object.
    #[error("a meta must be an object")]
    NotAnObject,
    /// Keys that differ in case only.
    #[error("duplicate keys for key {}: [{}]", olm_version::go_quote(key), keys.join(" "))]
    DuplicateKeys {
        /// The key they share when case does not count.
        key: String,
        /// The keys as written.
        keys: Vec<String>,
    },
    /// `schema`, `package` or `name` is no string.
    #[error(
        "expected value for key {} to be a string, got {found}",
        olm_version::go_quote(key)
    )]
    NotAString {
        /// Which one.
        key: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The fault is in this meta of the file.
    #[error("meta {document} of the file")]
    Document {
        /// Which meta, from 1.
        document: usize,
        /// What is wrong with it, which has its own source.
        #[source]
        fault: Box<DecodeError>,
    },
}

impl DecodeError {
    /// Whether the same bytes fail again.
    pub fn terminal(&self) -> bool {
        !matches!(self, Self::Read { .. })
    }
}

/// Reads the metas of one catalog file, JSON values one after another or YAML documents.
///
/// No more than one meta is in memory at a time. The iterator ends after the first error. A YAML document
/// without any content, such as a comment before the first `---`, is no meta.
pub fn decode<R: Read>(reader: R, limits: &Limits) -> Decoder<R> {
    let limits = Limits {
        max_depth: limits.max_depth.min(MAX_DEPTH),
        ..*limits
    };
    Decoder {
        frames: Frames::new(reader, limits),
        limits,
        documents: 0,
        ended: false,
    }
}

/// Like [`decode`], with the line, from 1, where each meta starts. The line of an error is told by
/// [`Decoder::line`].
pub fn decode_located<R: Read>(
    reader: R,
    limits: &Limits,
) -> impl Iterator<Item = Result<(u64, Meta), DecodeError>> {
    let mut decoder = decode(reader, limits);
    std::iter::from_fn(move || {
        let next = decoder.next()?;
        Some(next.map(|meta| (decoder.line(), meta)))
    })
}

/// Below the recursion limit of the JSON reader.
const MAX_DEPTH: usize = 120;

/// The iterator of [`decode`].
#[derive(Debug)]
pub struct Decoder<R> {
    frames: Frames<R>,
    limits: Limits,
    documents: usize,
    ended: bool,
}

impl<R: Read> Decoder<R> {
    /// The line, from 1, where the meta that was returned last starts; after an error, where the meta at
    /// fault starts.
    pub fn line(&self) -> u64 {
        self.frames.line()
    }

    fn advance(&mut self) -> Result<Option<Meta>, DecodeError> {
        loop {
            let fields = match self.frames.next()? {
                None => return Ok(None),
                Some(Frame::Json(text)) => Some(json::fields(text)?),
                Some(Frame::Yaml(text)) => yaml::fields(text, &self.limits)?.map(|fields| {
                    let canonical = |(key, value)| (key, canonical::text(&value));
                    fields.into_iter().map(canonical).collect()
                }),
            };
            let Some(fields) = fields else { continue };
            if self.documents >= self.limits.max_documents {
                return Err(DecodeError::TooMany {
                    limit: self.limits.max_documents,
                });
            }
            let meta = canonical::meta(fields)?;
            self.documents += 1;
            return Ok(Some(meta));
        }
    }
}

impl<R: Read> Iterator for Decoder<R> {
    type Item = Result<Meta, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let document = self.documents + 1;
        let next = self.advance().map_err(|fault| match fault {
            fault @ (DecodeError::Read { .. } | DecodeError::TooMany { .. }) => fault,
            fault => DecodeError::Document {
                document,
                fault: Box::new(fault),
            },
        });
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}
