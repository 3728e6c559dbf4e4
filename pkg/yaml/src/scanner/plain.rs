//! Plain scalars: without quotes, on one line or several.

use super::{Scanner, fold};
use crate::YamlError;
use crate::cursor::Mark;
use crate::token::Kind;

impl Scanner<'_> {
    pub(super) fn plain_scalar(&mut self) -> Result<(), YamlError> {
        let mark = self.cursor.mark();
        let indent = self.indent + 1;
        let mut text = String::new();
        // White space is part of the scalar only if more text follows.
        let mut space = String::new();
        let mut on_new_line = false;
        while self.cursor.document_indicator().is_none() && self.cursor.peek(0) != b'#' {
            let words = self.plain_run();
            if words > 0 {
                text.push_str(&std::mem::take(&mut space));
                let start = self.cursor.offset();
                self.cursor.pass(words);
                text.push_str(self.cursor.since(start));
                on_new_line = false;
            }
            if !self.cursor.is_blank(0) && self.cursor.line_break(0) == 0 {
                break;
            }
            let line = self.cursor.mark().line;
            space = self.plain_space(indent, mark)?;
            on_new_line = self.cursor.mark().line > line;
            if !self.in_flow() && self.column() < indent {
                break;
            }
        }
        // The next token is on another line, where a key may start.
        if on_new_line {
            self.key_allowed = true;
        }
        self.push(Kind::Scalar { text, plain: true }, mark);
        Ok(())
    }

    /// Returns the length of the text up to white space or an indicator that ends the scalar.
    fn plain_run(&self) -> usize {
        let mut length = 0;
        loop {
            match self.cursor.peek(length) {
                0 | b' ' | b'\t' | b'\n' | b'\r' => return length,
                b':' if self.cursor.is_space_or_end(length + 1) => return length,
                b',' | b'?' | b'[' | b']' | b'{' | b'}' if self.in_flow() => return length,
                0xc2 | 0xe2 if self.cursor.line_break(length) > 0 => return length,
                _ => length += 1,
            }
        }
    }

    /// Skips white space and line breaks; returns their value inside a scalar.
    fn plain_space(&mut self, indent: isize, scalar: Mark) -> Result<String, YamlError> {
        let start = self.cursor.offset();
        self.cursor.pass_blanks();
        let blanks = self.cursor.since(start);
        if self.cursor.line_break(0) == 0 {
            return Ok(blanks.to_owned());
        }
        let first = self.cursor.take_break();
        let mut more = String::new();
        loop {
            if self.cursor.is_blank(0) {
                if self.column() < indent && self.cursor.peek(0) == b'\t' {
                    let problem = "found a tab character that violates indentation";
                    return Err(self.cursor.fault(scalar, problem));
                }
                self.cursor.pass(1);
            } else if self.cursor.line_break(0) > 0 {
                more.push_str(self.cursor.take_break());
            } else {
                return Ok(fold(first, more));
            }
        }
    }
}
