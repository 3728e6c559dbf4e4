//! Cutting the text of one meta after another out of a catalog file.

use crate::decode::{DecodeError, Limits};
use std::io::{BufRead, BufReader, Read};

/// How much is read at a time, in bytes.
const CHUNK: usize = 64 * 1024;

/// The text of one meta.
pub(crate) enum Frame<'a> {
    /// One JSON value.
    Json(&'a [u8]),
    /// One YAML document.
    Yaml(&'a [u8]),
}

/// Cuts a file into frames.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    reader: BufReader<R>,
    limits: Limits,
    /// Whether the file is JSON; unknown before the first byte that is no space.
    json: Option<bool>,
    frame: Vec<u8>,
    /// The line where the frame starts.
    line: u64,
    /// The line of the next byte to read.
    ahead: u64,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(reader: R, limits: Limits) -> Self {
        Self {
            reader: BufReader::with_capacity(CHUNK, reader),
            limits,
            json: None,
            frame: Vec::new(),
            line: 1,
            ahead: 1,
        }
    }

    /// The line where the last frame starts, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The next frame, or none at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, DecodeError> {
        self.frame.clear();
        self.line = self.ahead;
        let json = match self.json {
            Some(json) => json,
            None => match self.leading_spaces()? {
                None => return Ok(None),
                Some(first) => *self.json.insert(first == b'{'),
            },
        };
        Ok(if json {
            self.json_value()?.then_some(Frame::Json(&self.frame))
        } else {
            self.yaml_document()?.then_some(Frame::Yaml(&self.frame))
        })
    }

    fn chunk(&mut self) -> Result<&[u8], DecodeError> {
        self.reader
            .fill_buf()
            .map_err(|source| DecodeError::Read { source })
    }

    /// Passes the lines of white space at the start, but not the indentation of the first line with
    /// content, which YAML needs.
    fn leading_spaces(&mut self) -> Result<Option<u8>, DecodeError> {
        let limit = self.limits.max_meta_bytes;
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let found = chunk.iter().position(|byte| !byte.is_ascii_whitespace());
            let first = found.and_then(|at| chunk.get(at).copied());
            let passed = chunk.get(..found.unwrap_or(chunk.len())).unwrap_or_default();
            let line = passed
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let indent = passed.get(line..).unwrap_or_default().to_vec();
            let count = passed.len();
            self.ahead += lines(passed);
            if line > 0 {
                self.frame.clear();
            }
            self.line = self.ahead;
            self.frame.extend(indent);
            self.reader.consume(count);
            if self.frame.len() > limit {
                return Err(DecodeError::TooLarge { limit });
            }
            if first.is_some() {
                return Ok(first);
            }
        }
    }

    /// Reads the next JSON value into the frame; false at the end of the file.
    fn json_value(&mut self) -> Result<bool, DecodeError> {
        let limits = self.limits;
        let mut scan = Scan::default();
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(source) => return Err(DecodeError::Read { source }),
            };
            if chunk.is_empty() {
                return if scan.started {
                    Err(DecodeError::Truncated)
                } else {
                    Ok(false)
                };
            }
            let used = scan.advance(chunk);
            let (taken, skipped) = (chunk.get(..used).unwrap_or_default(), scan.skipped);
            let (before, value) = taken.split_at_checked(skipped).unwrap_or_default();
            if !before.is_empty() {
                self.ahead += lines(before);
                self.line = self.ahead;
            }
            self.ahead += lines(value);
            self.frame.extend_from_slice(value);
            scan.skipped = 0;
            self.reader.consume(used);
            if self.frame.len() > limits.max_meta_bytes {
                return Err(DecodeError::TooLarge {
                    limit: limits.max_meta_bytes,
                });
            }
            if scan.deepest > limits.max_depth {
                return Err(DecodeError::TooDeep {
                    limit: limits.max_depth,
                });
            }
            if scan.unexpected {
                return Err(DecodeError::NotAnObject);
            }
            if scan.finished {
                return Ok(true);
            }
        }
    }

    /// Reads up to the next `---` line into the frame; false at the end of the file.
    fn yaml_document(&mut self) -> Result<bool, DecodeError> {
        let limit = self.limits.max_meta_bytes;
        let mut placed = false;
        loop {
            let start = self.frame.len();
            // One byte over the limit tells a document that fits from one that does not.
            let room = u64::try_from(limit.saturating_sub(start).saturating_add(1)).unwrap_or(u64::MAX);
            let count = self
                .reader
                .by_ref()
                .take(room)
                .read_until(b'\n', &mut self.frame)
                .map_err(|source| DecodeError::Read { source })?;
            if count == 0 {
                return Ok(start > 0);
            }
            let line = self.frame.get(start..).unwrap_or_default();
            let ends = is_separator(line);
            if !placed && !ends && has_content(line) {
                placed = true;
                self.line = self.ahead;
            }
            // A read that the limit cuts short ends in an error, so that only whole lines count on.
            self.ahead += 1;
            if ends {
                self.frame.truncate(start);
                if start > 0 {
                    return Ok(true);
                }
            } else if self.frame.len() > limit {
                return Err(DecodeError::TooLarge { limit });
            }
        }
    }
}

/// Whether `line` is neither blank nor a comment.
fn has_content(line: &[u8]) -> bool {
    !matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// How many lines end in `bytes`.
fn lines(bytes: &[u8]) -> u64 {
    let count = memchr::memchr_iter(b'\n', bytes).count();
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Whether `line` ends a document: three dashes, then nothing but space or a comment.
fn is_separator(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| {
        let rest = rest.trim_ascii();
        rest.is_empty() || rest.starts_with(b"#")
    })
}

/// Finds the end of a JSON object without reading what is in it.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent marks of one automaton")]
struct Scan {
    started: bool,
    finished: bool,
    /// Something else than an object starts.
    unexpected: bool,
    in_string: bool,
    escaped: bool,
    depth: usize,
    deepest: usize,
    /// How many bytes of the chunk stand before the object.
    skipped: usize,
}

impl Scan {
    /// Goes through `chunk` up to the end of the object; says how many bytes were used.
    ///
    /// Most of a catalog is text and icons, so strings are passed many bytes at a time.
    fn advance(&mut self, chunk: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if self.in_string {
                at = self.pass_string(chunk, at);
                continue;
            }
            at += 1;
            match byte {
                b'"' if self.started => self.in_string = true,
                b'{' | b'[' if self.started || byte == b'{' => {
                    self.started = true;
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b'}' | b']' if self.started => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.finished = true;
                        return at;
                    }
                }
                _ if self.started => {}
                _ if byte.is_ascii_whitespace() => self.skipped = at,
                _ => {
                    self.unexpected = true;
                    return at;
                }
            }
        }
        chunk.len()
    }

    /// Passes a string from `at` on, up to its end or that of the chunk; says where that is.
    fn pass_string(&mut self, chunk: &[u8], mut at: usize) -> usize {
        if self.escaped {
            self.escaped = false;
            at += 1;
        }
        while let Some(rest) = chunk.get(at..) {
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return chunk.len();
            };
            at += found;
            if chunk.get(at) == Some(&b'"') {
                self.in_string = false;
                return at + 1;
            }
            // The backslash and what it escapes, which may be in the next chunk.
            at += 2;
            self.escaped = at > chunk.len();
        }
        chunk.len()
    }
}
