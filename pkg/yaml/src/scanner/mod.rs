//! Scanner from text to tokens.
//!
//! In YAML, only a following `:` marks a key. The scanner therefore records, for each level of flow collections, the
//! last token that may start a key, and inserts a [`Kind::Key`] before that token at the `:`. A key without `?` ends on
//! its line and has at most 1024 characters, which bounds the lookahead.

mod block;
mod keys;
mod names;
mod plain;
mod quoted;

use std::collections::VecDeque;

use crate::YamlError;
use crate::cursor::{Cursor, Mark};
use crate::token::{Kind, Token};

use keys::PossibleKey;

/// Maximum levels of flow collections, and of block collections; Go's reader has the same limits.
const MAX_LEVELS: usize = 10_000;

/// Reads tokens in sequence.
pub(crate) struct Scanner<'a> {
    cursor: Cursor<'a>,
    tokens: VecDeque<Token<'a>>,
    /// Number of tokens that were taken.
    taken: usize,
    /// The possible key of the block context, then one for each open flow collection, in order of their tokens.
    keys: Vec<PossibleKey>,
    /// True if a key may start at the next token.
    key_allowed: bool,
    /// Column of the innermost block collection; -1 outside of all.
    indent: isize,
    indents: Vec<isize>,
    ended: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            cursor: Cursor::new(text),
            tokens: VecDeque::new(),
            taken: 0,
            keys: vec![PossibleKey::default()],
            key_allowed: true,
            indent: -1,
            indents: Vec::new(),
            ended: false,
        }
    }

    /// Returns the next token without taking it. At the end, repeats the end token.
    pub(crate) fn peek(&mut self) -> Result<&Token<'a>, YamlError> {
        while !self.ended && (self.tokens.is_empty() || self.head_may_be_key()?) {
            self.fetch()?;
        }
        if self.tokens.is_empty() {
            let mark = self.cursor.mark();
            self.push(Kind::StreamEnd, mark);
        }
        self.tokens
            .front()
            .ok_or_else(|| YamlError::problem("unexpected end of the tokens"))
    }

    /// Takes the token that was peeked.
    pub(crate) fn take(&mut self) -> Option<Token<'a>> {
        self.taken += 1;
        self.tokens.pop_front()
    }

    fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    fn column(&self) -> isize {
        isize::try_from(self.cursor.column()).unwrap_or(isize::MAX)
    }

    /// Returns the number of the next token to push.
    fn next_number(&self) -> usize {
        self.taken + self.tokens.len()
    }

    fn push(&mut self, kind: Kind<'a>, mark: Mark) {
        self.tokens.push_back(Token { kind, mark });
    }

    /// Inserts a token before the one with that number. If that token was already taken, the new one is appended, like
    /// in Go's reader.
    fn insert(&mut self, number: usize, kind: Kind<'a>, mark: Mark) {
        match number.checked_sub(self.taken) {
            Some(at) if at < self.tokens.len() => self.tokens.insert(at, Token { kind, mark }),
            _ => self.push(kind, mark),
        }
    }

    /// Opens block collections up to a column.
    fn roll_indent(
        &mut self,
        column: isize,
        number: usize,
        kind: Kind<'a>,
        mark: Mark,
    ) -> Result<(), YamlError> {
        if !self.in_flow() && self.indent < column {
            self.indents.push(self.indent);
            self.indent = column;
            self.check_levels(self.indents.len())?;
            self.insert(number, kind, mark);
        }
        Ok(())
    }

    /// Closes the block collections that are indented more than a column.
    fn unroll_indent(&mut self, column: isize) {
        while !self.in_flow() && self.indent > column {
            let mark = self.cursor.mark();
            self.push(Kind::BlockEnd, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn check_levels(&self, levels: usize) -> Result<(), YamlError> {
        if levels > MAX_LEVELS {
            let problem = format!("exceeded max depth of {MAX_LEVELS}");
            return Err(self.cursor.fault(Mark::default(), &problem));
        }
        Ok(())
    }

    /// Reads the next token into the queue, with the tokens that it implies.
    fn fetch(&mut self) -> Result<(), YamlError> {
        self.pass_to_token();
        self.unroll_indent(self.column());
        let mark = self.cursor.mark();
        let next = self.cursor.peek(0);
        let spaced = self.cursor.is_space_or_end(1);
        if self.cursor.at_end() {
            return self.fetch_end();
        }
        if mark.column == 0 && next == b'%' {
            self.leave_blocks()?;
            return self.directive();
        }
        match self.cursor.document_indicator() {
            Some(b'-') => return self.fetch_document(Kind::DocumentStart),
            Some(_) => return self.fetch_document(Kind::DocumentEnd),
            None => {}
        }
        match next {
            b'[' => self.open_flow(Kind::FlowSequence),
            b'{' => self.open_flow(Kind::FlowMapping),
            b']' => self.close_flow(Kind::FlowSequenceEnd),
            b'}' => self.close_flow(Kind::FlowMappingEnd),
            b',' => {
                self.drop_key()?;
                self.key_allowed = true;
                self.indicator(Kind::FlowEntry);
                Ok(())
            }
            b'-' if spaced => self.fetch_entry(),
            b'?' if spaced || self.in_flow() => self.fetch_key(),
            b':' if spaced || self.in_flow() => self.fetch_value(),
            b'*' | b'&' => {
                self.save_key()?;
                self.key_allowed = false;
                self.anchor()
            }
            b'!' => {
                self.save_key()?;
                self.key_allowed = false;
                self.tag()
            }
            b'|' | b'>' if !self.in_flow() => {
                self.drop_key()?;
                self.key_allowed = true;
                self.block_scalar(next == b'|')
            }
            b'\'' | b'"' => {
                self.save_key()?;
                self.key_allowed = false;
                self.quoted_scalar(next == b'\'')
            }
            b'-' | b'?' | b':' if !spaced && (next == b'-' || !self.in_flow()) => self.fetch_plain(),
            b'-' | b'?' | b':' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => Err(self
                .cursor
                .fault(mark, "found character that cannot start any token")),
            _ => self.fetch_plain(),
        }
    }

    /// Passes white space, comments and line breaks.
    fn pass_to_token(&mut self) {
        loop {
            // A tab is not indentation, so it is allowed only if no key can start.
            let tabs = self.in_flow() || !self.key_allowed;
            while self.cursor.peek(0) == b' ' || tabs && self.cursor.peek(0) == b'\t' {
                self.cursor.pass(1);
            }
            self.cursor.pass_comment();
            if self.cursor.take_break().is_empty() {
                return;
            }
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    /// Takes a token of one character.
    fn indicator(&mut self, kind: Kind<'a>) {
        let mark = self.cursor.mark();
        self.cursor.pass(1);
        self.push(kind, mark);
    }

    /// Closes all block collections.
    fn leave_blocks(&mut self) -> Result<(), YamlError> {
        self.unroll_indent(-1);
        self.drop_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn fetch_end(&mut self) -> Result<(), YamlError> {
        self.cursor.end_line();
        self.leave_blocks()?;
        self.ended = true;
        let mark = self.cursor.mark();
        self.push(Kind::StreamEnd, mark);
        Ok(())
    }

    fn fetch_document(&mut self, kind: Kind<'a>) -> Result<(), YamlError> {
        self.leave_blocks()?;
        let mark = self.cursor.mark();
        self.cursor.pass(3);
        self.push(kind, mark);
        Ok(())
    }

    fn open_flow(&mut self, kind: Kind<'a>) -> Result<(), YamlError> {
        self.save_key()?;
        self.check_levels(self.keys.len())?;
        self.keys.push(PossibleKey {
            token: self.next_number(),
            mark: self.cursor.mark(),
            ..PossibleKey::default()
        });
        self.key_allowed = true;
        self.indicator(kind);
        Ok(())
    }

    fn close_flow(&mut self, kind: Kind<'a>) -> Result<(), YamlError> {
        self.drop_key()?;
        if self.in_flow()
            && let Some(closed) = self.keys.pop()
            && let Some(outer) = self.keys.last_mut()
            // An empty collection is not pending as a key: a defect of Go's reader that affects its results.
            && outer.token == closed.token
        {
            outer.pending = false;
        }
        self.key_allowed = false;
        self.indicator(kind);
        Ok(())
    }

    fn fetch_entry(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            let mark = self.cursor.mark();
            if !self.key_allowed {
                let problem = "block sequence entries are not allowed in this context";
                return Err(self.cursor.fault(mark, problem));
            }
            self.roll_indent(self.column(), usize::MAX, Kind::BlockSequence, mark)?;
        }
        self.drop_key()?;
        self.key_allowed = true;
        self.indicator(Kind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            let mark = self.cursor.mark();
            if !self.key_allowed {
                return Err(self
                    .cursor
                    .fault(mark, "mapping keys are not allowed in this context"));
            }
            self.roll_indent(self.column(), usize::MAX, Kind::BlockMapping, mark)?;
        }
        self.drop_key()?;
        self.key_allowed = !self.in_flow();
        self.indicator(Kind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), YamlError> {
        let level = self.keys.len() - 1;
        if self.is_still_possible(level)?
            && let Some(key) = self.keys.last_mut()
        {
            key.possible = false;
            key.pending = false;
            let PossibleKey { token, mark, .. } = *key;
            let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
            self.insert(token, Kind::Key, mark);
            self.roll_indent(column, token, Kind::BlockMapping, mark)?;
            self.key_allowed = false;
        } else {
            if !self.in_flow() {
                let mark = self.cursor.mark();
                if !self.key_allowed {
                    return Err(self
                        .cursor
                        .fault(mark, "mapping values are not allowed in this context"));
                }
                self.roll_indent(self.column(), usize::MAX, Kind::BlockMapping, mark)?;
            }
            self.key_allowed = !self.in_flow();
        }
        self.indicator(Kind::Value);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Result<(), YamlError> {
        self.save_key()?;
        self.key_allowed = false;
        self.plain_scalar()
    }
}

/// Returns the value of line breaks inside a scalar: a single one is a space; the first of several is dropped. Unicode
/// separators stay.
fn fold(first: &str, more: String) -> String {
    match first {
        "\n" if more.is_empty() => " ".to_owned(),
        "\n" => more,
        first => first.to_owned() + &more,
    }
}
