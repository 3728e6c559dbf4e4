//! Block scalars: literal (`|`) and folded (`>`).

use super::Scanner;
use crate::YamlError;
use crate::cursor::Mark;
use crate::token::Kind;

/// Treatment of the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    /// `-`: removes all.
    Strip,
    /// Keeps the first one.
    Clip,
    /// `+`: keeps all.
    Keep,
}

impl Scanner<'_> {
    pub(super) fn block_scalar(&mut self, literal: bool) -> Result<(), YamlError> {
        let mark = self.cursor.mark();
        self.cursor.pass(1);
        let (chomping, increment) = self.block_header(mark)?;
        let outer = usize::try_from(self.indent).unwrap_or_default();
        let mut indent = increment.map(|increment| outer + increment);
        let (mut breaks, column) = self.block_breaks(indent, mark)?;
        let indent = *indent.get_or_insert(column);
        let mut text = String::new();
        let mut line_break = "";
        let mut after_blank = false;
        while self.cursor.column() == indent && !self.cursor.at_end() {
            let blank = self.cursor.is_blank(0);
            // Lines are joined by a space, except lines with more indentation.
            if !literal && !after_blank && !blank && line_break == "\n" {
                if breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(line_break);
            }
            text.push_str(&breaks);
            after_blank = blank;
            let start = self.cursor.offset();
            let mut length = 0;
            while !self.cursor.is_line_end(length) {
                length += 1;
            }
            self.cursor.pass(length);
            text.push_str(self.cursor.since(start));
            line_break = self.cursor.take_break();
            (breaks, _) = self.block_breaks(Some(indent), mark)?;
        }
        if chomping != Chomping::Strip {
            text.push_str(line_break);
        }
        if chomping == Chomping::Keep {
            text.push_str(&breaks);
        }
        self.push(Kind::Scalar { text, plain: false }, mark);
        Ok(())
    }

    /// Reads the chomping and indentation indicators, in either order, and the rest of their line.
    fn block_header(&mut self, scalar: Mark) -> Result<(Chomping, Option<usize>), YamlError> {
        let mut chomping = self.chomping();
        let increment = match self.cursor.peek(0) {
            b'0' => {
                let problem = "found an indentation indicator equal to 0";
                return Err(self.cursor.fault(scalar, problem));
            }
            digit @ b'1'..=b'9' => {
                self.cursor.pass(1);
                Some(usize::from(digit - b'0'))
            }
            _ => None,
        };
        if chomping.is_none() && increment.is_some() {
            chomping = self.chomping();
        }
        self.cursor.pass_blanks();
        self.cursor.pass_comment();
        if !self.cursor.is_line_end(0) {
            let problem = "did not find expected comment or line break";
            return Err(self.cursor.fault(scalar, problem));
        }
        self.cursor.take_break();
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.cursor.peek(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.pass(1);
        Some(chomping)
    }

    /// Skips the indentation and empty lines before a line with text. Returns the line breaks, and the default
    /// indentation: that of the widest of these lines, but at least one more than that of the parent.
    fn block_breaks(&mut self, indent: Option<usize>, scalar: Mark) -> Result<(String, usize), YamlError> {
        let mut breaks = String::new();
        let mut widest = usize::try_from(self.indent + 1).unwrap_or_default().max(1);
        loop {
            let before_text = |column| indent.is_none_or(|indent| column < indent);
            while before_text(self.cursor.column()) && self.cursor.peek(0) == b' ' {
                self.cursor.pass(1);
            }
            widest = widest.max(self.cursor.column());
            if before_text(self.cursor.column()) && self.cursor.peek(0) == b'\t' {
                let problem = "found a tab character where an indentation space is expected";
                return Err(self.cursor.fault(scalar, problem));
            }
            if self.cursor.line_break(0) == 0 {
                return Ok((breaks, widest));
            }
            breaks.push_str(self.cursor.take_break());
        }
    }
}
