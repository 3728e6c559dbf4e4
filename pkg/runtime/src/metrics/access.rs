//! Who may read the metrics: asked of the API server by `TokenReview` and `SubjectAccessReview`.
//!
//! Answers are kept for a while, by the token's digest, so that a busy scraper costs the API
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
/// How many answers are kept; beyond it all are asked for again.
const KEPT: usize = 256;
/// How long each of the two calls may take.
const CALL: Duration = Duration::from_secs(10);
/// Reviews under way at once; more wait.
const AT_ONCE: usize = 4;
/// Longer bearer tokens are not looked at.
const TOKEN_BYTES: usize = 16 * 1024;

/// When it was asked and what was said, by the digest of path and token.
type Answers = HashMap<[u8; 32], (Instant, Verdict)>;

#[derive(Clone)]
pub(super) struct Access {
    client: Client,
    answers: Arc<Mutex<Answers>>,
    reviews: Arc<Semaphore>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Unauthenticated,
    Forbidden,
}

impl Access {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            answers: Arc::default(),
            reviews: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    async fn verdict(&self, token: &str, path: &str) -> Result<Verdict, kube::Error> {
        let key: [u8; 32] = Sha256::digest(format!("{path}\n{token}")).into();
        if let Some(kept) = self.kept(&key) {
            return Ok(kept);
        }
        let _permit = self.reviews.acquire().await;
        let verdict = match self.user(token).await? {
            None => Verdict::Unauthenticated,
            Some(user) => {
                if self.allowed(user, path).await? {
                    Verdict::Allowed
                } else {
                    Verdict::Forbidden
                }
            }
        };
        let mut answers = self.answers.lock();
        if answers.len() >= KEPT {
            answers.clear();
        }
        answers.insert(key, (Instant::now(), verdict));
        Ok(verdict)
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

    async fn user(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
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

    async fn allowed(&self, user: UserInfo, path: &str) -> Result<bool, kube::Error> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
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
    let Some(token) = bearer(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "Unauthorized\n").into_response();
    };
    let verdict = timeout(CALL * 2, access.verdict(token, request.uri().path())).await;
    match verdict {
        Ok(Ok(Verdict::Allowed)) => next.run(request).await,
        Ok(Ok(Verdict::Unauthenticated)) => (StatusCode::UNAUTHORIZED, "Unauthorized\n").into_response(),
        Ok(Ok(Verdict::Forbidden)) => (StatusCode::FORBIDDEN, "Forbidden\n").into_response(),
        Ok(Err(error)) => {
            tracing::warn!(error = %crate::telemetry::chain(&error), "metrics reader cannot be reviewed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n").into_response()
        }
        Err(_) => {
            tracing::warn!("metrics reader cannot be reviewed in time");
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
