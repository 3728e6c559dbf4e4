//! Decoder of a catalog file into a stream of metas.
//!
//! The text of a meta is cut out within the limits and then parsed: memory is bounded by the largest meta.

use crate::canonical::{self, Fields};
use crate::error::DecodeError;
use crate::{Meta, json};
use olm_yaml::{Frame, Frames};
use serde_json::{Map, Value};
use std::io::Read;

/// Limits on a catalog file. Catalogs are untrusted, so every file is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a meta, in bytes of its source and of its canonical form. The values of a YAML document may take
    /// three times as much memory, but no more than 32 times its own text and 4 MiB.
    pub max_meta_bytes: usize,
    /// Maximum nesting of a meta; never more than [`olm_yaml::Limits::DEEPEST`].
    pub max_depth: usize,
    /// Maximum number of metas in one file.
    pub max_documents: usize,
}

impl Default for Limits {
    /// Returns 16 MiB, 100 levels, a million metas. The largest real meta has 2.5 MB.
    fn default() -> Self {
        Self {
            max_meta_bytes: 16 * 1024 * 1024,
            max_depth: 100,
            max_documents: 1_000_000,
        }
    }
}

/// Memory that the values of any YAML document may take, in bytes.
const MIN_YAML_MEMORY: usize = 4 << 20;
/// Ratio of the memory of a YAML document's values to the length of its text, beyond [`MIN_YAML_MEMORY`]. Short keys and values,
/// the most costly that people write, take 25 times their text.
const YAML_MEMORY_RATIO: usize = 32;

/// Decodes the metas of one catalog file: consecutive JSON values or YAML documents; see [`olm_yaml::Frames`].
///
/// At most one meta is in memory. The iterator ends after the first error. A YAML document without content, such as a
/// comment before the first `---`, is not a meta.
pub fn decode<R: Read>(reader: R, limits: &Limits) -> Decoder<R> {
    let text_limits = olm_yaml::Limits {
        max_bytes: limits.max_meta_bytes,
        max_depth: limits.max_depth,
        max_memory: limits.max_meta_bytes.saturating_mul(3).max(MIN_YAML_MEMORY),
    };
    Decoder {
        frames: Frames::new(reader, text_limits),
        text_limits,
        max_documents: limits.max_documents,
        documents: 0,
        package: None,
        json_error: None,
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

/// Iterator returned by [`decode`].
#[derive(Debug)]
pub struct Decoder<R> {
    frames: Frames<R>,
    text_limits: olm_yaml::Limits,
    max_documents: usize,
    documents: usize,
    /// The package whose metas are wanted; all if absent.
    package: Option<String>,
    /// JSON error of the current document, while it is tried as YAML.
    json_error: Option<DecodeError>,
    ended: bool,
}

impl<R: Read> Decoder<R> {
    /// Leaves out metas of other packages, which saves most of the time if they are JSON and begin with `schema`, `name` and `package`, as
    /// `opm` writes them. What follows is only checked to be JSON then. Other metas of other packages may still come.
    #[must_use]
    pub fn of_package(mut self, package: &str) -> Self {
        self.package = Some(package.to_owned());
        self
    }

    /// Returns the line, from 1, where the last returned meta starts; after an error, where the defective meta starts.
    pub fn line(&self) -> u64 {
        self.frames.line()
    }

    fn advance(&mut self) -> Result<Option<Meta>, DecodeError> {
        loop {
            let Some(frame) = self.frames.next()? else {
                return Ok(None);
            };
            let fields = match frame {
                Frame::Json(text) => {
                    match json::fields(text, self.text_limits.max_bytes, self.package.as_deref()) {
                        Ok(fields) => fields,
                        Err(error) => {
                            // Braces indicate JSON, so the JSON error is more helpful.
                            let braces = text.starts_with(b"{");
                            if !self.frames.retry_as_yaml()? {
                                return Err(error);
                            }
                            self.json_error = braces.then_some(error);
                            continue;
                        }
                    }
                }
                Frame::Yaml(text) => match olm_yaml::document(text, &limits_of(text, &self.text_limits))? {
                    Value::Null => continue,
                    Value::Object(members) => {
                        self.frames.release();
                        Some(yaml_fields(members)?)
                    }
                    _ => return Err(DecodeError::NotAnObject),
                },
            };
            self.json_error = None;
            self.frames.release();
            if self.documents >= self.max_documents {
                return Err(DecodeError::TooMany {
                    limit: self.max_documents,
                });
            }
            let meta = fields.as_ref().map(canonical::meta).transpose()?;
            self.documents += 1;
            if meta.is_some() {
                return Ok(meta);
            }
        }
    }
}

/// Returns the fields of a YAML document. Each value is dropped as soon as it is written.
fn yaml_fields(members: Map<String, Value>) -> Result<Fields, DecodeError> {
    let mut fields = Fields::default();
    for (key, value) in members {
        canonical::write(&value, fields.buffer());
        fields.add(key)?;
    }
    Ok(fields)
}

/// Returns the limits of one YAML document: a small text may not use the memory of a large one.
fn limits_of(text: &[u8], limits: &olm_yaml::Limits) -> olm_yaml::Limits {
    let claim = text
        .len()
        .saturating_mul(YAML_MEMORY_RATIO)
        .saturating_add(MIN_YAML_MEMORY);
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
        let next = self
            .advance()
            .map_err(|fault| match self.json_error.take().unwrap_or(fault) {
                fault @ (DecodeError::Read { .. } | DecodeError::TooMany { .. }) => fault,
                fault => DecodeError::Document {
                    document: self.documents + 1,
                    fault: Box::new(fault),
                },
            });
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}
