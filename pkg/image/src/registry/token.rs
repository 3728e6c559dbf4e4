//! What a registry's challenge asks for, and the token it leads to.

use http_auth::{ChallengeRef, parser::ChallengeParser};
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use serde::Deserialize;
use url::Url;

/// How a registry wants to be convinced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password with every request.
    Basic,
    /// A token from another service.
    Bearer { realm: Url, service: Option<String> },
}

/// A token service's answer; one of the two names is there.
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
    /// The challenge of an answer 401; bearer is preferred.
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

#[cfg(test)]
mod tests {
    use super::*;

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
