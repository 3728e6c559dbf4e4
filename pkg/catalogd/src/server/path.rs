//! Path cleaning like Go's `ServeMux`: unclean paths are redirected to clean ones.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Redirects paths with `//`, `/./` and `/../`.
pub(super) async fn clean_paths(request: Request, next: Next) -> Response {
    match cleaned(request.uri().path()) {
        Some(path) => redirect(request.method(), &path, request.uri().query()),
        None => next.run(request).await,
    }
}

/// Returns the clean form of a path if it differs. It always begins with exactly one slash, so it never names another
/// host.
fn cleaned(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let mut clean = String::with_capacity(path.len());
    for part in &parts {
        clean.push('/');
        clean.push_str(part);
    }
    if clean.is_empty() || path.ends_with('/') {
        clean.push('/');
    }
    (clean != path).then_some(clean)
}

fn redirect(method: &Method, path: &str, query: Option<&str>) -> Response {
    let location = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let Ok(value) = HeaderValue::from_str(&location) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let escaped = location
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;");
    let body = match *method {
        Method::GET => Body::from(format!("<a href=\"{escaped}\">Temporary Redirect</a>.\n\n")),
        _ => Body::empty(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(header::LOCATION, value);
    if matches!(*method, Method::GET | Method::HEAD) {
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleans_like_go() {
        for (path, clean) in [
            ("/", None),
            ("/a/b", None),
            ("/a/b/", None),
            ("//a", Some("/a")),
            ("/catalogs//api/v1/all", Some("/catalogs/api/v1/all")),
            ("/a/./b/../c", Some("/a/c")),
            ("/../../etc", Some("/etc")),
            ("//evil.example/..", Some("/")),
            ("/a//", Some("/a/")),
        ] {
            assert_eq!(cleaned(path).as_deref(), clean, "{path}");
        }
    }
}
