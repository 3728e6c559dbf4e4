//! Splitting of a stream into documents.
//!
//! A stream that begins with `{` is a sequence of JSON values, any other stream one of YAML documents. A JSON stream
//! whose first or second value is not JSON continues as YAML, as in `k8s.io/apimachinery`.

use std::io::{BufRead, Read};

use crate::json_extent::JsonExtent;
use crate::source::Source;
use crate::{Limits, YamlError};

/// Number of bytes in which a JSON stream must have its first brace.
const GUESS: usize = 4096;
/// Minimum number of remaining bytes for a JSON stream to continue as YAML, like in Go's reader.
const LEAST: usize = 4;
/// Capacity in bytes of a frame's buffer that is used again.
const KEPT_FRAME: usize = 1 << 20;
/// Marks the end of a YAML document at the start of a line.
const SEPARATOR: &[u8] = b"---";

/// The text of one document.
#[derive(Debug)]
pub enum Frame<'a> {
    /// A JSON value. A value that is not JSON may be YAML: see [`Frames::retry_as_yaml`].
    Json(&'a [u8]),
    /// A YAML document, possibly without content.
    Yaml(&'a [u8]),
}

/// Kind of the documents of a stream.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// The stream is not read yet.
    Unknown,
    /// JSON values; the number of values including the current frame.
    Json(u32),
    Yaml,
}

/// Splits a stream into frames. One frame is in memory at a time.
#[derive(Debug)]
pub struct Frames<R> {
    source: Source<R>,
    limits: Limits,
    mode: Mode,
    frame: Vec<u8>,
    /// White space before a JSON frame, from the first line break on. It is part of the frame if the frame is YAML.
    space: Vec<u8>,
    /// Line where the frame starts, and line where its content starts.
    start: u64,
    line: u64,
    /// Line of the next byte.
    ahead: u64,
}

impl<R: Read> Frames<R> {
    /// Starts at the beginning of a stream.
    pub fn new(reader: R, limits: Limits) -> Self {
        Self {
            source: Source::new(reader),
            limits,
            mode: Mode::Unknown,
            frame: Vec::new(),
            space: Vec::new(),
            start: 1,
            line: 1,
            ahead: 1,
        }
    }

