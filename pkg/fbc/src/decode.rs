//! Reading a catalog file as a stream of metas.
//!
//! The text of one meta is cut out first, within the limits, and read then: memory is bounded by the largest.

use crate::error::DecodeError;
use crate::{Meta, canonical, json};
use olm_yaml::{Frame, Frames};
use serde_json::Value;
use std::io::Read;

/// Limits on a catalog file. Catalogs are foreign, so every file is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest single meta, in bytes of its source. The values of a YAML document may take twice as much memory, but no more
    /// than 32 times its own text and 4 MiB.
    pub max_meta_bytes: usize,
    /// Deepest nesting of a meta; never more than [`olm_yaml::Limits::DEEPEST`].
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

/// Memory that the values of any YAML document may take, in bytes.
const LEAST_MEMORY: usize = 4 << 20;
/// Ratio of the memory of a YAML document's values to the length of its text, beyond [`LEAST_MEMORY`]. Short keys and values,
/// the most costly that people write, take 25 times their text.
const MEMORY_RATIO: usize = 32;

/// Reads the metas of one catalog file, JSON values one after another or YAML documents; see [`olm_yaml::Frames`].
///
/// No more than one meta is in memory at a time. The iterator ends after the first error. A YAML document
/// without any content, such as a comment before the first `---`, is no meta.
pub fn decode<R: Read>(reader: R, limits: &Limits) -> Decoder<R> {
    let text_limits = olm_yaml::Limits {
        max_bytes: limits.max_meta_bytes,
        max_depth: limits.max_depth,
        max_memory: limits.max_meta_bytes.saturating_mul(2).max(LEAST_MEMORY),
    };
    Decoder {
        frames: Frames::new(reader, text_limits),
        text_limits,
        max_documents: limits.max_documents,
        documents: 0,
        no_json: None,
        ended: false,
    }
}

/// Decodes like [`decode`], and passes the line, from 1, at which each meta starts. [`Decoder::line`] returns the line of an
/// error.
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

/// The iterator of [`decode`].
#[derive(Debug)]
pub struct Decoder<R> {
    frames: Frames<R>,
    text_limits: olm_yaml::Limits,
    max_documents: usize,
    documents: usize,
    /// Fault of the current document as JSON, while it is tried as YAML.
    no_json: Option<DecodeError>,
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
            let Some(frame) = self.frames.next()? else {
                return Ok(None);
            };
            let fields = match frame {
                Frame::Json(text) => match json::fields(text) {
                    Ok(fields) => fields,
                    Err(error) => {
                        // Braces speak for JSON, so that its fault tells more.
                        let braces = text.starts_with(b"{");
                        if !self.frames.retry_as_yaml()? {
                            return Err(error);
                        }
                        self.no_json = braces.then_some(error);
                        continue;
                    }
                },
                Frame::Yaml(text) => match olm_yaml::document(text, &limits_of(text, &self.text_limits))? {
                    Value::Null => continue,
                    Value::Object(fields) => fields
                        .into_iter()
                        .map(|(key, value)| (key, canonical::text(&value)))
                        .collect(),
                    _ => return Err(DecodeError::NotAnObject),
                },
            };
            self.no_json = None;
            if self.documents >= self.max_documents {
                return Err(DecodeError::TooMany {
                    limit: self.max_documents,
                });
            }
            let meta = canonical::meta(fields)?;
            self.documents += 1;
            return Ok(Some(meta));
        }
    }
}

/// The limits of one YAML document: a small text has no claim to the memory of a large one.
fn limits_of(text: &[u8], limits: &olm_yaml::Limits) -> olm_yaml::Limits {
    let claim = text
        .len()
        .saturating_mul(MEMORY_RATIO)
        .saturating_add(LEAST_MEMORY);
    olm_yaml::Limits {
        max_memory: limits.max_memory.min(claim),
        ..*limits
    }
}

impl<R: Read> Iterator for Decoder<R> {
    type Item = Result<Meta, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let document = self.documents + 1;
        let next = self
            .advance()
            .map_err(|fault| match self.no_json.take().unwrap_or(fault) {
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
