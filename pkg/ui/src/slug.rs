//! File names for names of strangers.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Start of the file names of names that cannot be file names themselves.
const DIGEST: &str = "sha256-";
/// Longest name that is a file name, in bytes.
const LIMIT: usize = 100;

/// File name without ending, unique for its name: the name itself if it consists of lower-case letters, digits, `-` and single
/// dots, else the digest of the name. No slug has a separator, starts with a dot, or differs from another only by case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slug(String);

impl Slug {
    /// Returns the slug of a name.
    pub fn new(name: &str) -> Self {
        let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let plain = name.len() <= LIMIT
            && !name.starts_with(DIGEST)
            && !name.contains("..")
            && name
                .bytes()
                .all(|byte| alphanumeric(byte) || matches!(byte, b'-' | b'.'))
            && name.bytes().next().is_some_and(alphanumeric)
            && name.bytes().next_back().is_some_and(alphanumeric);
        if plain {
            return Self(name.to_owned());
        }
        Self(format!(
            "{DIGEST}{}",
            HEXLOWER.encode(&Sha256::digest(name.as_bytes()))
        ))
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_plain_names_are_file_names() {
        for name in ["kite", "k", "argo-cd.v2", "3scale"] {
            assert_eq!(Slug::new(name).to_string(), name);
        }
        let digested = Slug::new("..").to_string();
        let strange = [
            "",
            ".",
            "..",
            "a/b",
            "../a",
            "a\\b",
            "A",
            "a b",
            "-a",
            "a-",
            "a..b",
            "a.",
            "%2e%2e",
            "a?b",
            "a#b",
            "a\0b",
            "é",
            "\u{202e}a",
            &"a".repeat(101),
            &digested,
        ];
        let slugs: BTreeSet<Slug> = strange.into_iter().map(Slug::new).collect();
        assert_eq!(slugs.len(), strange.len());
        for slug in slugs {
            let text = slug.to_string();
            assert!(
                text.len() == DIGEST.len() + 64 && text.starts_with(DIGEST),
                "{text}"
            );
        }
    }
}
