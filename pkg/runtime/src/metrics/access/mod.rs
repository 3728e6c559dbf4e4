//! Authorization of HTTP clients by `TokenReview` and `SubjectAccessReview`.
//!
//! Results are cached by the token's digest: a busy client costs the API server little, and the token itself is not
//! stored. An unknown token is reviewed once for all paths. Reviews are limited per client, and recently valid
//! tokens have a queue of their own, so that a flood of bogus tokens locks nobody out.

mod cache;
mod queue;

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
use cache::{Cache, Key};
use queue::{ReviewPermit, ReviewQueue};

/// Time for which a permission is cached.
const PERMISSION_TTL: Duration = Duration::from_mins(1);
/// Time for which a refusal is cached; short, so that new roles take effect soon.
const REFUSAL_TTL: Duration = Duration::from_secs(10);
/// Time for which a valid token has priority over unknown ones.
const VALID_TOKEN_TTL: Duration = Duration::from_mins(15);
/// Maximum number of cached results of each kind.
const CACHE_SIZE: usize = 1024;
/// Timeout for each of the two calls.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a bearer token in bytes.
pub const MAX_TOKEN: usize = 16 * 1024;

/// Authorizer for bearer tokens on paths. Clones share the cache.
#[derive(Clone)]
pub struct Access {
    client: Client,
    audience: Option<&'static str>,
    results: Arc<Mutex<Results>>,
    queue: ReviewQueue,
}

/// Cached results of the API server. Refusals have caches of their own, so that they do not displace permissions.
struct Results {
    /// Permissions, by the digest of verb, path and token.
    allowed: Cache<()>,
    forbidden: Cache<()>,
    /// Refused tokens, by their digest.
    unknown: Cache<()>,
    valid: Cache<()>,
}

impl Default for Results {
    fn default() -> Self {
        Self {
            allowed: Cache::new(PERMISSION_TTL, CACHE_SIZE),
            forbidden: Cache::new(REFUSAL_TTL, CACHE_SIZE),
            unknown: Cache::new(REFUSAL_TTL, CACHE_SIZE),
            valid: Cache::new(VALID_TOKEN_TTL, CACHE_SIZE),
        }
    }
}

/// Cache keys of one request.
struct Keys {
    request: Key,
    token: Key,
}

/// Result of an authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The user may access the path.
    Allowed,
    /// The token is missing or unknown.
    Unauthenticated,
    /// The user is known and has no permission.
    Forbidden,
}

/// Failed authorization. A retry may succeed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The API server refused the review or did not answer.
    #[error("the API server did not review a token")]
    Review(#[source] kube::Error),
    /// The review timed out.
    #[error("the API server did not review a token in time")]
    Timeout,
    /// Too many tokens of this client wait for their review.
    #[error("too many tokens of one client wait to be reviewed")]
    TooManyWaiting,
}

