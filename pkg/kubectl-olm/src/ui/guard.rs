//! Guard that every request passes: the door, and the headers of every answer.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use olm_ui::LIVE_POLICY;

use super::Server;
use super::door::{Admission, Door, Knock};

/// Headers of every answer besides the policy: pages are not stored, framed, sniffed, or read by pages of others.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// Answers whom the door admits.
pub(super) async fn guard(State(server): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let knock = Knock::of(&request);
    let mut answer = match server.door.admit(&knock).await {
        Admission::Enter(reader) => {
            let session = reader.session;
            request.extensions_mut().insert(reader);
            let answer = next.run(request).await;
            match (&server.door, session) {
                // The token has ended since its review.
                (Door::Tokens(door), Some(session)) if answer.status() == StatusCode::UNAUTHORIZED => {
                    door.expired(&knock, session)
                }
                _ => answer,
            }
        }
        Admission::Open => next.run(request).await,
        Admission::Answer(answer) => *answer,
    };
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let policy = format!("{LIVE_POLICY}; frame-ancestors 'none'");
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'")));
    answer
}
