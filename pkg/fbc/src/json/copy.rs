//! Reader that copies the canonical parts of a JSON text.
//!
//! Most of a catalog is strings whose text is canonical already: to decode and to encode them again would give the same bytes. Single
//! strings and numbers that are not canonical, such as `"\u0026"` and `1.0`, are parsed. The reader reports no errors: it gives up, and
//! the parser reads the text from the beginning.

use olm_yaml::Limits;
use serde_json::Number;
use std::borrow::Cow;

use super::{
    Read,
    members::{Member, reorder},
};
use crate::canonical;

/// Length of an integer that certainly has 64 bits, in digits.
const SHORT_INTEGER: usize = 18;

/// Reads an object like [`super::parse`]. `None` for text that is not valid, or exceeds a limit, or must be read as a whole to tell its
/// package.
pub(super) fn copy(text: &[u8], limit: usize, package: Option<&str>) -> Option<Read> {
    let text = str::from_utf8(text).ok()?;
    let mut fields = super::fields_for(text.len(), limit, package);
    let mut copier = Copier {
        text,
        at: 0,
        limit,
        depth: 1,
        members: Vec::new(),
        scratch: String::new(),
    };
    copier.take(b'{')?;
    let mut ended = copier.ends(b'}')?;
    while !ended {
        let key = copier.key()?.decoded()?;
        copier.take(b':')?;
        copier.value(fields.buffer())?;
        let tells = package.is_some() && canonical::tells_owner(&key);
        fields.add(key.into_owned()).ok()?;
        ended = copier.next_ends(b'}')?;
        if tells && package.is_some_and(|package| fields.are_of_other(package)) {
            // A later field may tell of another package.
            return (ended && copier.finished()).then_some(Read::OfOther);
        }
    }
    copier.finished().then_some(Read::Fields(fields))
}

/// Position in a text.
struct Copier<'t> {
    text: &'t str,
    at: usize,
    /// Maximum length of the canonical text, in bytes.
    limit: usize,
    /// Number of open brackets.
    depth: usize,
    /// Members of the objects that are open, those of the innermost last.
    members: Vec<Member>,
    /// Buffer for sorting the members of an object.
    scratch: String,
}

impl<'t> Copier<'t> {
    /// Skips white space; returns the next byte.
    fn token(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Passes a byte after white space.
    fn take(&mut self, wanted: u8) -> Option<()> {
        self.ends(wanted)?.then_some(())
    }

    /// Passes the `end` of a list or object if it follows.
    fn ends(&mut self, end: u8) -> Option<bool> {
        let found = self.token()? == end;
        self.at += usize::from(found);
        Some(found)
    }

    /// Passes the separator after an item, or the `end` of its list or object.
    fn next_ends(&mut self, end: u8) -> Option<bool> {
        let found = self.token()?;
        self.at += 1;
        (found == end || found == b',').then_some(found == end)
    }

    /// Returns true if only white space is left.
    fn finished(&mut self) -> bool {
        self.token().is_none()
    }

    /// Appends the canonical text of the next value to `out`.
    fn value(&mut self, out: &mut String) -> Option<()> {
        match self.token()? {
            b'"' => self.quoted()?.append(out)?,
            b'{' => self.nested(out, Self::object)?,
            b'[' => self.nested(out, Self::list)?,
            b't' => self.word("true", out)?,
            b'f' => self.word("false", out)?,
            b'n' => self.word("null", out)?,
            _ => self.number(out)?,
        }
        (out.len() <= self.limit).then_some(())
    }

    fn nested(&mut self, out: &mut String, read: fn(&mut Self, &mut String) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > Limits::DEEPEST {
            return None;
        }
        read(self, out)?;
        self.depth -= 1;
        Some(())
    }

    fn object(&mut self, out: &mut String) -> Option<()> {
        out.push('{');
        let (first, own) = (out.len(), self.members.len());
        let mut former: Option<(Quoted<'t>, Member)> = None;
        let mut sorted = true;
        let mut ended = self.ends(b'}')?;
        while !ended {
            if former.is_some() {
                out.push(',');
            }
            let start = out.len();
            let key = self.key()?;
            key.append(out)?;
            self.take(b':')?;
            out.push(':');
            self.value(out)?;
            let member = Member::new(start, out.len())?;
            self.members.push(member);
            sorted &= former.is_none_or(|(former_key, former)| {
                if former_key.plain && key.plain {
                    former_key.inner() < key.inner()
                } else {
                    former.compare(member, out).is_lt()
                }
            });
            former = Some((key, member));
            ended = self.next_ends(b'}')?;
        }
        if !sorted {
            reorder(out, &mut self.scratch, first, self.members.get_mut(own..)?);
        }
        self.members.truncate(own);
        out.push('}');
        Some(())
    }

    fn list(&mut self, out: &mut String) -> Option<()> {
        out.push('[');
        let first = out.len();
        let mut ended = self.ends(b']')?;
        while !ended {
            if out.len() > first {
                out.push(',');
            }
            self.value(out)?;
            ended = self.next_ends(b']')?;
        }
        out.push(']');
        Some(())
    }

    fn word(&mut self, word: &str, out: &mut String) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then_some(())?;
        self.at += word.len();
        out.push_str(word);
        Some(())
    }

    fn number(&mut self, out: &mut String) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let belongs = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.bytes().take_while(|byte| belongs(*byte)).count();
        let number = rest.get(..length)?;
        self.at += length;
        if is_short_integer(number) {
            out.push_str(number);
        } else {
            canonical::number(&serde_json::from_str::<Number>(number).ok()?, out);
        }
        Some(())
    }

