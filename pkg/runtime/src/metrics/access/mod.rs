//! Who may read what is served: asked of the API server by `TokenReview` and `SubjectAccessReview`.
//!
//! Answers are kept for a while, by the token's digest, so that a busy client costs the API server little and the token
//! itself is not held. A token that nobody knows is asked for once, whatever it is brought for. Reviews are limited per
//! client, and tokens that were good lately do not wait for others, so that a flood of bogus tokens keeps nobody out.

mod recent;
mod turns;

use std::{
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
use tokio::time::timeout;

use crate::serve::Peer;
use recent::{Key, Recent};
use turns::Turns;

/// How long a permission is believed.
const KEEP: Duration = Duration::from_mins(1);
/// How long a refusal is believed; a new role should count soon.
const KEEP_REFUSAL: Duration = Duration::from_secs(10);
/// Time for which a token that was good is reviewed before others.
const KEEP_GOOD: Duration = Duration::from_mins(15);
/// Number of answers of each kind that are kept.
const KEPT: usize = 1024;
/// How long each of the two calls may take.
const CALL: Duration = Duration::from_secs(10);
/// Longer bearer tokens are not looked at.
const TOKEN_BYTES: usize = 16 * 1024;

/// Asks whether the bearer of a token may do something with a path. Clones share what they remember.
#[derive(Clone)]
pub struct Access {
    client: Client,
    audience: Option<&'static str>,
    answers: Arc<Mutex<Answers>>,
    turns: Turns,
}

/// Recent answers of the API server. Refusals have room of their own, so that they push out no permission.
struct Answers {
    /// Permissions, by the digest of verb, path and token.
    allowed: Recent<()>,
    forbidden: Recent<()>,
    /// Refused tokens, by their digest.
    unknown: Recent<()>,
    good: Recent<()>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            allowed: Recent::new(KEEP, KEPT),
            forbidden: Recent::new(KEEP_REFUSAL, KEPT),
            unknown: Recent::new(KEEP_REFUSAL, KEPT),
            good: Recent::new(KEEP_GOOD, KEPT),
        }
    }
}

/// The digests of one question.
struct Keys {
    question: Key,
    token: Key,
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
    /// Too many tokens of this client wait for their review.
    #[error("too many tokens of one client wait to be reviewed")]
    TooMany,
}

impl AccessError {
    /// The status and the seconds after which a client may ask again, when the client asks too much.
    pub fn refusal(&self) -> Option<(StatusCode, &'static str)> {
        match self {
            Self::TooMany => Some((StatusCode::TOO_MANY_REQUESTS, "1")),
            Self::Review(_) | Self::TooLate => None,
        }
    }
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
            turns: Turns::default(),
        }
    }

    /// Accepts tokens made for this audience, too, besides those for the API server itself. Such a token is of no
    /// use elsewhere, whoever gets hold of it.
    #[must_use]
    pub fn audience(mut self, audience: &'static str) -> Self {
        self.audience = Some(audience);
        self
    }

    /// Decides if the bearer of the request's token may do `verb` with the non-resource URL `path`. `peer` is the client.
    ///
    /// # Errors
    /// The API server could not be asked; each call is given up after ten seconds. Or too many tokens of the client wait.
    pub async fn verdict(
        &self,
        peer: Option<Peer>,
        headers: &HeaderMap,
        verb: &str,
        path: &str,
    ) -> Result<Verdict, AccessError> {
        let Some(token) = bearer(headers) else {
            return Ok(Verdict::Unauthenticated);
        };
        let keys = Keys {
            question: Sha256::digest(format!("{verb} {path}\n{token}")).into(),
            token: Sha256::digest(token).into(),
        };
        if let Some(kept) = self.kept(&keys) {
            return Ok(kept);
        }
        let asked = timeout(CALL * 2, self.ask(peer, &keys, token, verb, path)).await;
        let verdict = asked.map_err(|_| AccessError::TooLate)??;
        self.keep(&keys, verdict);
        Ok(verdict)
    }

    async fn ask(
        &self,
        peer: Option<Peer>,
        keys: &Keys,
        token: &str,
        verb: &str,
        path: &str,
    ) -> Result<Verdict, AccessError> {
        let good = self
            .answers
            .lock()
            .good
            .get(&keys.token, Instant::now())
            .is_some();
        let _turn = if good {
            self.turns.of_known().await
        } else {
            self.turns.of_client(peer).await.ok_or(AccessError::TooMany)?
        };
        // The same token may have been reviewed meanwhile.
        if let Some(kept) = self.kept(keys) {
            return Ok(kept);
        }
        self.review(token, verb, path).await.map_err(AccessError::Review)
    }

    async fn review(&self, token: &str, verb: &str, path: &str) -> Result<Verdict, kube::Error> {
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

    fn keep(&self, keys: &Keys, verdict: Verdict) {
        let (mut answers, now) = (self.answers.lock(), Instant::now());
        match verdict {
            Verdict::Allowed => {
                answers.allowed.insert(keys.question, (), now);
                answers.good.insert(keys.token, (), now);
            }
            Verdict::Forbidden => answers.forbidden.insert(keys.question, (), now),
            Verdict::Unauthenticated => answers.unknown.insert(keys.token, (), now),
        }
    }

    fn kept(&self, keys: &Keys) -> Option<Verdict> {
        let (answers, now) = (self.answers.lock(), Instant::now());
        if answers.allowed.get(&keys.question, now).is_some() {
            Some(Verdict::Allowed)
        } else if answers.forbidden.get(&keys.question, now).is_some() {
            Some(Verdict::Forbidden)
        } else {
            let unknown = answers.unknown.get(&keys.token, now);
            unknown.map(|()| Verdict::Unauthenticated)
        }
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
    let peer = request.extensions().get().copied();
    let verdict = access.verdict(peer, request.headers(), "get", request.uri().path());
    match verdict.await {
        Ok(Verdict::Allowed) => next.run(request).await,
        Ok(Verdict::Unauthenticated) => (StatusCode::UNAUTHORIZED, "Unauthorized\n").into_response(),
        Ok(Verdict::Forbidden) => (StatusCode::FORBIDDEN, "Forbidden\n").into_response(),
        Err(error) => {
            if let Some((status, after)) = error.refusal() {
                return (status, [(header::RETRY_AFTER, after)], "Too many requests\n").into_response();
            }
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
mod tests;
