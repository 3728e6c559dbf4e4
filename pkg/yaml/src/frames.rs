//! Documents of a stream, cut out one after another.
//!
//! A stream that begins with `{` holds JSON values one after another, any other stream YAML documents. A JSON stream
//! whose first or second value is no JSON goes on as YAML, as in `k8s.io/apimachinery`.

use std::io::{BufRead, Read};

use crate::json_extent::JsonExtent;
use crate::source::Source;
use crate::{Limits, YamlError};

/// Bytes in which the first brace of a JSON stream stands.
const GUESS: usize = 4096;
/// Bytes that must be left where a JSON stream goes on as YAML. Go's reader wants as many.
const LEAST: usize = 4;
/// Capacity in bytes of a frame's buffer that is used again.
const KEPT_FRAME: usize = 1 << 20;
/// Marks the end of a YAML document at the start of a line.
const SEPARATOR: &[u8] = b"---";

/// The text of one document.
#[derive(Debug)]
pub enum Frame<'a> {
    /// One JSON value. A value that turns out not to be JSON may be YAML: see [`Frames::retry_as_yaml`].
    Json(&'a [u8]),
    /// One YAML document, possibly without content.
    Yaml(&'a [u8]),
}

/// Kind of the documents of a stream.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Not known: the stream is not read yet.
    Unknown,
    /// JSON values; the number of those up to the current frame.
    Json(u32),
    Yaml,
}

/// Cuts a stream into frames. Only one frame is in memory.
#[derive(Debug)]
pub struct Frames<R> {
    source: Source<R>,
    limits: Limits,
    mode: Mode,
    frame: Vec<u8>,
    /// White space before a JSON frame, from the first line break on: it counts when the frame turns out to be YAML.
    space: Vec<u8>,
    /// Line where the frame starts, and where its content does.
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
    /// [`YamlError`] if the source fails, if a frame exceeds a limit, or if a line begins with `---` and goes on.
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

    /// Takes the last frame back and goes on as YAML, after a JSON frame that is no JSON. Returns false where the
    /// stream is certainly JSON, since two values of it were, and where it all but ends.
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

    /// Looks for the first byte that is no white space.
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
            // A value that the stream cuts short is found out by its reader.
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
            // One byte over the limit tells a document that fits from one that does not.
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
            // The first separator of a frame opens it, the next one ends it.
            if separates && start > 0 {
                self.frame.truncate(start);
                return Ok(true);
            }
        }
    }
}

/// Ends the last line of `frame` by a line feed alone.
fn end_line(frame: &mut Vec<u8>) {
    if frame.ends_with(b"\r\n") {
        frame.truncate(frame.len() - 2);
        frame.push(b'\n');
    } else if !frame.ends_with(b"\n") {
        frame.push(b'\n');
    }
}

/// Reports whether a line is neither blank nor a comment.
fn has_content(line: &[u8]) -> bool {
    !matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}

/// Counts the lines that end in `bytes`.
fn lines(bytes: &[u8]) -> u64 {
    let count = memchr::memchr_iter(b'\n', bytes).count();
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Reports whether a line ends a document. Only white space and a comment may follow the three dashes.
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
