//! Anchors, aliases, tags and directives.

use super::Scanner;
use crate::YamlError;
use crate::cursor::Mark;
use crate::token::Kind;

impl<'a> Scanner<'a> {
    /// Reads an anchor or an alias.
    pub(super) fn anchor(&mut self) -> Result<(), YamlError> {
        let mark = self.cursor.mark();
        let alias = self.cursor.peek(0) == b'*';
        self.cursor.pass(1);
        let name = self.word();
        let ends = self.cursor.is_space_or_end(0) || b"?:,]}%@`".contains(&self.cursor.peek(0));
        if name.is_empty() || !ends {
            let problem = "did not find expected alphabetic or numeric character";
            return Err(self.cursor.fault(mark, problem));
        }
        self.push(
            if alias {
                Kind::Alias(name)
            } else {
                Kind::Anchor(name)
            },
            mark,
        );
        Ok(())
    }

    /// Reads a tag: `!<uri>`, `!handle!suffix`, `!suffix` or `!`.
    pub(super) fn tag(&mut self) -> Result<(), YamlError> {
        let mark = self.cursor.mark();
        let (handle, suffix) = if self.cursor.peek(1) == b'<' {
            self.cursor.pass(2);
            let uri = self.uri("", mark)?;
            if self.cursor.peek(0) != b'>' {
                return Err(self.cursor.fault(mark, "did not find the expected '>'"));
            }
            self.cursor.pass(1);
            (String::new(), uri)
        } else {
            let handle = self.tag_handle();
            if handle.len() > 1 && handle.ends_with('!') {
                (handle.to_owned(), self.uri("", mark)?)
            } else {
                let suffix = self.uri(handle, mark)?;
                // `!` alone is a tag of its own, without a handle.
                if suffix.is_empty() {
                    (suffix, "!".to_owned())
                } else {
                    ("!".to_owned(), suffix)
                }
            }
        };
        if !self.cursor.is_space_or_end(0) {
            let problem = "did not find expected whitespace or line break";
            return Err(self.cursor.fault(mark, problem));
        }
        self.push(Kind::Tag(handle, suffix), mark);
        Ok(())
    }

    /// Reads a directive: `%YAML 1.1` or `%TAG !handle! prefix`.
    pub(super) fn directive(&mut self) -> Result<(), YamlError> {
        let mark = self.cursor.mark();
        self.cursor.pass(1);
        let name = self.word();
        if name.is_empty() {
            return Err(self.cursor.fault(mark, "could not find expected directive name"));
        }
        if !self.cursor.is_space_or_end(0) {
            return Err(self
                .cursor
                .fault(mark, "found unexpected non-alphabetical character"));
        }
        let kind = match name {
            "YAML" => self.version(mark)?,
            "TAG" => self.tag_prefix(mark)?,
            _ => return Err(self.cursor.fault(mark, "found unknown directive name")),
        };
        self.cursor.pass_blanks();
        self.cursor.pass_comment();
        if !self.cursor.is_line_end(0) {
            let problem = "did not find expected comment or line break";
            return Err(self.cursor.fault(mark, problem));
        }
        self.cursor.take_break();
        self.push(kind, mark);
        Ok(())
    }

    fn version(&mut self, directive: Mark) -> Result<Kind<'a>, YamlError> {
        self.cursor.pass_blanks();
        let major = self.version_number(directive)?;
        if self.cursor.peek(0) != b'.' {
            let problem = "did not find expected digit or '.' character";
            return Err(self.cursor.fault(directive, problem));
        }
        self.cursor.pass(1);
        Ok(Kind::Version(major, self.version_number(directive)?))
    }

    /// Reads a number of one or two digits.
    fn version_number(&mut self, directive: Mark) -> Result<u8, YamlError> {
        let start = self.cursor.offset();
        while self.cursor.peek(0).is_ascii_digit() {
            self.cursor.pass(1);
        }
        let digits = self.cursor.since(start);
        let problem = match digits.len() {
            0 => "did not find expected version number",
            1 | 2 => return Ok(digits.parse().unwrap_or_default()),
            _ => "found extremely long version number",
        };
        Err(self.cursor.fault(directive, problem))
    }

    fn tag_prefix(&mut self, directive: Mark) -> Result<Kind<'a>, YamlError> {
        self.cursor.pass_blanks();
        if self.cursor.peek(0) != b'!' {
            return Err(self.cursor.fault(directive, "did not find expected '!'"));
        }
        let handle = self.tag_handle();
        if handle != "!" && !handle.ends_with('!') {
            return Err(self.cursor.fault(directive, "did not find expected '!'"));
        }
        if !self.cursor.is_blank(0) {
            return Err(self.cursor.fault(directive, "did not find expected whitespace"));
        }
        self.cursor.pass_blanks();
        let prefix = self.uri("", directive)?;
        if !self.cursor.is_space_or_end(0) {
            let problem = "did not find expected whitespace or line break";
            return Err(self.cursor.fault(directive, problem));
        }
        Ok(Kind::TagPrefix(handle.to_owned(), prefix))
    }

    /// Reads `!`, the following word, and an optional second `!`.
    fn tag_handle(&mut self) -> &'a str {
        let start = self.cursor.offset();
        self.cursor.pass(1);
        self.word();
        if self.cursor.peek(0) == b'!' {
            self.cursor.pass(1);
        }
        self.cursor.since(start)
    }

    /// Reads the characters of a URI after a `head`, without the head's first character. Only a URI with a head may be
    /// empty.
    fn uri(&mut self, head: &str, context: Mark) -> Result<String, YamlError> {
        let mut uri = head.as_bytes().get(1..).unwrap_or_default().to_vec();
        let mut found = !head.is_empty();
        loop {
            match self.cursor.peek(0) {
                b'%' => self.escaped_octets(&mut uri, context)?,
                byte if byte.is_ascii_alphanumeric() || b"_-;/?:@&=+$,.!~*'()[]".contains(&byte) => {
                    uri.push(byte);
                    self.cursor.pass(1);
                }
                _ if found => return Ok(String::from_utf8_lossy(&uri).into_owned()),
                _ => return Err(self.cursor.fault(context, "did not find expected tag URI")),
            }
            found = true;
        }
    }

    /// Reads one character in the form `%XX`, once for each of its UTF-8 bytes.
    fn escaped_octets(&mut self, uri: &mut Vec<u8>, context: Mark) -> Result<(), YamlError> {
        let mut left = 1;
        let mut leading = true;
        while left > 0 {
            let digit = |at| char::from(self.cursor.peek(at)).to_digit(16);
            let octet = match (self.cursor.peek(0), digit(1), digit(2)) {
                (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or_default(),
                _ => return Err(self.cursor.fault(context, "did not find URI escaped octet")),
            };
            if leading {
                left = match octet {
                    0..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => {
                        let problem = "found an incorrect leading UTF-8 octet";
                        return Err(self.cursor.fault(context, problem));
                    }
                };
                leading = false;
            } else if octet & 0xc0 != 0x80 {
                let problem = "found an incorrect trailing UTF-8 octet";
                return Err(self.cursor.fault(context, problem));
            }
            uri.push(octet);
            self.cursor.pass(3);
            left -= 1;
        }
        Ok(())
    }

    /// Reads letters, digits, `_` and `-`.
    fn word(&mut self) -> &'a str {
        let start = self.cursor.offset();
        while self.cursor.peek(0).is_ascii_alphanumeric() || matches!(self.cursor.peek(0), b'_' | b'-') {
            self.cursor.pass(1);
        }
        self.cursor.since(start)
    }
}
