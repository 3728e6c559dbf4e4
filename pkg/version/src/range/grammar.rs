//! Grammar of a range: operators, partial versions, hyphen ranges.
//!
//! The parser works on bytes: all tokens are ASCII, and any other byte ends a token.

/// Operators; longer ones precede their prefixes.
const OPERATORS: [&str; 11] = ["!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^"];

/// An operator and the version after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term<'a> {
    /// Operator; may be empty.
    pub(super) operator: &'static str,
    /// The version as far as written.
    pub(super) version: PartialVersion<'a>,
}

/// A version with at least its first component. Numbers are not checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PartialVersion<'a> {
    pub(super) major: &'a str,
    pub(super) minor: Option<&'a str>,
    pub(super) patch: Option<&'a str>,
    /// Pre-release: the text after the dash.
    pub(super) pre: Option<&'a str>,
}

/// Position in a text that is parsed from left to right.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn done(&self) -> bool {
        self.at >= self.text.len()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Reads the longest run of bytes that `accept` accepts; may be empty.
    fn run(&mut self, accept: fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(accept) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn spaces(&mut self) -> bool {
        !self.run(is_space).is_empty()
    }

    fn operator(&mut self) -> &'static str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let found = OPERATORS
            .into_iter()
            .find(|operator| rest.starts_with(operator))
            .unwrap_or_default();
        self.at += found.len();
        found
    }

    /// Reads an optional `.` with a number or wildcard.
    fn component(&mut self) -> Option<&'a str> {
        let before = self.at;
        if self.eat(b'.') {
            let digits = self.run(is_number);
            if !digits.is_empty() {
                return Some(digits);
            }
        }
        self.at = before;
        None
    }

    /// Reads an optional `mark` with identifiers joined by dots.
    fn identifiers(&mut self, mark: u8) -> Option<&'a str> {
        let before = self.at;
        if self.eat(mark) {
            let start = self.at;
            let mut end = before;
            while !self.run(is_identifier).is_empty() {
                end = self.at;
                if !self.eat(b'.') {
                    break;
                }
            }
            if end > before {
                self.at = end;
                return self.text.get(start..end);
            }
        }
        self.at = before;
        None
    }

    fn version(&mut self) -> Option<PartialVersion<'a>> {
        let before = self.at;
        self.eat(b'v');
        let major = self.run(is_number);
        if major.is_empty() {
            self.at = before;
            return None;
        }
        let minor = self.component();
        let patch = self.component();
        let pre = self.identifiers(b'-');
        self.identifiers(b'+');
        Some(PartialVersion {
            major,
            minor,
            patch,
            pre,
        })
    }
}

/// Returns the comparators of a group; none if it is malformed.
pub(super) fn terms(group: &str) -> Option<Vec<Term<'_>>> {
    let mut cursor = Cursor { text: group, at: 0 };
    let mut terms = Vec::new();
    cursor.spaces();
    loop {
        let operator = cursor.operator();
        cursor.spaces();
        let version = cursor.version()?;
        terms.push(Term { operator, version });
        let apart = cursor.spaces();
        if cursor.done() {
            return Some(terms);
        }
        if cursor.eat(b',') {
            cursor.spaces();
        } else if !apart {
            return None;
        }
    }
}

/// Rewrites every `A - B` to `>= A, <= B `.
pub(super) fn rewrite_hyphens(text: &str) -> String {
    let mut rewritten = text.to_owned();
    let mut cursor = Cursor { text, at: 0 };
    while !cursor.done() {
        let start = cursor.at;
        let mut ahead = cursor;
        match hyphen(&mut ahead) {
            Some((low, high)) => {
                let found = text.get(start..ahead.at).unwrap_or_default();
                rewritten = rewritten.replacen(found, &format!(">= {low}, <= {high} "), 1);
                cursor = ahead;
            }
            None => cursor.at += 1,
        }
    }
    rewritten
}

fn hyphen<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a str, &'a str)> {
    cursor.spaces();
    let low = written(cursor)?;
    let dashed = cursor.spaces() && cursor.eat(b'-') && cursor.spaces();
    let high = if dashed { written(cursor)? } else { return None };
    cursor.spaces();
    Some((low, high))
}

fn written<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let start = cursor.at;
    cursor.version()?;
    cursor.text.get(start..cursor.at)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// Returns true for bytes of a number. The bar is in upstream's grammar, but is never part of a valid number.
fn is_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*' | b'|')
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}
