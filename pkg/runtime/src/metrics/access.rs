//! Who may read what is served: asked of the API server by `TokenReview` and `SubjectAccessReview`.
//!
//! Answers are kept for a while, by the token's digest, so that a busy client costs the API
//! server little and the token itself is not held.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::{sync::Semaphore, time::timeout};

/// How long a permission is believed.
const KEEP: Duration = Duration::from_mins(1);
/// How long a refusal is believed; a new role should count soon.
const KEEP_REFUSAL: Duration = Duration::from_secs(10);
/// How many answers are kept; beyond it refusals go first, then all.
const KEPT: usize = 1024;
/// How long each of the two calls may take.
const CALL: Duration = Duration::from_secs(10);
/// Reviews under way at once; more wait.
const AT_ONCE: usize = 4;
/// Longer bearer tokens are not looked at.
const TOKEN_BYTES: usize = 16 * 1024;

/// When it was asked and what was said, by the digest of verb, path and token.
type Answers = HashMap<[u8; 32], (Instant, Verdict)>;

/// Asks whether the bearer of a token may do something with a path. Clones share what they remember.
#[derive(Clone)]
pub struct Access {
    client: Client,
    audience: Option<&'static str>,
    answers: Arc<Mutex<Answers>>,
    reviews: Arc<Semaphore>,
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The user may do it.
    Allowed,
    /// There is no token, or nobody knows it.
    Unauthenticated,
    /// The user is known but may not do it.
    Forbidden,
}

/// Why there is no verdict. Asking again may help.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The API server refused or could not be asked.
    #[error("the API server did not review a token")]
    Review(#[source] kube::Error),
    /// It took too long.
    #[error("the API server did not review a token in time")]
    TooLate,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    /// Asks with `client`, whose user must be allowed to create both kinds of reviews.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            audience: None,
            answers: Arc::default(),
            reviews: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// Accepts tokens made for this audience, too, besides those for the API server itself. Such a token is of no
    /// use elsewhere, whoever gets hold of it.
    #[must_use]
    pub fn audience(mut self, audience: &'static str) -> Self {
        self.audience = Some(audience);
        self
    }

    /// Whether the bearer of the request's token may do `verb` with the non-resource URL `path`.
    ///
    /// # Errors
    /// The API server could not be asked; each call is given up after ten seconds.
    pub async fn verdict(&self, headers: &HeaderMap, verb: &str, path: &str) -> Result<Verdict, AccessError> {
        let Some(token) = bearer(headers) else {
            return Ok(Verdict::Unauthenticated);
        };
        let key: [u8; 32] = Sha256::digest(format!("{verb} {path}\n{token}")).into();
        if let Some(kept) = self.kept(&key) {
            return Ok(kept);
        }
        let asked = timeout(CALL * 2, self.ask(token, verb, path)).await;
        let verdict = asked
            .map_err(|_| AccessError::TooLate)?
            .map_err(AccessError::Review)?;
        self.keep(key, verdict);
        Ok(verdict)
    }

    async fn ask(&self, token: &str, verb: &str, path: &str) -> Result<Verdict, kube::Error> {
        let _permit = self.reviews.acquire().await;
        let mut user = self.user(token, None).await?;
        if user.is_none() && self.audience.is_some() {
            user = self.user(token, self.audience).await?;
        }
        let Some(user) = user else {
            return Ok(Verdict::Unauthenticated);
        };
        let allowed = self.allowed(user, verb, path).await?;
        Ok(if allowed {
            Verdict::Allowed
        } else {
            Verdict::Forbidden
        })
    }

    fn keep(&self, key: [u8; 32], verdict: Verdict) {
        let mut answers = self.answers.lock();
        if answers.len() >= KEPT {
            // Who has no token must not cost those their place who have one.
            answers.retain(|_, (asked, verdict)| *verdict == Verdict::Allowed && asked.elapsed() < KEEP);
            if answers.len() >= KEPT {
                answers.clear();
            }
        }
        answers.insert(key, (Instant::now(), verdict));
    }

    fn kept(&self, key: &[u8; 32]) -> Option<Verdict> {
        let answers = self.answers.lock();
        let (asked, verdict) = answers.get(key)?;
        let keep = if *verdict == Verdict::Allowed {
            KEEP
        } else {
            KEEP_REFUSAL
        };
        (asked.elapsed() < keep).then_some(*verdict)
    }

    async fn user(&self, token: &str, audience: Option<&str>) -> Result<Option<UserInfo>, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: audience.map(|audience| vec![audience.to_owned()]),
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let status = api
            .create(&PostParams::default(), &review)
            .await?
            .status
            .unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn allowed(&self, user: UserInfo, verb: &str, path: &str) -> Result<bool, kube::Error> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some(verb.to_owned()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

/// Lets a request pass when its bearer token's user may read the path.
pub(super) async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    match access
        .verdict(request.headers(), "get", request.uri().path())
        .await
    {
        Ok(Verdict::Allowed) => next.run(request).await,
        Ok(Verdict::Unauthenticated) => (StatusCode::UNAUTHORIZED, "Unauthorized\n").into_response(),
        Ok(Verdict::Forbidden) => (StatusCode::FORBIDDEN, "Forbidden\n").into_response(),
        Err(error) => {
            tracing::warn!(error = %crate::telemetry::chain(&error), "metrics reader cannot be reviewed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n").into_response()
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= TOKEN_BYTES)
        .then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_tokens_count() {
        let headers = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            headers
        };
        assert_eq!(bearer(&headers("Bearer abc")), Some("abc"));
        assert_eq!(bearer(&headers("bearer abc")), Some("abc"));
        assert_eq!(bearer(&headers("Basic abc")), None);
        assert_eq!(bearer(&headers("Bearer ")), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
