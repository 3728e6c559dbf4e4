//! Formats of texts and numbers.
//!
//! A format that the API server does not know has no effect. A format that the API server checks with a parser of its
//! own is decided only if the result is certain.

use super::number::Number;
use super::value_type::Type;

/// A format that the API server checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Int32,
    Int64,
    Date,
    DateTime,
    Duration,
    Byte,
    Uuid(Option<u8>),
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    HexColor,
    Ssn,
    ObjectId,
    Hostname,
    Email,
    Uri,
    /// A format that only the API server checks, with its name.
    Other(&'static str),
}

/// Formats that the API server checks and this module does not.
const UNCHECKED: [&str; 5] = ["isbn", "isbn10", "isbn13", "creditcard", "rgbcolor"];

impl Format {
    /// Returns the format of a name for values of a type; none if it has no effect on the type.
    pub(super) fn of(name: &str, kind: Option<Type>) -> Option<Self> {
        match kind {
            Some(Type::Integer) => match name {
                "int32" => Some(Self::Int32),
                "int64" => Some(Self::Int64),
                _ => None,
            },
            None | Some(Type::String) => Self::of_text(&name.replace('-', "")),
            Some(_) => None,
        }
    }

    fn of_text(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            "duration" => Self::Duration,
            "byte" => Self::Byte,
            "uuid" => Self::Uuid(None),
            "uuid3" => Self::Uuid(Some(3)),
            "uuid4" => Self::Uuid(Some(4)),
            "uuid5" => Self::Uuid(Some(5)),
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "hexcolor" => Self::HexColor,
            "ssn" => Self::Ssn,
            "bsonobjectid" => Self::ObjectId,
            "hostname" => Self::Hostname,
            "email" => Self::Email,
            "uri" => Self::Uri,
            _ => {
                return UNCHECKED
                    .iter()
                    .find(|other| **other == name)
                    .copied()
                    .map(Self::Other);
            }
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Duration => "duration",
            Self::Byte => "byte (base64)",
            Self::Uuid(_) => "uuid",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Mac => "mac",
            Self::HexColor => "hexcolor",
            Self::Ssn => "ssn",
            Self::ObjectId => "bsonobjectid",
            Self::Hostname => "hostname",
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Other(name) => name,
        }
    }

    /// Returns true if CEL rules see values of this format as another type than text.
    pub(super) fn is_special_to_rules(self) -> bool {
        matches!(self, Self::Date | Self::DateTime | Self::Duration | Self::Byte)
    }

    pub(super) fn admits_number(self, number: Number) -> bool {
        match (self, number) {
            (Self::Int32, Number::Integer(whole)) => i32::try_from(whole).is_ok(),
            (Self::Int32, Number::Float(float)) => {
                (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float)
            }
            _ => true,
        }
    }

    /// Returns true if the text has the format; none if this module does not decide it.
    pub(super) fn admits_text(self, text: &str) -> Option<bool> {
        Some(match self {
            Self::Int32 | Self::Int64 => true,
            Self::Date => date(text.as_bytes()),
            Self::DateTime => return date_time(text),
            Self::Duration => return duration(text),
            Self::Byte => base64(text),
            Self::Uuid(version) => uuid(text, version),
            Self::Ipv4 => return ip(text, true),
            Self::Ipv6 => return ip(text, false),
            Self::Cidr => return cidr(text),
            Self::Mac => return mac(text),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            Self::Ssn => ssn(text),
            Self::ObjectId => text.len() == 24 && is_hex(text),
            Self::Hostname => return hostname(text),
            Self::Email => return email(text),
            Self::Uri => return uri(text),
            Self::Other(_) => return None,
        })
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Parses two or four digits.
fn digits(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    bytes.iter().all(u8::is_ascii_digit).then(|| text.parse().ok())?
}

fn date(bytes: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (
        digits(&[*y1, *y2, *y3, *y4]),
        digits(&[*m1, *m2]),
        digits(&[*d1, *d2]),
    ) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// Accepts RFC 3339 in its plain form and rejects texts without a date in front; other forms are undecided.
fn date_time(text: &str) -> Option<bool> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return None;
    }
    let (Some(day), Some(b'T' | b't'), Some(time)) = (bytes.get(..10), bytes.get(10), bytes.get(11..)) else {
        return Some(false);
    };
    if !date(day) {
        return Some(false);
    }
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = time else {
        return Some(false);
    };
    let clock = digits(&[*h1, *h2])
        .zip(digits(&[*m1, *m2]))
        .zip(digits(&[*s1, *s2]));
    let ((hour, minute), second) = clock?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let zone = match rest {
        [b'.', fraction @ ..] => {
            let count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=9).contains(&count) {
                return None;
            }
            fraction.get(count..).unwrap_or_default()
        }
        other => other,
    };
    match zone {
        b"Z" => Some(true),
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let (hour, minute) = digits(&[*h1, *h2]).zip(digits(&[*m1, *m2]))?;
            (hour < 24 && minute < 60).then_some(true)
        }
        _ => None,
    }
}

