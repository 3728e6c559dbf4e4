//! Position in a text.

use crate::YamlError;

/// Position: line and column from 0; column and index count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) line: u64,
    pub(crate) column: usize,
    pub(crate) index: usize,
}

/// Reader of a UTF-8 text without NUL; NUL represents the end.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    /// Offset in bytes, at a character boundary.
    at: usize,
    mark: Mark,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        // A second byte order mark at the beginning is ignored, like in Go's reader.
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            text,
            at,
            mark: Mark::default(),
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    pub(crate) fn column(&self) -> usize {
        self.mark.column
    }

    /// Returns the byte at the offset `ahead`, or 0 after the end.
    pub(crate) fn peek(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.at + ahead)
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Returns the offset in bytes, for [`Cursor::since`].
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Returns the text from an offset to the current position.
    pub(crate) fn since(&self, offset: usize) -> &'a str {
        self.text.get(offset..self.at).unwrap_or_default()
    }

    /// Returns the length of the line break at the offset `ahead`, or 0 if there is none. CR LF counts as CR.
    pub(crate) fn line_break(&self, ahead: usize) -> usize {
        match self.peek(ahead) {
            b'\n' | b'\r' => 1,
            // NEL.
            0xc2 if self.peek(ahead + 1) == 0x85 => 2,
            // LINE SEPARATOR and PARAGRAPH SEPARATOR.
            0xe2 if self.peek(ahead + 1) == 0x80 && matches!(self.peek(ahead + 2), 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    /// Returns true if a space or a tab is at the offset `ahead`.
    pub(crate) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), b' ' | b'\t')
    }

    /// Returns true if a line break or the end is at the offset `ahead`.
    pub(crate) fn is_line_end(&self, ahead: usize) -> bool {
        self.peek(ahead) == 0 || self.line_break(ahead) > 0
    }

    /// Returns true if white space or the end is at the offset `ahead`.
    pub(crate) fn is_space_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_line_end(ahead)
    }

    /// Returns the first byte of a `---` or `...` line that begins here.
    pub(crate) fn document_indicator(&self) -> Option<u8> {
        let first = self.peek(0);
        let three = matches!(first, b'-' | b'.') && self.peek(1) == first && self.peek(2) == first;
        (self.mark.column == 0 && three && self.is_space_or_end(3)).then_some(first)
    }

    /// Skips `count` bytes without line breaks.
    pub(crate) fn pass(&mut self, count: usize) {
        let passed = self
            .text
            .as_bytes()
            .get(self.at..self.at + count)
            .unwrap_or_default();
        let characters = passed.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        self.at += passed.len();
        self.mark.index += characters;
        self.mark.column += characters;
    }

    /// Skips a line break and returns its value: a line feed, or the Unicode separator itself. Empty if there is none.
    pub(crate) fn take_break(&mut self) -> &'a str {
        let length = self.line_break(0);
        if length == 0 {
            return "";
        }
        let pair = self.peek(0) == b'\r' && self.peek(1) == b'\n';
        let start = self.at;
        self.at += if pair { 2 } else { length };
        self.mark.index += if pair { 2 } else { 1 };
        self.mark.column = 0;
        self.mark.line += 1;
        if length == 3 { self.since(start) } else { "\n" }
    }

    pub(crate) fn pass_blanks(&mut self) {
        while self.is_blank(0) {
            self.pass(1);
        }
    }

    /// Skips a comment up to the end of its line.
    pub(crate) fn pass_comment(&mut self) {
        if self.peek(0) == b'#' {
            let mut length = 1;
            while !self.is_line_end(length) {
                length += 1;
            }
            self.pass(length);
        }
    }

    /// Ends the last line, so that the end of the text is the start of a line.
    pub(crate) fn end_line(&mut self) {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }

    /// Returns an error of the scanner at this position, in a construct that starts at `context`.
    pub(crate) fn fault(&self, context: Mark, problem: &str) -> YamlError {
        let line = match (self.mark.line, context.line) {
            (0, 0) => None,
            (0, line) => Some(line),
            (line, _) => Some(line + 1),
        };
        YamlError::Syntax {
            line,
            problem: problem.to_owned(),
        }
    }
}
