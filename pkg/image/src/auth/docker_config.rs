//! Docker config file, and the two forms of it in Kubernetes Secrets.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::Credentials;

/// Credentials by registry key.
#[derive(Clone, Debug, Default)]
pub(crate) struct DockerConfig(HashMap<String, Credentials>);

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: HashMap<String, Entry>,
    #[serde(default, rename = "credHelpers")]
    helpers: HashMap<String, String>,
    #[serde(default, rename = "credsStore")]
    store: String,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, rename = "identitytoken")]
    identity_token: String,
}

impl Entry {
    fn credentials(self) -> Option<Credentials> {
        if !self.identity_token.is_empty() {
            return Some(Credentials::Identity(self.identity_token));
        }
        if self.auth.is_empty() {
            return (!self.username.is_empty()).then_some(Credentials::Password {
                user: self.username,
                password: self.password,
            });
        }
        let text = String::from_utf8(STANDARD.decode(self.auth.trim()).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Credentials::Password {
            user: user.to_owned(),
            password: password.trim_end_matches('\0').to_owned(),
        })
    }
}

impl DockerConfig {
    /// Parses a `config.json`, `auth.json` or `.dockerconfigjson`. The error is the line number.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let file: File = serde_json::from_slice(bytes).map_err(|error| error.line())?;
        if !file.store.is_empty() {
            tracing::warn!(
                helper = file.store,
                "credential helpers are not supported: registries without an entry have no credentials"
            );
        }
        for registry in file.helpers.keys() {
            tracing::warn!(
                registry,
                "credential helpers are not supported: ignoring this registry's credentials"
            );
        }
        Ok(Self::of(file.auths))
    }

    /// Parses a `.dockercfg`, which has only the entries. The error is the line number.
    pub(crate) fn parse_legacy(bytes: &[u8]) -> Result<Self, usize> {
        serde_json::from_slice(bytes)
            .map(Self::of)
            .map_err(|error| error.line())
    }

    fn of(entries: HashMap<String, Entry>) -> Self {
        let mut all = HashMap::new();
        let (plain, old): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .partition(|(key, _)| canonical_key(key) == *key);
        // An entry with the canonical key wins over one with an older form of the key.
        for (key, entry) in old.into_iter().chain(plain) {
            if let Some(credentials) = entry.credentials() {
                all.insert(canonical_key(&key), credentials);
            } else {
                tracing::warn!(registry = key, "skipping credentials without user and password");
            }
        }
        Self(all)
    }

    /// Adds another file's entries, which win.
    pub(super) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the credentials for the repository at `path` on `host`.
    pub(super) fn find(&self, host: &str, path: &str) -> Option<&Credentials> {
        let mut key = format!("{}/{path}", canonical_host(host));
        loop {
            if let Some(found) = self.0.get(&key) {
                return Some(found);
            }
            key.truncate(key.rfind('/')?);
        }
    }
}

/// Returns the canonical key without the additions of older tools.
fn canonical_key(key: &str) -> String {
    let bare = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"));
    let key = match bare {
        // Only the host of a URL matters.
        Some(url) => url.split('/').next().unwrap_or(url),
        None => key.trim_end_matches('/'),
    };
    match key.split_once('/') {
        Some((host, path)) if key != "index.docker.io/v1" => format!("{}/{path}", canonical_host(host)),
        Some((host, _)) => canonical_host(host).to_owned(),
        None => canonical_host(key).to_owned(),
    }
}

/// Returns the name of Docker Hub in references for its other names.
fn canonical_host(host: &str) -> &str {
    match host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> DockerConfig {
        DockerConfig::parse(text.as_bytes()).unwrap()
    }

    fn user<'a>(file: &'a DockerConfig, host: &str, path: &str) -> Option<&'a str> {
        file.find(host, path).map(|found| match found {
            Credentials::Password { user, .. } => user.as_str(),
            Credentials::Identity(token) => token.as_str(),
        })
    }

    #[test]
    fn the_longest_key_of_this_host_only() {
        let file = file(
            r#"{"auths": {
                "quay.io": {"auth": "aG9zdDpwYXNz"},
                "quay.io/team": {"username": "team", "password": "p"},
                "quay.io/team/secret/app": {"auth": "YXBwOnA="},
                "https://index.docker.io/v1/": {"auth": "aHViOnA="},
                "azure.example": {"auth": "MDAwMDo=", "identitytoken": "refresh"},
                "broken.io": {"auth": "!"}
            }, "credHelpers": {"ecr.example": "ecr-login"}, "credsStore": "desktop"}"#,
        );
        assert_eq!(user(&file, "quay.io", "team/app"), Some("team"));
        assert_eq!(user(&file, "quay.io", "team/secret/app"), Some("app"));
        assert_eq!(user(&file, "quay.io", "team/secret/application"), Some("team"));
        assert_eq!(user(&file, "quay.io", "teammate/app"), Some("host"));
        assert_eq!(user(&file, "docker.io", "library/nginx"), Some("hub"));
        assert_eq!(user(&file, "azure.example", "a"), Some("refresh"));
        for other in [
            "quay.io.evil.example",
            "quay.io:8443",
            "evil.quay.io",
            "broken.io",
            "ecr.example",
        ] {
            assert_eq!(user(&file, other, "team/app"), None, "{other}");
        }
    }

    #[test]
    fn names_of_docker_hub_are_equal() {
        for key in [
            "docker.io",
            "registry-1.docker.io",
            "https://registry-1.docker.io/v2/",
            "https://index.docker.io/v1/",
            "index.docker.io/v1/",
            "registry-1.docker.io/team",
            "docker.io/team",
        ] {
            let file = file(&format!(r#"{{"auths": {{"{key}": {{"auth": "aHViOnA="}}}}}}"#));
            for host in ["docker.io", "registry-1.docker.io"] {
                assert_eq!(user(&file, host, "team/app"), Some("hub"), "{key} {host}");
            }
            assert_eq!(user(&file, "evil.docker.io", "team/app"), None, "{key}");
        }
    }

    #[test]
    fn the_plain_key_precedes_the_old_one() {
        for _ in 0..8 {
            let file = file(
                r#"{"auths": {"https://quay.io/v1/": {"auth": "b2xkOnA="}, "quay.io": {"auth": "bmV3OnA="}}}"#,
            );
            assert_eq!(user(&file, "quay.io", "a"), Some("new"));
        }
    }

    #[test]
    fn a_broken_file_names_only_the_line() {
        assert_eq!(DockerConfig::parse(b"{\n \"auths\": 3}").unwrap_err(), 2);
        let text = r#"{"auths":{"a":{"username":"u","password":"secret"}}}"#;
        assert!(!format!("{:?}", file(text)).contains("secret"));
    }
}