    /// Returns the line, counted from 1, where the content of the last frame starts.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the line, counted from 1, where the last frame starts: before its comments and empty lines.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the next frame, or `None` at the end of the stream.
    ///
    /// # Errors
    /// [`YamlError`] if the source fails, if a frame exceeds a limit, or if other text follows `---` on its line.
    #[expect(clippy::should_implement_trait, reason = "a frame borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, YamlError> {
        let found = match self.mode {
            Mode::Unknown => {
                self.mode = self.guess()?;
                return self.next();
            }
            Mode::Json(before) => {
                self.frame.clear();
                let found = self.json_value()?;
                self.mode = Mode::Json(before + u32::from(found));
                found
            }
            Mode::Yaml => {
                self.frame.clear();
                self.yaml_document()?
            }
        };
        Ok(found.then(|| match self.mode {
            Mode::Yaml => Frame::Yaml(&self.frame),
            _ => Frame::Json(&self.frame),
        }))
    }

    /// Frees the memory of the last frame if it is large, before its value is processed further.
    pub fn release(&mut self) {
        if self.frame.capacity() > KEPT_FRAME {
            self.frame = Vec::new();
        }
    }

    /// Rewinds to the last frame, which is not JSON, and continues as YAML. Returns false if the stream is certainly
    /// JSON, because two of its values were, or if almost no bytes remain.
    ///
    /// # Errors
    /// [`YamlError::Read`] if the source fails.
    pub fn retry_as_yaml(&mut self) -> Result<bool, YamlError> {
        // A number is JSON, even if no float can hold it.
        let number = matches!(self.frame.as_slice(), [b'-' | b'0'..=b'9', .., b'0'..=b'9']);
        if number || !matches!(self.mode, Mode::Json(1 | 2)) {
            return Ok(false);
        }
        let mut text = std::mem::take(&mut self.space);
        let blank_lines = lines(&text).saturating_sub(1);
        let mut frame = std::mem::take(&mut self.frame);
        // Large frames are moved, not copied.
        if text.is_empty() {
            text = frame;
        } else {
            text.append(&mut frame);
        }
        let more = LEAST.saturating_sub(text.len());
        let more = u64::try_from(more).unwrap_or_default();
        let read = self.source.by_ref().take(more).read_to_end(&mut text);
        read.map_err(|source| YamlError::Read { source })?;
        let enough = text.len() >= LEAST;
        // The first line break belongs to the JSON value before it.
        if text.first() == Some(&b'\n') {
            text.remove(0);
        }
        self.mode = Mode::Yaml;
        self.ahead = self.line - blank_lines;
        self.source.unread(text);
        Ok(enough)
    }

    fn chunk(&mut self) -> Result<&[u8], YamlError> {
        self.source
            .fill_buf()
            .map_err(|source| YamlError::Read { source })
    }

    /// Decides the mode by the first byte that is not white space.
    fn guess(&mut self) -> Result<Mode, YamlError> {
        let mut passed = Vec::new();
        loop {
            let chunk = self.chunk()?;
            let found = chunk.iter().position(|byte| !byte.is_ascii_whitespace());
            let json = found.is_some_and(|at| passed.len() + at < GUESS && chunk.get(at) == Some(&b'{'));
            let ended = found.is_some() || chunk.is_empty();
            let count = found.unwrap_or(chunk.len());
            passed.extend_from_slice(chunk.get(..count).unwrap_or_default());
            self.source.consume(count);
            if ended || passed.len() >= GUESS {
                self.source.unread(passed);
                return Ok(if json { Mode::Json(0) } else { Mode::Yaml });
            }
        }
    }

    /// Reads the next JSON value into the frame; returns false at the end of the stream.
    fn json_value(&mut self) -> Result<bool, YamlError> {
        let limits = self.limits;
        let mut scan = JsonExtent::default();
        self.space.clear();
        loop {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(source) => return Err(YamlError::Read { source }),
            };
            // The JSON parser reports a truncated value.
            if chunk.is_empty() {
                return Ok(!self.frame.is_empty());
            }
            let used = scan.advance(chunk);
            let taken = chunk.get(..used).unwrap_or_default();
            let (before, value) = taken.split_at_checked(scan.take_skipped()).unwrap_or_default();
            if self.frame.is_empty() {
                self.ahead += lines(before);
                (self.start, self.line) = (self.ahead, self.ahead);
                let from = if self.space.is_empty() {
                    before
                        .iter()
                        .position(|byte| *byte == b'\n')
                        .unwrap_or(before.len())
                } else {
                    0
                };
                self.space
                    .extend_from_slice(before.get(from..).unwrap_or_default());
            }
            self.ahead += lines(value);
            self.frame.extend_from_slice(value);
            self.source.consume(used);
            if self.frame.len() + self.space.len() > limits.max_bytes {
                return Err(YamlError::TooLarge {
                    limit: limits.max_bytes,
                });
            }
            if scan.deepest() > limits.depth() {
                return Err(YamlError::TooDeep {
                    limit: limits.depth(),
                });
            }
            if scan.finished() {
                return Ok(true);
            }
        }
    }

    /// Reads up to the next separator into the frame; returns false at the end of the stream.
    fn yaml_document(&mut self) -> Result<bool, YamlError> {
        let limit = self.limits.max_bytes;
        let mut placed = false;
        (self.start, self.line) = (self.ahead, self.ahead);
        loop {
            let start = self.frame.len();
            // One byte over the limit shows that a document is too large.
            let room = u64::try_from(limit.saturating_sub(start).saturating_add(1)).unwrap_or(u64::MAX);
            let count = self
                .source
                .by_ref()
                .take(room)
                .read_until(b'\n', &mut self.frame)
                .map_err(|source| YamlError::Read { source })?;
            if count == 0 {
                return Ok(start > 0);
            }
            if self.frame.len() > limit {
                return Err(YamlError::TooLarge { limit });
            }
            end_line(&mut self.frame);
            let line = self.frame.get(start..).unwrap_or_default();
            let separates = is_separator(line)?;
            if !placed && !separates && has_content(line) {
                placed = true;
                self.line = self.ahead;
            }
            self.ahead += 1;
            // The first separator of a frame starts it; the next one ends it.
            if separates && start > 0 {
                self.frame.truncate(start);
                return Ok(true);
            }
        }
    }
}

/// Replaces the line ending of the last line of `frame` with a line feed.
fn end_line(frame: &mut Vec<u8>) {
    if frame.ends_with(b"\r\n") {
        frame.truncate(frame.len() - 2);
        frame.push(b'\n');
    } else if !frame.ends_with(b"\n") {
        frame.push(b'\n');
    }
}

/// Returns true if a line is neither blank nor a comment.
fn has_content(line: &[u8]) -> bool {
    !matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Counts the lines that end in `bytes`.
fn lines(bytes: &[u8]) -> u64 {
    let count = memchr::memchr_iter(b'\n', bytes).count();
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Returns true if a line ends a document. Only white space and a comment may follow the three dashes.
fn is_separator(line: &[u8]) -> Result<bool, YamlError> {
    let Some(rest) = line.strip_prefix(SEPARATOR) else {
        return Ok(false);
    };
    let rest = String::from_utf8_lossy(rest);
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(true);
    }
    let shown: String = rest.chars().take(64).collect();
    Err(YamlError::problem(format!(
        "invalid Yaml document separator: {shown}"
    )))
}
