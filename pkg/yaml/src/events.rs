//! Events of a document, and decoding of its text.

use std::borrow::Cow;

use crate::YamlError;

/// Event of a document's content.
#[derive(Debug)]
pub(crate) enum Event {
    /// A scalar.
    Scalar {
        text: String,
        /// True if neither tagged nor quoted, so that the text decides the type.
        implicit: bool,
        /// Full form of the tag, such as `tag:yaml.org,2002:int`.
        tag: Option<String>,
        anchor: Option<String>,
    },
    /// Start of a sequence.
    Sequence { anchor: Option<String> },
    /// Start of a mapping.
    Mapping { anchor: Option<String> },
    /// End of the collection that started last.
    End,
    /// Repetition of the value with this anchor.
    Alias(String),
}

/// Returns a document as text without its byte order mark, which decides between UTF-8 and UTF-16.
///
/// # Errors
/// [`YamlError`] for another encoding and for control characters.
pub(crate) fn decode(document: &[u8]) -> Result<Cow<'_, str>, YamlError> {
    let text = match document {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)?),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)?),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => Cow::Borrowed(
            str::from_utf8(rest).map_err(|_| YamlError::problem("invalid leading UTF-8 octet"))?,
        ),
    };
    if text.chars().any(is_refused) {
        return Err(YamlError::problem("control characters are not allowed"));
    }
    Ok(text)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, YamlError> {
    let (units, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(YamlError::problem("incomplete UTF-16 character"));
    }
    char::decode_utf16(units.iter().map(|bytes| unit(*bytes)))
        .collect::<Result<_, _>>()
        .map_err(|_| YamlError::problem("unexpected low surrogate area"))
}

fn is_refused(c: char) -> bool {
    match c {
        ' '..='~' | '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{fffe}' | '\u{ffff}' => true,
        c => c < '\u{a0}',
    }
}
