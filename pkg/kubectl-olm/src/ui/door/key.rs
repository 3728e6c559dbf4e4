//! Door of the user of this machine: a random key, which becomes a cookie.

use std::sync::Arc;

use axum::extract::Query;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use data_encoding::HEXLOWER;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Admission, Knock, cookies, refusal};
use crate::ui::reader::Reader;

/// Random secret of 128 bits.
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

/// Query of the address that the command prints.
#[derive(Deserialize)]
struct Entry {
    key: Option<String>,
}

/// Door that a key opens.
pub(crate) struct KeyDoor {
    key: Key,
    port: u16,
    reader: Arc<Reader>,
}

impl KeyDoor {
    /// Creates the door of a server on a port of the loopback address. `reader` is the user of this machine.
    pub(crate) fn new(key: Key, port: u16, reader: Reader) -> Self {
        Self {
            key,
            port,
            reader: Arc::new(reader),
        }
    }

    /// Answers only requests to this host by name and with the key. The key of the first address becomes a cookie.
    pub(super) fn admit(&self, knock: &Knock) -> Admission {
        // A page of another host whose name leads to this address must not read anything.
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let is_own = |host: &str| names.iter().any(|name| host == format!("{name}:{}", self.port));
        if !knock.authority().is_some_and(is_own) {
            return refused(
                StatusCode::MISDIRECTED_REQUEST,
                "Wrong host",
                "These pages are at 127.0.0.1: use the address that kubectl olm ui has printed.",
            );
        }
        if knock.is_open() {
            return Admission::Open;
        }
        let entry = Query::<Entry>::try_from_uri(&knock.uri)
            .ok()
            .and_then(|entry| entry.0.key);
        if knock.uri.path() == "/" && entry.is_some_and(|key| self.key.is(&key)) {
            return Admission::Answer(Box::new(self.remember()));
        }
        if cookies(&knock.headers, &self.cookie()).any(|value| self.key.is(value)) {
            return Admission::Enter(self.reader.clone());
        }
        refused(
            StatusCode::UNAUTHORIZED,
            "Key missing",
            "Use the address that kubectl olm ui has printed: it has the key.",
        )
    }

    /// Returns the name of the cookie: browsers share cookies between the ports of a host.
    fn cookie(&self) -> String {
        format!("kubectl-olm-ui-{}", self.port)
    }

    fn remember(&self) -> Response {
        let cookie = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Lax",
            self.cookie(),
            self.key.text()
        );
        // The address of the next page has no key.
        ([(header::SET_COOKIE, cookie)], Redirect::to("/extensions.html")).into_response()
    }
}

fn refused(status: StatusCode, title: &str, message: &str) -> Admission {
    Admission::Answer(Box::new(refusal(status, title, message)))
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
