//! Steps of a sequence: requests with placeholders for what a server answered before.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// One request. `{ns}` and `{w}` in it stand for the namespace and the prefix of cluster-scoped names of the run, and
/// `${rv:KIND/NAME}`, `${old:KIND/NAME}`, `${uid:KIND/NAME}` and `${continue}` for values of earlier answers.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) impersonate: Option<String>,
    pub(crate) body: Option<Value>,
}

impl Step {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: String::new(),
            content_type: "application/json",
            accept: "application/json",
            impersonate: None,
            body: None,
        }
    }

    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(name);
        self.query.push('=');
        self.query.push_str(value);
        self
    }

    /// Returns the name of the request for counts: verb and kind.
    pub(crate) fn name(&self) -> String {
        let verb = match (self.method, self.content_type) {
            ("PATCH", "application/apply-patch+yaml") => "apply",
            ("PATCH", "application/json-patch+json") => "JSON patch",
            ("PATCH", "application/merge-patch+json") => "merge patch",
            ("PATCH", _) => "other patch",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("DELETE", _) => "delete",
            _ if self.query.contains("watch=") => "watch",
            _ if self
                .path
                .rsplit('/')
                .next()
                .is_some_and(|last| last.ends_with('s')) =>
            {
                "list"
            }
            _ => "get",
        };
        let kind = self
            .path
            .trim_start_matches("/apis/")
            .trim_start_matches("/api/")
            .split('/')
            .find(|part| part.ends_with('s') && *part != "namespaces" && !part.contains('.'))
            .unwrap_or("namespaces");
        let status = if self.path.ends_with("/status") {
            "/status"
        } else {
            ""
        };
        format!("{verb} {kind}{status}")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if self.method == "PATCH" {
            write!(f, " ({})", self.content_type)?;
        }
        if let Some(user) = &self.impersonate {
            write!(f, " as {user}")?;
        }
        if let Some(body) = &self.body {
            write!(f, " {body}")?;
        }
        Ok(())
    }
}

/// Values of a server's earlier answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Resource versions of each object, oldest first.
    versions: BTreeMap<String, Vec<String>>,
    uids: BTreeMap<String, String>,
    token: String,
    namespace: String,
    prefix: String,
}

impl Seen {
    /// Returns the state of a run that has seen nothing.
    pub(crate) fn of(namespace: &str, prefix: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            prefix: prefix.to_owned(),
            ..Self::default()
        }
    }

    /// Records an answer.
    pub(crate) fn record(&mut self, answer: &Value) {
        let text = |pointer: &str| {
            answer
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if let Some(token) = answer.pointer("/metadata/continue").and_then(Value::as_str) {
            token.clone_into(&mut self.token);
        }
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        if name.is_empty() || kind == "Status" {
            return;
        }
        let short = name
            .strip_prefix("t-")
            .or_else(|| name.strip_prefix(&format!("{}-", self.prefix)));
        let key = format!("{kind}/{}", short.unwrap_or(name));
        let version = text("/metadata/resourceVersion").to_owned();
        let versions = self.versions.entry(key.clone()).or_default();
        if !version.is_empty() && versions.last() != Some(&version) {
            versions.push(version);
        }
        if !text("/metadata/resourceVersion").is_empty() {
            self.uids.insert(key, text("/metadata/uid").to_owned());
        }
    }

    /// Fills in the placeholders of a text.
    pub(crate) fn fill(&self, text: &str) -> String {
        let text = text.replace("{ns}", &self.namespace);
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let (holder, after) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(&self.value(holder));
            rest = after;
        }
        out.push_str(rest);
        out.replace("{w}", &self.prefix)
    }

    fn value(&self, holder: &str) -> String {
        let (what, key) = holder.split_once(':').unwrap_or((holder, ""));
        let versions = self.versions.get(key).map(Vec::as_slice).unwrap_or_default();
        match what {
            "continue" => self.token.clone(),
            "uid" => {
                let none = "00000000-0000-0000-0000-000000000000";
                self.uids.get(key).map_or(none, String::as_str).to_owned()
            }
            "old" => versions.first().map_or("1", String::as_str).to_owned(),
            _ => versions.last().map_or("1", String::as_str).to_owned(),
        }
    }

    /// Fills in the placeholders of a value and its names.
    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill_value(item)).collect()),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.fill_value(value)))
                .collect(),
            other => other.clone(),
        }
    }
}