impl AccessError {
    /// Returns status and `Retry-After` in seconds for a client with too many requests.
    pub fn refusal(&self) -> Option<(StatusCode, &'static str)> {
        match self {
            Self::TooManyWaiting => Some((StatusCode::TOO_MANY_REQUESTS, "1")),
            Self::Review(_) | Self::Timeout => None,
        }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    /// Returns an authorizer that uses `client`, whose user must be allowed to create both kinds of reviews.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            audience: None,
            results: Arc::default(),
            queue: ReviewQueue::default(),
        }
    }

    /// Accepts tokens for this audience as well as tokens for the API server. Such a token is useless elsewhere,
    /// even if it leaks.
    #[must_use]
    pub fn audience(mut self, audience: &'static str) -> Self {
        self.audience = Some(audience);
        self
    }

    /// Decides if the bearer of the request's token may `verb` the non-resource URL `path`. `peer` is the client.
    ///
    /// # Errors
    /// The API server did not review the token within ten seconds per call, or too many tokens of the client wait.
    pub async fn authorize(
        &self,
        peer: Option<Peer>,
        headers: &HeaderMap,
        verb: &str,
        path: &str,
    ) -> Result<Decision, AccessError> {
        let Some(token) = bearer_token(headers) else {
            return Ok(Decision::Unauthenticated);
        };
        let keys = Keys {
            request: Sha256::digest(format!("{verb} {path}\n{token}")).into(),
            token: Sha256::digest(token).into(),
        };
        if let Some(cached) = self.cached(&keys) {
            return Ok(cached);
        }
        let reviewed = timeout(
            CALL_TIMEOUT * 2,
            self.review_in_turn(peer, &keys, token, verb, path),
        )
        .await;
        let decision = reviewed.map_err(|_| AccessError::Timeout)??;
        self.store(&keys, decision);
        Ok(decision)
    }

    /// Returns the user of a token for the API server; `None` if the API server refuses the token. `peer` is the client.
    ///
    /// # Errors
    /// The API server did not review the token in time, or too many tokens of the client wait.
    pub async fn authenticate(
        &self,
        peer: Option<Peer>,
        token: &str,
    ) -> Result<Option<UserInfo>, AccessError> {
        let key = Sha256::digest(token).into();
        if self.results.lock().unknown.get(&key, Instant::now()).is_some() {
            return Ok(None);
        }
        let reviewed = timeout(CALL_TIMEOUT * 2, async {
            let _permit = self.permit(peer, &key).await?;
            self.user(token, None).await.map_err(AccessError::Review)
        });
        let user = reviewed.await.map_err(|_| AccessError::Timeout)??;
        let (mut results, now) = (self.results.lock(), Instant::now());
        match &user {
            Some(_) => results.valid.insert(key, (), now),
            None => results.unknown.insert(key, (), now),
        }
        Ok(user)
    }

    /// Decides if a user may `verb` the non-resource URL `path`; asks the API server every time.
    ///
    /// # Errors
    /// The API server did not answer in time.
    pub async fn may(&self, user: &UserInfo, verb: &str, path: &str) -> Result<bool, AccessError> {
        let asked = self.allowed(user.clone(), verb, path);
        let answer = timeout(CALL_TIMEOUT, asked).await;
        answer
            .map_err(|_| AccessError::Timeout)?
            .map_err(AccessError::Review)
    }

    /// Waits for the turn of a token.
    async fn permit(&self, peer: Option<Peer>, token: &Key) -> Result<ReviewPermit, AccessError> {
        let valid = self.results.lock().valid.get(token, Instant::now()).is_some();
        if valid {
            return Ok(self.queue.acquire_valid().await);
        }
        let turn = self.queue.acquire(peer).await;
        turn.ok_or(AccessError::TooManyWaiting)
    }

    async fn review_in_turn(
        &self,
        peer: Option<Peer>,
        keys: &Keys,
        token: &str,
        verb: &str,
        path: &str,
    ) -> Result<Decision, AccessError> {
        let _permit = self.permit(peer, &keys.token).await?;
        // Another request may have reviewed the same token in the meantime.
        if let Some(cached) = self.cached(keys) {
            return Ok(cached);
        }
        self.review(token, verb, path).await.map_err(AccessError::Review)
    }

    async fn review(&self, token: &str, verb: &str, path: &str) -> Result<Decision, kube::Error> {
        let mut user = self.user(token, None).await?;
        if user.is_none() && self.audience.is_some() {
            user = self.user(token, self.audience).await?;
        }
        let Some(user) = user else {
            return Ok(Decision::Unauthenticated);
        };
        let allowed = self.allowed(user, verb, path).await?;
        Ok(if allowed {
            Decision::Allowed
        } else {
            Decision::Forbidden
        })
    }

    fn store(&self, keys: &Keys, decision: Decision) {
        let (mut results, now) = (self.results.lock(), Instant::now());
        match decision {
            Decision::Allowed => {
                results.allowed.insert(keys.request, (), now);
                results.valid.insert(keys.token, (), now);
            }
            Decision::Forbidden => results.forbidden.insert(keys.request, (), now),
            Decision::Unauthenticated => results.unknown.insert(keys.token, (), now),
        }
    }

    fn cached(&self, keys: &Keys) -> Option<Decision> {
        let (results, now) = (self.results.lock(), Instant::now());
        if results.allowed.get(&keys.request, now).is_some() {
            Some(Decision::Allowed)
        } else if results.forbidden.get(&keys.request, now).is_some() {
            Some(Decision::Forbidden)
        } else {
            let unknown = results.unknown.get(&keys.token, now);
            unknown.map(|()| Decision::Unauthenticated)
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

/// Middleware that passes requests whose bearer may read the path.
pub(super) async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get().copied();
    let decision = access.authorize(peer, request.headers(), "get", request.uri().path());
    match decision.await {
        Ok(Decision::Allowed) => next.run(request).await,
        Ok(Decision::Unauthenticated) => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer")],
            "Unauthorized\n",
        )
            .into_response(),
        Ok(Decision::Forbidden) => (StatusCode::FORBIDDEN, "Forbidden\n").into_response(),
        Err(error) => {
            if let Some((status, retry_after)) = error.refusal() {
                return (
                    status,
                    [(header::RETRY_AFTER, retry_after)],
                    "Too many requests\n",
                )
                    .into_response();
            }
            tracing::warn!(error = %olm_text::chain(&error), "review of a metrics scraper failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n").into_response()
        }
    }
}

/// Returns the bearer token of a request, at most 16 KiB.
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN).then_some(token)
}

#[cfg(test)]
mod tests;
