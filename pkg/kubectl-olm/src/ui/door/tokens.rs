//! Door of the readers of a cluster: each brings a token, by an authenticating proxy or by the form of the sign-in page.
//!
//! A `TokenReview` says whose token it is. Everything a reader sees is read with the reader's own token.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::Response;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Config;
use olm_runtime::metrics::access::{Access, AccessError, bearer_token};
use olm_runtime::serve::Peer;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
use super::key::Key;
use super::sessions::{SessionKey, Sessions};
use super::sign_in::form;
use super::{Admission, Knock, cookies, refusal, with_header};
use crate::cli::AccessArgs;
use crate::source::{Bearer, CatalogdAddress, Cluster};
use crate::ui::reader::Reader;

/// Name of the cookie with the identity of a session. Browsers accept the prefix only over HTTPS, for this host and all paths.
pub(super) const SESSION_COOKIE: &str = "__Host-olm-ui";
/// Interval between two checks of a reader who follows the cluster.
const CHECK: Duration = Duration::from_secs(20);

/// Settings of the door.
pub(crate) struct TokenSettings {
    /// The API server. Its identity is used for reviews alone.
    pub(crate) config: Config,
    /// Reviews of tokens and rights.
    pub(crate) access: Access,
    /// catalogd.
    pub(crate) catalogd: CatalogdAddress,
    /// How images are pulled, and the namespace of the controllers.
    pub(crate) images: AccessArgs,
    /// Host names under which the pages are reached, on any port.
    pub(crate) hosts: Vec<String>,
    /// End of the server.
    pub(crate) shutdown: CancellationToken,
}

/// Door that tokens open.
pub(crate) struct TokenDoor {
    settings: TokenSettings,
    sessions: Sessions,
    attempts: Attempts,
}

/// Reason why a token opens nothing.
pub(super) enum Closed {
    /// The API server does not accept the token.
    Unknown,
    /// There are too many attempts, or too many sessions.
    Busy,
    /// The API server was not asked, or did not answer.
    NotReviewed,
}

impl TokenDoor {
    pub(crate) fn new(settings: TokenSettings) -> Self {
        Self {
            settings,
            sessions: Sessions::default(),
            attempts: Attempts::default(),
        }
    }

    pub(super) async fn admit(&self, knock: &Knock) -> Admission {
        let answer = |answer| Admission::Answer(Box::new(answer));
        if !self.is_own(knock) {
            return answer(refusal(
                StatusCode::MISDIRECTED_REQUEST,
                "Wrong host",
                "These pages have another host name; --allowed-host of kubectl olm ui-server permits further ones.",
            ));
        }
        if knock.is_open() || matches!(knock.uri.path(), "/sign-in" | "/sign-out" | "/ui.js") {
            return Admission::Open;
        }
        if knock.headers.contains_key(header::AUTHORIZATION) {
            return match self.of_header(knock).await {
                Ok(reader) => Admission::Enter(reader),
                Err(closed) => answer(closed.answer_to_header()),
            };
        }
        match self.of_cookie(knock).await {
            Ok(Some(reader)) => Admission::Enter(reader),
            Ok(None) => answer(form(knock, StatusCode::UNAUTHORIZED, "")),
            Err(closed) => answer(closed.answer("the session")),
        }
    }

    /// Returns true if the request is for one of the server's names. A page of another host whose name leads to this address must not
    /// read anything.
    fn is_own(&self, knock: &Knock) -> bool {
        let authority = knock
            .authority()
            .and_then(|text| text.parse::<http::uri::Authority>().ok());
        authority.is_some_and(|authority| {
            let hosts = self.settings.hosts.iter();
            !authority.as_str().contains('@')
                && hosts
                    .into_iter()
                    .any(|host| host.eq_ignore_ascii_case(authority.host()))
        })
    }

    async fn of_header(&self, knock: &Knock) -> Result<Arc<Reader>, Closed> {
        let token = bearer_token(&knock.headers).ok_or(Closed::Unknown)?;
        let key = SessionKey::of_bearer(token);
        if let Some(reader) = self.known(key, knock.peer).await? {
            return Ok(reader);
        }
        self.enter(key, token, knock.peer, false).await
    }

    async fn of_cookie(&self, knock: &Knock) -> Result<Option<Arc<Reader>>, Closed> {
        for id in cookies(&knock.headers, SESSION_COOKIE) {
            if let Some(reader) = self.known(SessionKey::of_cookie(id), knock.peer).await? {
                return Ok(Some(reader));
            }
        }
        Ok(None)
    }

    /// Returns the reader of a session, if it is not over. Asks from time to time if the token is still valid.
    async fn known(&self, key: SessionKey, peer: Option<Peer>) -> Result<Option<Arc<Reader>>, Closed> {
        let Some(known) = self.sessions.used(key, Instant::now()) else {
            return Ok(None);
        };
        if known.due && !self.is_valid(&known.reader, peer).await? {
            return Ok(None);
        }
        Ok(Some(known.reader))
    }