    fn key(&mut self) -> Option<Quoted<'t>> {
        (self.token()? == b'"').then_some(())?;
        self.quoted()
    }

    /// Passes a string.
    fn quoted(&mut self) -> Option<Quoted<'t>> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let (mut plain, mut canonical) = (true, true);
        let mut at = start + 1;
        loop {
            at += canonical::first_escape(bytes.get(at..)?)?;
            match bytes.get(at..)? {
                [b'"', ..] => break,
                [b'\\', b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f', ..] => {
                    plain = false;
                    at += 2;
                }
                [b'\\', b'u' | b'/', ..] => {
                    (plain, canonical) = (false, false);
                    at += 2;
                }
                // U+2028 and U+2029, which are escaped in canonical text.
                [0xe2, 0x80, 0xa8 | 0xa9, ..] => {
                    canonical = false;
                    at += 3;
                }
                [0xe2, ..] => at += 3,
                // A control character, or an unknown escape.
                _ => return None,
            }
        }
        self.at = at + 1;
        Some(Quoted {
            text: self.text.get(start..=at)?,
            plain,
            canonical,
        })
    }
}

/// String of a text, with its quotes.
#[derive(Clone, Copy)]
struct Quoted<'t> {
    text: &'t str,
    /// True if the text has no escapes.
    plain: bool,
    /// True if the text is canonical.
    canonical: bool,
}

impl<'t> Quoted<'t> {
    fn inner(self) -> &'t str {
        self.text.get(1..self.text.len() - 1).unwrap_or_default()
    }

    fn decoded(self) -> Option<Cow<'t, str>> {
        if self.plain {
            return Some(Cow::Borrowed(self.inner()));
        }
        serde_json::from_str(self.text).ok().map(Cow::Owned)
    }

    fn append(self, out: &mut String) -> Option<()> {
        if self.canonical {
            out.push_str(self.text);
        } else {
            canonical::string(&self.decoded()?, out);
        }
        Some(())
    }
}

/// Returns true for an integer whose canonical text is its own.
fn is_short_integer(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let canonical = match digits.as_bytes() {
        [b'0'] => number == "0",
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    canonical && digits.len() <= SHORT_INTEGER && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
