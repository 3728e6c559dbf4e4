//! Authentication challenges of registries, and token requests.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_auth::{ChallengeRef, parser::ChallengeParser};
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;
use url::{Host, Url, form_urlencoded};

use crate::auth::Credentials;

/// Client ID in token requests.
const CLIENT: &str = "olm";

/// Authentication challenge of a registry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password with every request.
    Basic,
    /// Token from another service.
    Bearer { realm: Url, service: Option<String> },
}

/// Response of a token service; it has one of the two fields.
#[derive(Deserialize)]
pub(super) struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Token {
    pub(super) fn text(self) -> Option<String> {
        self.token.or(self.access_token).filter(|token| !token.is_empty())
    }
}

impl Challenge {
    /// Parses the challenge of a 401 response; bearer is preferred.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, &'static str> {
        let mut basic = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let text = value.to_str().map_err(|_| "its challenge is no text")?;
            for challenge in ChallengeParser::new(text) {
                let challenge = challenge.map_err(|_| "its challenge is malformed")?;
                if challenge.scheme.eq_ignore_ascii_case("bearer") {
                    return Self::bearer(&challenge).map(Some);
                }
                basic |= challenge.scheme.eq_ignore_ascii_case("basic");
            }
        }
        Ok(basic.then_some(Self::Basic))
    }

    fn bearer(challenge: &ChallengeRef<'_>) -> Result<Self, &'static str> {
        let param = |wanted: &str| {
            let (_, value) = challenge
                .params
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
            Some(value.to_unescaped())
        };
        let realm = param("realm").ok_or("its challenge has no realm")?;
        let realm = Url::parse(&realm).map_err(|_| "its realm is no URL")?;
        Ok(Self::Bearer {
            realm,
            service: param("service"),
        })
    }
}

/// Returns user and password as a header.
pub(super) fn basic_header(credentials: &Credentials) -> Option<HeaderValue> {
    let Credentials::Password { user, password } = credentials else {
        return None;
    };
    let encoded = STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::try_from(format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the form that exchanges a refresh token for a token (OAuth 2 as in the distribution project).
pub(super) fn refresh_form(token: &str, service: Option<&str>, scope: &str) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token")
        .append_pair("client_id", CLIENT)
        .append_pair("refresh_token", token)
        .append_pair("scope", scope);
    if let Some(service) = service {
        form.append_pair("service", service);
    }
    form.finish()
}

/// Returns true if a token service belongs to a registry: the same host at any port, or both names in one domain of two
/// labels. A registry's owner could ask for its password directly. This check stops registries that are made to send
/// others' credentials away.
pub(super) fn same_owner(registry: &str, realm: &str) -> bool {
    let realm = realm.trim_start_matches('[').trim_end_matches(']');
    if registry.eq_ignore_ascii_case(realm) {
        return true;
    }
    let domain = |host: &str| {
        let Ok(Host::Domain(name)) = Host::parse(host) else {
            return None;
        };
        let mut labels = name.rsplit('.');
        let (top, second) = (labels.next()?.to_owned(), labels.next()?.to_owned());
        Some((top, second))
    };
    domain(registry).is_some_and(|ours| domain(realm) == Some(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_services_of_a_registry() {
        for (registry, realm) in [
            ("registry-1.docker.io", "auth.docker.io"),
            ("registry.gitlab.com", "gitlab.com"),
            ("quay.io", "quay.io"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "[::1]"),
            ("localhost", "localhost"),
        ] {
            assert!(same_owner(registry, realm), "{registry} {realm}");
        }
        for (registry, realm) in [
            ("quay.io", "evil.io"),
            ("quay.io", "quay.io.evil.example"),
            ("127.0.0.1", "1.0.0.1"),
            ("10.0.0.1", "10.1.0.1"),
            ("localhost", "io"),
            ("quay.io", ""),
        ] {
            assert!(!same_owner(registry, realm), "{registry} {realm}");
        }
    }

    fn of(values: &[&str]) -> Result<Option<Challenge>, &'static str> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        Challenge::of(&headers)
    }

    #[test]
    fn reads_challenges() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["Basic realm=\"x\""]), Ok(Some(Challenge::Basic)));
        let bearer = Challenge::Bearer {
            realm: "https://auth.example/token".parse().unwrap(),
            service: Some("reg".to_owned()),
        };
        let text = "Bearer realm=\"https://auth.example/token\",service=\"reg\",scope=\"a:b:pull\"";
        assert_eq!(of(&["Basic realm=\"x\"", text]), Ok(Some(bearer)));
        assert!(of(&["Bearer service=\"reg\""]).is_err());
        assert!(of(&["Bearer realm=\"no url\""]).is_err());
    }
}
