//! Rules for names, labels and finalizers.

/// Maximum length of a DNS subdomain.
const SUBDOMAIN: usize = 253;
/// Maximum length of a DNS label and of a label's value.
const LABEL: usize = 63;

/// Returns true for a DNS label as in RFC 1123.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let edge = |c: Option<&u8>| c.is_some_and(|c| *c != b'-');
    let bytes = text.as_bytes();
    bytes.len() <= LABEL && bytes.iter().all(|c| inner(*c)) && edge(bytes.first()) && edge(bytes.last())
}

/// Returns true for a DNS label that starts with a letter, as in RFC 1035.
pub(crate) fn is_service(text: &str) -> bool {
    is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns true for a DNS subdomain; its labels may be longer than 63 characters.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let inner = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-';
        let edge = |c: Option<&u8>| c.is_some_and(|c| *c != b'-');
        bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
    };
    text.len() <= SUBDOMAIN && text.split('.').all(part)
}

/// Returns true for a name that can be part of a path.
pub(crate) fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '%'])
}

/// Returns true for a value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_word(text)
}

/// Returns true for a qualified name: the key of a label or annotation, or a finalizer.
pub(crate) fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_word(name),
        None => is_word(text),
    }
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let edge = |c: Option<&u8>| c.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= LABEL && bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_dns() {
        assert!(is_label("a-1") && !is_label("-a") && !is_label("a.b") && !is_label(""));
        assert!(is_subdomain("a.b-1") && !is_subdomain("a..b") && !is_subdomain("A"));
        assert!(is_service("a1") && !is_service("1a"));
        assert!(
            is_qualified("example.com/Name_1") && !is_qualified("example.com/") && !is_qualified("a/b/c")
        );
        assert!(is_label_value("") && is_label_value("A.b") && !is_label_value("a b"));
    }
}
