//! Key of a server.

use data_encoding::HEXLOWER;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use sha2::{Digest as _, Sha256};

/// Random secret that a reader has to know.
pub(crate) struct Key(String);

impl Key {
    /// Draws a key of 128 bits from the operating system.
    pub(crate) fn new() -> Self {
        let mut bytes = [0; 16];
        // Without random numbers nothing on this machine is secret, TLS included.
        OsRng
            .try_fill_bytes(&mut bytes)
            .unwrap_or_else(|_| std::process::abort());
        Self(HEXLOWER.encode(&bytes))
    }

    /// Returns the key as text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if `text` is the key. The time that it takes tells nothing about the key.
    pub(crate) fn is(&self, text: &str) -> bool {
        Sha256::digest(self.0.as_bytes()) == Sha256::digest(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn only_the_key_is_the_key() {
        let (key, other) = (Key::new(), Key::new());
        assert!(key.is(key.text()) && key.text().len() == 32);
        for wrong in ["", other.text(), &key.text()[1..], &format!("{}0", key.text())] {
            assert!(!key.is(wrong));
        }
    }
}
