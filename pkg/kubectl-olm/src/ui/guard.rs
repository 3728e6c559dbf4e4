//! Guard that every request passes: the host's name, the key, and the headers of every answer.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use olm_ui::LIVE_POLICY;
use olm_ui::live::error_page;
use serde::Deserialize;

use super::Server;
use super::answer::page;

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

/// Query of the address that the command prints.
#[derive(Deserialize)]
struct Entry {
    key: Option<String>,
}

/// Answers only requests to this host by name and with the key. The key of the first address becomes a cookie.
pub(super) async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let mut answer = match admit(&server, request.headers(), request.uri()) {
        Admission::Enter => next.run(request).await,
        Admission::Remember => remember(&server),
        Admission::Refuse(status, title, message) => {
            (status, page(error_page(title, message).into_string())).into_response()
        }
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

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Enter,
    /// The address has the key: it becomes a cookie.
    Remember,
    Refuse(StatusCode, &'static str, &'static str),
}

fn admit(server: &Server, headers: &HeaderMap, uri: &Uri) -> Admission {
    // A page of another host whose name leads to this address must not read anything.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let names = ["127.0.0.1", "localhost", "[::1]"];
    let is_own = |host: &str| names.iter().any(|name| host == format!("{name}:{}", server.port));
    if !host.is_some_and(is_own) {
        return Admission::Refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "Wrong host",
            "These pages are at 127.0.0.1: use the address that kubectl olm ui has printed.",
        );
    }
    // The page of a refusal looks like the others.
    if matches!(uri.path(), "/style.css" | "/icon.svg") {
        return Admission::Enter;
    }
    let entry = Query::<Entry>::try_from_uri(uri)
        .ok()
        .and_then(|entry| entry.0.key);
    if uri.path() == "/" && entry.is_some_and(|key| server.key.is(&key)) {
        return Admission::Remember;
    }
    let name = cookie(server.port);
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    if pairs.any(|(key, value)| key == name && server.key.is(value)) {
        return Admission::Enter;
    }
    Admission::Refuse(
        StatusCode::UNAUTHORIZED,
        "Key missing",
        "Use the address that kubectl olm ui has printed: it has the key.",
    )
}

/// Returns the name of the cookie: browsers share cookies between the ports of a host.
fn cookie(port: u16) -> String {
    format!("kubectl-olm-ui-{port}")
}

fn remember(server: &Server) -> Response {
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Lax",
        cookie(server.port),
        server.key.text()
    );
    // The address of the next page has no key.
    ([(header::SET_COOKIE, cookie)], Redirect::to("/extensions.html")).into_response()
}