/// Accepts Go's form (`1h30m`), and numbers with the names of units.
fn duration(text: &str) -> Option<bool> {
    const UNITS: [&str; 9] = ["ns", "us", "µs", "ms", "s", "m", "h", "d", "w"];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(true);
    }
    if !rest.contains(|c: char| c.is_ascii_digit()) || !rest.contains(char::is_alphabetic) {
        return Some(false);
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (count, tail) = rest.split_at_checked(number)?;
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(end)?;
        // Long numbers may overflow; other units are undecided.
        if !(1..=6).contains(&count.len()) || count.starts_with('.') || count.matches('.').count() > 1 {
            return None;
        }
        if !UNITS.contains(&unit) || count.contains('.') && matches!(unit, "d" | "w") {
            return None;
        }
        rest = next;
    }
    Some(true)
}

/// Accepts padded base64 of the standard alphabet.
fn base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && body.bytes().all(is_digit)
}

fn uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text;
    let mut parts = Vec::new();
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, tail)) = rest.split_at_checked(length) else {
            return false;
        };
        parts.push(part);
        rest = tail;
    }
    let starts = |at: usize, of: &str| {
        let first = parts.get(at).and_then(|part| part.chars().next());
        first.is_some_and(|first| of.contains(first.to_ascii_lowercase()))
    };
    let fits = match version {
        None => true,
        Some(3) => starts(2, "3"),
        Some(4) => starts(2, "4") && starts(3, "89ab"),
        Some(_) => starts(2, "5") && starts(3, "89ab"),
    };
    rest.is_empty() && fits && parts.iter().all(|part| is_hex(part))
}

/// Leaves leading zeros, and IPv6 addresses with dots, undecided: the API server accepts some of them.
fn ip(text: &str, four: bool) -> Option<bool> {
    match text.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => Some(four),
        Ok(std::net::IpAddr::V6(_)) if text.contains('.') => None,
        Ok(std::net::IpAddr::V6(_)) => Some(!four),
        Err(_) if has_leading_zero(text) => None,
        Err(_) => Some(false),
    }
}

/// Returns true if the text has four numbers and one of them starts with a superfluous zero.
fn has_leading_zero(text: &str) -> bool {
    let tail = text.rsplit(':').next().unwrap_or_default();
    tail.split('.').count() == 4 && tail.split('.').any(|part| part.starts_with('0'))
}

fn cidr(text: &str) -> Option<bool> {
    let Some((address, length)) = text.split_once('/') else {
        return Some(false);
    };
    let most = if address.contains(':') { 128 } else { 32 };
    let plain = !length.is_empty() && length.len() <= 3 && length.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || length.parse::<u16>().is_ok_and(|length| length > most) {
        return Some(false);
    }
    match address.parse::<std::net::IpAddr>() {
        Ok(_) => Some(true),
        Err(_) if has_leading_zero(address) => None,
        Err(_) => Some(false),
    }
}

/// Accepts six octets; longer and other forms are undecided.
fn mac(text: &str) -> Option<bool> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    if !text.contains([':', '-', '.']) {
        return Some(false);
    }
    let mixed = text.contains(':') && text.contains('-');
    let plain = parts.len() == 6 && !mixed && parts.iter().all(|part| part.len() == 2 && is_hex(part));
    plain.then_some(true)
}

fn ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(at, byte)| match at {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

/// Accepts labels of letters, digits and inner dashes, the last one of letters; a few more forms are undecided.
fn hostname(text: &str) -> Option<bool> {
    if text.is_empty()
        || text.len() > 255
        || text.contains(|c: char| c.is_whitespace() || c == '_' || c == '/')
    {
        return Some(false);
    }
    let labels: Vec<&str> = text.split('.').collect();
    let is_plain = |label: &&str| {
        let bytes = label.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        (1..=62).contains(&bytes.len())
            && ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let last = labels.last().copied().unwrap_or_default();
    let dashes = labels.len() == 1 && text.contains('-');
    let top = labels.len() == 1 || last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    (labels.iter().all(is_plain) && top && !dashes).then_some(true)
}

fn email(text: &str) -> Option<bool> {
    let Some((local, domain)) = text.split_once('@') else {
        return Some(false);
    };
    let is_plain = |text: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+');
        text.split('.')
            .all(|part| !part.is_empty() && part.bytes().all(is_word))
    };
    (is_plain(local) && is_plain(domain)).then_some(true)
}

/// Accepts absolute URIs and paths of plain characters; rejects texts with neither a scheme nor a leading slash.
fn uri(text: &str) -> Option<bool> {
    if text.is_empty() {
        return Some(false);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/?&=+,;@:!*'()".contains(&byte);
    let plain = text.bytes().all(is_plain);
    if text.starts_with('/') {
        return plain.then_some(true);
    }
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            let is_host = !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
            let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
            (plain && is_host && is_scheme).then_some(true)
        }
        None if !text.contains(':') => Some(false),
        None => None,
    }
}
