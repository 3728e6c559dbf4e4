//! Quoted scalars, in single or in double quotes.

use super::{Scanner, fold};
use crate::YamlError;
use crate::cursor::Mark;
use crate::token::Kind;

impl Scanner<'_> {
    pub(super) fn quoted_scalar(&mut self, single: bool) -> Result<(), YamlError> {
        let mark = self.cursor.mark();
        let quote = self.cursor.peek(0);
        self.cursor.pass(1);
        let mut text = String::new();
        loop {
            if self.cursor.document_indicator().is_some() {
                return Err(self.cursor.fault(mark, "found unexpected document indicator"));
            }
            if self.cursor.at_end() {
                return Err(self.cursor.fault(mark, "found unexpected end of stream"));
            }
            let escaped_break = self.quoted_words(single, &mut text, mark)?;
            if self.cursor.peek(0) == quote {
                break;
            }
            self.quoted_space(escaped_break, &mut text);
        }
        self.cursor.pass(1);
        self.push(Kind::Scalar { text, plain: false }, mark);
        Ok(())
    }

    /// Appends the text up to white space or the closing quote. Returns true when it ended at an escaped line break.
    fn quoted_words(&mut self, single: bool, text: &mut String, scalar: Mark) -> Result<bool, YamlError> {
        loop {
            let start = self.cursor.offset();
            self.cursor.pass(self.quoted_run(single));
            text.push_str(self.cursor.since(start));
            match self.cursor.peek(0) {
                b'\'' if single && self.cursor.peek(1) == b'\'' => {
                    text.push('\'');
                    self.cursor.pass(2);
                }
                b'\\' if !single && self.cursor.line_break(1) > 0 => {
                    self.cursor.pass(1);
                    self.cursor.take_break();
                    return Ok(true);
                }
                b'\\' if !single => text.push(self.escape(scalar)?),
                _ => return Ok(false),
            }
        }
    }

    /// Returns the length of the text without white space, quotes and escapes.
    fn quoted_run(&self, single: bool) -> usize {
        let mut length = 0;
        loop {
            match self.cursor.peek(length) {
                0 | b' ' | b'\t' | b'\n' | b'\r' => return length,
                b'\'' if single => return length,
                b'"' | b'\\' if !single => return length,
                0xc2 | 0xe2 if self.cursor.line_break(length) > 0 => return length,
                _ => length += 1,
            }
        }
    }

    /// Skips white space and line breaks and appends their value.
    fn quoted_space(&mut self, escaped_break: bool, text: &mut String) {
        let start = self.cursor.offset();
        self.cursor.pass_blanks();
        let blanks = self.cursor.since(start);
        let first = match (escaped_break, self.cursor.line_break(0)) {
            (true, _) => "",
            (false, 0) => {
                text.push_str(blanks);
                return;
            }
            (false, _) => self.cursor.take_break(),
        };
        let mut more = String::new();
        while self.cursor.is_blank(0) || self.cursor.line_break(0) > 0 {
            self.cursor.pass_blanks();
            more.push_str(self.cursor.take_break());
        }
        text.push_str(&fold(first, more));
    }

    /// Skips an escape sequence and returns its character.
    fn escape(&mut self, scalar: Mark) -> Result<char, YamlError> {
        let short = match self.cursor.peek(1) {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{b}',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'e' => '\u{1b}',
            known @ (b' ' | b'"' | b'\'' | b'\\') => char::from(known),
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => return self.escaped_code(2, scalar),
            b'u' => return self.escaped_code(4, scalar),
            b'U' => return self.escaped_code(8, scalar),
            _ => return Err(self.cursor.fault(scalar, "found unknown escape character")),
        };
        self.cursor.pass(2);
        Ok(short)
    }

    fn escaped_code(&mut self, digits: usize, scalar: Mark) -> Result<char, YamlError> {
        let mut code = 0;
        for at in 2..2 + digits {
            let Some(digit) = char::from(self.cursor.peek(at)).to_digit(16) else {
                self.cursor.pass(2);
                return Err(self
                    .cursor
                    .fault(scalar, "did not find expected hexdecimal number"));
            };
            code = code * 16 + digit;
        }
        self.cursor.pass(2);
        let Some(character) = char::from_u32(code) else {
            let problem = "found invalid Unicode character escape code";
            return Err(self.cursor.fault(scalar, problem));
        };
        self.cursor.pass(digits);
        Ok(character)
    }
}
