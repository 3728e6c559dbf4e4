//! Foreign text on a page.

use olm_text::{cut, printable};
use url::Url;

/// Longest text of a cell, in bytes.
const CELL: usize = 400;
/// Longest address of a link, in bytes.
const ADDRESS: usize = 2048;

/// Returns a text as it is shown in a cell: cut, with control characters and marks of writing direction as escapes.
pub(crate) fn shown(text: &str) -> String {
    printable(&cut(text, CELL)).into_owned()
}

/// Returns the address of a link; none unless it is `http` or `https`, names a host and has no credentials.
pub(crate) fn address(text: &str) -> Option<String> {
    if text.len() > ADDRESS {
        return None;
    }
    let url = Url::parse(text.trim()).ok()?;
    let plain = url.username().is_empty() && url.password().is_none() && url.has_host();
    (matches!(url.scheme(), "http" | "https") && plain).then(|| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn only_addresses_of_pages_are_links() {
        assert_eq!(
            address(" https://e.org/a?b=\"").as_deref(),
            Some("https://e.org/a?b=%22")
        );
        for refused in [
            "",
            "javascript:alert(1)",
            "java\nscript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "//e.org",
            "/a",
            "ftp://e.org",
            "https://good.org@e.org",
            "https://a:b@e.org",
            "vbscript:x",
            "file:///etc/passwd",
            &format!("https://e.org/{}", "a".repeat(3000)),
        ] {
            assert_eq!(address(refused), None, "{refused}");
        }
    }
}