    /// Reviews the token of a reader again, and ends the session if the token is not valid any more, or now means another user: rights
    /// on catalogs are those of the groups that the session began with.
    async fn is_valid(&self, reader: &Reader, peer: Option<Peer>) -> Result<bool, Closed> {
        let (Some(key), Some(bearer)) = (reader.session, &reader.bearer) else {
            return Ok(false);
        };
        let user = self.settings.access.authenticate(peer, bearer.token()).await;
        let user = user.map_err(|error| not_reviewed(&error))?;
        let valid = user.is_some_and(|user| is_same_user(&user, bearer.user()));
        if valid {
            self.sessions.reviewed(key, Instant::now());
        } else {
            self.sessions.remove(key);
        }
        Ok(valid)
    }

    /// Signs a reader in. The identity of the session is new: a former one of the browser ends.
    pub(super) async fn sign_in(&self, knock: &Knock, token: &str) -> Result<Key, Closed> {
        if !self.attempts.admits(knock.peer, Instant::now()) {
            return Err(Closed::Busy);
        }
        let id = Key::new();
        let entered = self
            .enter(SessionKey::of_cookie(id.text()), token, knock.peer, true)
            .await;
        if let Err(Closed::Unknown) = entered {
            self.attempts.failed(knock.peer, Instant::now());
        }
        entered?;
        self.forget(knock);
        Ok(id)
    }

    /// Ends the session of the request's cookie.
    pub(super) fn forget(&self, knock: &Knock) {
        for id in cookies(&knock.headers, SESSION_COOKIE) {
            self.sessions.remove(SessionKey::of_cookie(id));
        }
    }

    /// Ends the session of a request that the API server has refused, and answers the request.
    pub(in crate::ui) fn expired(&self, knock: &Knock, session: SessionKey) -> Response {
        self.sessions.remove(session);
        if knock.headers.contains_key(header::AUTHORIZATION) {
            return Closed::Unknown.answer_to_header();
        }
        form(
            knock,
            StatusCode::UNAUTHORIZED,
            "The API server does not accept your token any more.",
        )
    }

    /// Begins a session. Only one by the form can be ended by the reader.
    async fn enter(
        &self,
        key: SessionKey,
        token: &str,
        peer: Option<Peer>,
        by_form: bool,
    ) -> Result<Arc<Reader>, Closed> {
        let user = self.settings.access.authenticate(peer, token).await;
        let Some(user) = user.map_err(|error| not_reviewed(&error))? else {
            tracing::info!("a token was refused");
            return Err(Closed::Unknown);
        };
        let name = user.username.clone().unwrap_or_default();
        let reader = Reader {
            signs_out: by_form,
            ..self.reader(key, token, user)?
        };
        let reader = Arc::new(reader);
        if !self.sessions.add(key, reader.clone(), &name, Instant::now()) {
            tracing::warn!(user = name, "there are too many sessions");
            return Err(Closed::Busy);
        }
        tracing::info!(user = name, "a session begins");
        Ok(reader)
    }

    fn reader(&self, key: SessionKey, token: &str, user: UserInfo) -> Result<Reader, Closed> {
        let settings = &self.settings;
        let bearer = Arc::new(Bearer::new(
            token.to_owned(),
            user,
            settings.access.clone(),
            settings.catalogd.clone(),
        ));
        let cluster = Cluster::of_bearer(
            &settings.config,
            bearer.clone(),
            &settings.images.system_namespace,
        );
        let cluster = cluster.map_err(|error| {
            tracing::warn!(error = %olm_text::chain(&error), "no client for a reader");
            Closed::NotReviewed
        })?;
        Ok(Reader::of_bearer(
            cluster,
            settings.images.clone(),
            bearer,
            key,
            settings.shutdown.child_token(),
        ))
    }

    /// Waits until the session of a reader is over, or its token is not valid any more.
    pub(super) async fn ended(&self, reader: &Reader) {
        let Some(key) = reader.session else { return };
        loop {
            tokio::select! {
                () = reader.ended.cancelled() => return,
                () = sleep(CHECK) => {}
            }
            if !self.sessions.has(key, Instant::now()) {
                self.sessions.remove(key);
                return;
            }
            // While the API server does not answer, the reader sees nothing new either.
            if let Ok(false) = self.is_valid(reader, None).await {
                return;
            }
        }
    }
}

