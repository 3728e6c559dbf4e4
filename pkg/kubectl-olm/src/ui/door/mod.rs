//! Doors of the server: who may read the pages.
//!
//! On loopback a random key opens the pages about the user's own cluster. In a cluster each reader brings a token.

mod attempts;
mod key;
mod sessions;
mod sign_in;
mod tokens;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{self, HeaderName};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use olm_runtime::serve::Peer;
use olm_ui::live::error_page;

use super::answer::page;
use super::reader::Reader;

pub(crate) use key::{Key, KeyDoor};
pub(super) use sessions::SessionKey;
pub(super) use sign_in::{sign_in, sign_out};
pub(crate) use tokens::{TokenDoor, TokenSettings};

/// Way into the pages.
pub(crate) enum Door {
    /// A key, for the user of this machine.
    Key(KeyDoor),
    /// Tokens of readers.
    Tokens(Box<TokenDoor>),
}

/// Decision about a request.
pub(super) enum Admission {
    /// The reader may read.
    Enter(Arc<Reader>),
    /// The path shows nothing of the cluster.
    Open,
    /// The request has this answer.
    Answer(Box<Response>),
}

/// Parts of a request that identify its sender.
pub(super) struct Knock {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) peer: Option<Peer>,
}

impl Knock {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            peer: request.extensions().get().copied(),
        }
    }

    /// Returns the authority that the request is for: HTTP/2 has it in the address, HTTP/1.1 in the header `Host`.
    fn authority(&self) -> Option<&str> {
        let host = self.headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        self.uri.authority().map(Authority::as_str).or(host)
    }

    /// Returns true if the path has nothing of the cluster: the pages of refusals look like the others.
    fn is_open(&self) -> bool {
        matches!(self.uri.path(), "/style.css" | "/icon.svg")
    }
}

impl Door {
    pub(super) async fn admit(&self, knock: &Knock) -> Admission {
        match self {
            Self::Key(door) => door.admit(knock),
            Self::Tokens(door) => door.admit(knock).await,
        }
    }

    /// Waits until the reader must not read any more.
    pub(super) async fn ended(&self, reader: &Reader) {
        match self {
            Self::Key(_) => std::future::pending().await,
            Self::Tokens(door) => door.ended(reader).await,
        }
    }
}

/// Returns the cookies of a request with this name.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(header::COOKIE).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(move |(key, value)| (key == name).then_some(value))
}

/// Returns the refusal of a request.
fn refusal(status: StatusCode, title: &str, message: &str) -> Response {
    (status, page(error_page(title, message).into_string())).into_response()
}

/// Sets a header of an answer.
fn with_header(mut answer: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().append(name, value);
    }
    answer
}
