//! Validation of image references.

/// Returns the reason why `image` is no image reference; none if it is one.
pub(super) fn fault(image: &str) -> Option<&'static str> {
    if image.is_empty() {
        return Some("it is empty");
    }
    if image.contains("://") {
        return Some("it has a scheme");
    }
    if image.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Some("it has white space or characters other than ASCII");
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Some("its digest is not sha256: and 64 hexadecimal digits, or sha512: and 128");
    }
    let (name, tag) = split_tag(rest);
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some("its tag is not 1 to 128 letters, digits, dots, dashes and underscores");
    }
    let path = match name.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => name,
    };
    let sound = !path.is_empty() && path.split('/').all(is_component);
    (!sound).then_some("its repository has other characters than a-z, 0-9 and separators within a part")
}

/// Returns true if `image` has no digest, only a tag or neither.
pub(super) fn by_tag(image: &str) -> bool {
    !image.is_empty() && !image.contains('@')
}

fn split_tag(rest: &str) -> (&str, Option<&str>) {
    match rest.rsplit_once(':') {
        // A colon before the last slash belongs to a port.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    }
}

fn is_host(host: &str) -> bool {
    host == "localhost" || host.contains(['.', ':']) || host.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_component(part: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes
            .iter()
            .all(|byte| alphanumeric(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let hex = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    digest.strip_prefix("sha256:").is_some_and(|text| hex(text, 64))
        || digest.strip_prefix("sha512:").is_some_and(|text| hex(text, 128))
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn references_by_example() {
        let digest = format!("sha256:{}", "0f".repeat(32));
        for image in [
            "busybox",
            "quay.io/a/b:v1",
            "localhost:5000/a/b__c-d.e",
            &format!("quay.io/a/b:1@{digest}"),
            &format!("quay.io/a/b@{digest}"),
        ] {
            assert_eq!(fault(image), None, "{image}");
        }
        for image in [
            "",
            "https://quay.io/a/b",
            "quay.io/a b",
            "quay.io/A/b",
            "quay.io/a//b",
            "quay.io/",
            "a:",
            "a:-1",
            "a@sha256:12",
            "quay.io/-a",
        ] {
            assert!(fault(image).is_some(), "{image}");
        }
    }
}