/// Returns true if both users have the same name, uid, groups and extra values. Authenticators guarantee no order, and leave out or send
/// empty values.
fn is_same_user(one: &UserInfo, other: &UserInfo) -> bool {
    fn set(values: Option<&Vec<String>>) -> BTreeSet<&str> {
        values.into_iter().flatten().map(String::as_str).collect()
    }
    fn extra(user: &UserInfo) -> BTreeMap<&str, BTreeSet<&str>> {
        let values = user.extra.iter().flatten();
        values
            .map(|(key, values)| (key.as_str(), set(Some(values))))
            .filter(|(_, values)| !values.is_empty())
            .collect()
    }
    one.username.as_deref().unwrap_or_default() == other.username.as_deref().unwrap_or_default()
        && one.uid.as_deref().unwrap_or_default() == other.uid.as_deref().unwrap_or_default()
        && set(one.groups.as_ref()) == set(other.groups.as_ref())
        && extra(one) == extra(other)
}

fn not_reviewed(error: &AccessError) -> Closed {
    if error.refusal().is_some() {
        return Closed::Busy;
    }
    tracing::warn!(error = %olm_text::chain(error), "a token was not reviewed");
    Closed::NotReviewed
}

impl Closed {
    /// Returns status and sentence; `what` holds the token.
    pub(super) fn message(&self, what: &str) -> (StatusCode, String) {
        match self {
            Self::Unknown => (
                StatusCode::UNAUTHORIZED,
                format!("The API server does not accept the token of {what}: it is invalid, has expired, or is for another audience."),
            ),
            Self::Busy => (
                StatusCode::TOO_MANY_REQUESTS,
                "There are too many sessions or attempts to sign in. Try again in a minute.".to_owned(),
            ),
            Self::NotReviewed => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The API server could not be asked who you are. Try again later; the log of these pages has the reason.".to_owned(),
            ),
        }
    }

    fn answer_to_header(&self) -> Response {
        let answer = self.answer("the header Authorization");
        with_header(answer, header::WWW_AUTHENTICATE, "Bearer")
    }

    fn answer(&self, what: &str) -> Response {
        let (status, message) = self.message(what);
        let answer = refusal(status, "Not signed in", &message);
        if status == StatusCode::UNAUTHORIZED {
            answer
        } else {
            with_header(answer, header::RETRY_AFTER, "60")
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::response::Json;
    use axum::routing::post;
    use kube::Client;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the door of an API server that answers by `router`.
    pub(in crate::ui::door) async fn door(router: Router) -> TokenDoor {
        olm_runtime::tls::install_provider();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = Config::new(format!("http://{address}").parse().unwrap());
        TokenDoor::new(TokenSettings {
            access: Access::new(Client::try_from(config.clone()).unwrap()),
            config,
            catalogd: CatalogdAddress {
                host: "catalogd".to_owned(),
                ca_file: None,
                cas_dir: None,
            },
            images: AccessArgs::default(),
            hosts: Vec::new(),
            shutdown: CancellationToken::new(),
        })
    }

    fn user(groups: &[&str]) -> Value {
        json!({"username": "a", "uid": "u", "groups": groups, "extra": {"scopes": groups, "none": []}})
    }

    #[tokio::test]
    async fn a_session_ends_when_its_user_loses_a_group() {
        let reviews = AtomicUsize::new(0);
        let users = [["x", "y"], ["x", "y"], ["y", "x"], ["y", "y"]];
        let reviews = Arc::new(reviews);
        let review = async move || {
            let groups = users[reviews.fetch_add(1, Ordering::Relaxed)];
            Json(
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {},
                "status": {"authenticated": true, "user": user(&groups)}}),
            )
        };
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let door = door(Router::new().route(path, post(review))).await;
        let key = SessionKey::of_bearer("t");
        let Ok(reader) = door.enter(key, "t", None, true).await else {
            panic!("the token is valid")
        };
        for valid in [true, true, false] {
            assert!(matches!(door.is_valid(&reader, None).await, Ok(found) if found == valid));
            assert_eq!(reader.ended.is_cancelled(), !valid);
        }
        assert!(!door.sessions.has(key, Instant::now()));
    }

    #[test]
    fn empty_values_make_no_other_user() {
        let of = |value: Value| -> UserInfo { serde_json::from_value(value).unwrap() };
        let plain = of(json!({"username": "a", "uid": "u", "groups": ["x"], "extra": {"scopes": ["x"]}}));
        assert!(is_same_user(&of(user(&["x"])), &plain));
        assert!(is_same_user(
            &of(json!({"username": "a", "groups": []})),
            &of(json!({"username": "a", "uid": ""}))
        ));
        for (key, other) in [
            ("username", json!("b")),
            ("uid", json!("v")),
            ("groups", json!(["x", "y"])),
            ("extra", json!({"scopes": ["y"]})),
        ] {
            let mut changed = user(&["x"]);
            changed[key] = other;
            assert!(!is_same_user(&of(changed), &plain), "{key}");
        }
    }
}
