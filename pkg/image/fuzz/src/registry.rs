//! The parsers of registries' answers.

#[path = "../../src/registry/retry.rs"]
mod retry;
#[path = "../../src/registry/token.rs"]
mod token;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

pub(crate) struct RegistryError;

impl RegistryError {
    fn retry_delay(&self) -> Option<Duration> {
        None
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Reads a challenge, a token and a delay as a registry's answer has them.
pub(crate) fn answer(text: &[u8]) {
    if let Ok(token) = serde_json::from_slice::<token::Token>(text) {
        assert!(token.text().is_none_or(|token| !token.is_empty()));
    }
    let Ok(value) = HeaderValue::from_bytes(text) else {
        return;
    };
    let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, value.clone()), (RETRY_AFTER, value)]);
    retry::retry_after(&headers, SystemTime::UNIX_EPOCH);
    if let Ok(Some(token::Challenge::Bearer { realm, service })) = token::Challenge::of(&headers) {
        let host = realm.host_str().unwrap_or_default();
        let registry = host.trim_start_matches('[').trim_end_matches(']');
        assert!(token::same_owner(registry, host));
        let form = token::refresh_form("secret", service.as_deref(), "repository:a:pull");
        assert!(form.is_ascii() && !form.contains(char::is_whitespace));
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) payload: Vec<u8>,
    pub(crate) signature: String,
}
