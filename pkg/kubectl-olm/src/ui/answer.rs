//! Answers.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use olm_ui::live::error_page;

use crate::failure::Failure;

/// Returns a page as an answer.
pub(super) fn page(html: String) -> Response {
    Html(html).into_response()
}

/// Returns the bytes of a file with its media type.
pub(super) fn file(media_type: &'static str, bytes: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, media_type)], bytes).into_response()
}

/// Lets the browser keep an answer whose address names its content.
pub(super) fn kept(mut answer: Response) -> Response {
    let policy = HeaderValue::from_static("private, max-age=86400, immutable");
    answer.headers_mut().insert(header::CACHE_CONTROL, policy);
    answer
}

/// Returns the page of something that there is not.
pub(super) fn absent(what: &str) -> Response {
    (
        StatusCode::NOT_FOUND,
        page(error_page("Not found", what).into_string()),
    )
        .into_response()
}

/// Returns the page of a failure: a refusal of the API server has its status.
pub(super) fn failed(failure: &Failure) -> Response {
    let (status, title) = match failure.refusal() {
        Some(401) => (StatusCode::UNAUTHORIZED, "Not signed in"),
        Some(403) => (StatusCode::FORBIDDEN, "You may not read this"),
        _ => (StatusCode::BAD_GATEWAY, "The cluster could not be asked"),
    };
    let answer = error_page(title, &failure.message());
    (status, page(answer.into_string())).into_response()
}
