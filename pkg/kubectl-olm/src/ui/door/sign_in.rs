//! The form that takes a token, and the end of a session.
//!
//! A form of another site cannot sign a reader in: the request must have a cookie and a field with the same random value, and the
//! cookie's prefix keeps other hosts of the domain from setting it. Browsers also say from where a request comes.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use olm_runtime::metrics::access::MAX_TOKEN;
use olm_ui::live::sign_in_page;
use tokio::time::timeout;
use url::form_urlencoded;

use super::key::Key;
use super::tokens::SESSION_COOKIE;
use super::{Door, Knock, TokenDoor, cookies, refusal, with_header};
use crate::ui::Shared;
use crate::ui::answer::{absent, page};

/// Name of the cookie with the random value of the form.
const FORM_COOKIE: &str = "__Host-olm-ui-form";
/// Length of the random value in hex digits.
const VALUE: usize = 32;
/// Maximum size of a form in bytes: a token whose every character is escaped, and the other field.
pub(in crate::ui) const MAX_FORM: usize = MAX_TOKEN * 3 + 1024;
/// Time limit for the upload of a form. Anyone may send one, and a request holds one of the server's permits until its body has arrived.
const UPLOAD: Duration = Duration::from_secs(5);

/// Returns the sign-in page; `message` says why a former attempt failed.
pub(in crate::ui) fn form(knock: &Knock, status: StatusCode, message: &str) -> Response {
    let former = cookies(&knock.headers, FORM_COOKIE).find(|value| is_value(value));
    // Several open forms of a browser have one value.
    let value = former.map_or_else(|| Key::new().text().to_owned(), ToOwned::to_owned);
    let shown = page(sign_in_page(&value, message).into_string());
    let cookie = format!("{FORM_COOKIE}={value}; Path=/; Secure; HttpOnly; SameSite=Strict");
    let answer = with_header((status, shown).into_response(), header::SET_COOKIE, &cookie);
    if status == StatusCode::UNAUTHORIZED {
        // HTTP requires a challenge. Browsers open no dialog for this scheme, and show the form.
        return with_header(answer, header::WWW_AUTHENTICATE, "Bearer");
    }
    answer
}

fn is_value(text: &str) -> bool {
    text.len() == VALUE && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Answers a sign-in: `GET` with the form, `POST` with a session.
pub(in crate::ui) async fn sign_in(server: Shared, request: Request) -> Response {
    let Door::Tokens(door) = &server.door else {
        return absent("There is no such page.");
    };
    let knock = Knock::of(&request);
    if !request.method().is_safe() {
        let upload = axum::body::to_bytes(request.into_body(), MAX_FORM);
        return match timeout(UPLOAD, upload).await {
            Ok(Ok(body)) => post(door, &knock, &body).await,
            Ok(Err(_)) => form(
                &knock,
                StatusCode::PAYLOAD_TOO_LARGE,
                "The token is too long: at most 16 KiB.",
            ),
            Err(_) => form(
                &knock,
                StatusCode::REQUEST_TIMEOUT,
                "The form did not arrive in time. Enter the token again.",
            ),
        };
    }
    form(&knock, StatusCode::OK, "")
}

async fn post(door: &TokenDoor, knock: &Knock, body: &Bytes) -> Response {
    let (mut value, mut token) = (String::new(), String::new());
    for (name, text) in form_urlencoded::parse(body) {
        match name.as_ref() {
            "form" => value = text.into_owned(),
            "token" => token = text.trim().to_owned(),
            _ => {}
        }
    }
    let known = cookies(&knock.headers, FORM_COOKIE).any(|cookie| is_value(cookie) && cookie == value);
    if !known || !is_form(&knock.headers) || comes_from_elsewhere(&knock.headers) {
        let message = "The form was out of date, or not of these pages. Enter the token again.";
        return form(knock, StatusCode::FORBIDDEN, message);
    }
    // Tokens are texts of visible ASCII; nothing else may become a header.
    if token.is_empty() || token.len() > MAX_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message =
            "This is no token: a token is one word of at most 16 KiB, as kubectl create token prints it.";
        return form(knock, StatusCode::BAD_REQUEST, message);
    }
    match door.sign_in(knock, &token).await {
        Ok(id) => {
            let cookie = format!(
                "{SESSION_COOKIE}={}; Path=/; Secure; HttpOnly; SameSite=Strict",
                id.text()
            );
            let answer = Redirect::to("/extensions.html").into_response();
            with_header(answer, header::SET_COOKIE, &cookie)
        }
        Err(closed) => {
            let (status, message) = closed.message("the form");
            form(knock, status, &message)
        }
    }
}

/// Ends the session. The cookie comes only with requests of these pages.
pub(in crate::ui) async fn sign_out(server: Shared, request: Request) -> Response {
    let Door::Tokens(door) = &server.door else {
        return absent("There is no such page.");
    };
    let knock = Knock::of(&request);
    if comes_from_elsewhere(&knock.headers) {
        let message = "A page of another site asked to sign you out.";
        return refusal(StatusCode::FORBIDDEN, "Not signed out", message);
    }
    door.forget(&knock);
    let cookie = format!("{SESSION_COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
    let answer = with_header(
        Redirect::to("/sign-in").into_response(),
        header::SET_COOKIE,
        &cookie,
    );
    // Icons of packages stay in the browser's cache otherwise.
    with_header(
        answer,
        header::HeaderName::from_static("clear-site-data"),
        "\"cache\"",
    )
}

fn is_form(headers: &HeaderMap) -> bool {
    let type_ = headers.get(header::CONTENT_TYPE);
    let type_ = type_.and_then(|type_| type_.to_str().ok()).unwrap_or_default();
    let essence = type_.split(';').next().unwrap_or_default();
    essence
        .trim()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Returns true if the browser says that the request comes from a page of another origin.
fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    headers
        .get("sec-fetch-site")
        .is_some_and(|site| site != "same-origin" && site != "none")
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::body::Body;
    use axum::extract::State;
    use futures::stream;

    use super::super::tokens::tests::door;
    use super::*;
    use crate::ui::Server;

    #[tokio::test(start_paused = true)]
    async fn a_form_that_never_arrives_ends() {
        let door = door(axum::Router::new()).await;
        let server = Server::new(Door::Tokens(Box::new(door)));
        let body = Body::from_stream(stream::pending::<io::Result<Bytes>>());
        let request = Request::post("/sign-in").body(body).unwrap();
        let answer = timeout(UPLOAD * 2, sign_in(State(server.into()), request)).await;
        assert_eq!(answer.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[test]
    fn a_form_for_who_is_not_signed_in_is_a_challenge() {
        let request = Request::new(Body::empty());
        for (status, challenged) in [(StatusCode::UNAUTHORIZED, true), (StatusCode::OK, false)] {
            let answer = form(&Knock::of(&request), status, "");
            assert_eq!(
                answer.headers().contains_key(header::WWW_AUTHENTICATE),
                challenged
            );
        }
    }
}
