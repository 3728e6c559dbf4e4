//! Requests and answers.

use std::collections::BTreeMap;

use olm_proof::{Actor, Change};
use percent_encoding::percent_decode_str;

use crate::watch::WatchRequest;

/// User of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Groups, `system:authenticated` among them.
    pub groups: Vec<String>,
}

impl User {
    /// Returns the administrator, who may do anything.
    pub fn admin() -> Self {
        Self {
            name: "admin".into(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
        }
    }

    /// Returns a user without groups of his own; service accounts get their groups.
    pub fn named(name: &str) -> Self {
        let mut groups = Vec::new();
        if let Some(account) = name.strip_prefix("system:serviceaccount:") {
            let namespace = account.split(':').next().unwrap_or_default();
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        groups.push("system:authenticated".into());
        Self {
            name: name.into(),
            groups,
        }
    }

    /// Returns true for a member of `system:masters`.
    pub fn is_admin(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}

/// HTTP request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Sender, for the changes.
    pub actor: Actor,
    /// Authenticated user.
    pub user: User,
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Query without the question mark.
    pub query: String,
    /// Header `Content-Type`.
    pub content_type: String,
    /// Header `Accept`.
    pub accept: String,
    /// Header `User-Agent`; its first word names the field manager.
    pub user_agent: String,
    /// Header `Impersonate-User`.
    pub impersonate_user: Option<String>,
    /// Headers `Impersonate-Group`.
    pub impersonate_groups: Vec<String>,
    /// Body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns a request of the administrator with a path and query, and without body.
    pub fn new(actor: Actor, method: &str, path_and_query: &str) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        Self {
            actor,
            user: User::admin(),
            method: method.into(),
            path: path.into(),
            query: query.into(),
            content_type: "application/json".into(),
            accept: "application/json".into(),
            user_agent: "unknown".into(),
            impersonate_user: None,
            impersonate_groups: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: &serde_json::Value) -> Self {
        self.body = body.to_string().into_bytes();
        self
    }

    /// Sets the content type.
    #[must_use]
    pub fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type = content_type.into();
        self
    }

    pub(crate) fn parameters(&self) -> Parameters {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        Parameters(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decoded(name), decoded(value))
                })
                .collect(),
        )
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8_lossy()
        .into_owned()
}

/// Query parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.0
            .get(name)
            .is_some_and(|value| value.is_empty() || value == "true" || value == "1")
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.get("dryRun") == Some("All")
    }
}

/// Answer to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A complete answer.
    Response {
        /// HTTP status code.
        status: u16,
        /// Headers; names in lower case.
        headers: Vec<(String, String)>,
        /// Body.
        body: Vec<u8>,
        /// Accepted changes, in order.
        changes: Vec<Change>,
    },
    /// A watch. The caller reads [`World::history`](crate::World::history) and encodes the events with
    /// [`WatchRequest::frames`].
    Watch(Box<WatchRequest>),
}
