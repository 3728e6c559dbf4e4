//! Credentials of pull secrets, held in memory only and never written to disk.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::DockerConfig;

/// Maximum time that a pull waits for the first read of the pull secrets.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Content of a pull secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText {
    /// `namespace/name`, for messages.
    pub name: String,
    /// The content.
    pub text: Vec<u8>,
    /// The content is a `.dockercfg` instead of a `.dockerconfigjson`.
    pub legacy: bool,
}

impl SecretText {
    /// Creates the content of a `.dockerconfigjson`.
    pub fn config(name: impl Into<String>, text: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            text,
            legacy: false,
        }
    }
}

/// A pull secret cannot be parsed. Never shows its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "pull secret {name} is not a docker config: at line {line}; {}",
    if *former { "its former credentials are still used" } else { "its credentials are not used" }
)]
pub struct PullSecretError {
    /// `namespace/name`.
    pub name: String,
    /// Line number.
    pub line: usize,
    /// The credentials that the secret had before are used.
    pub former: bool,
}

/// Current credentials of the pull secrets. Clones share them.
#[derive(Clone, Debug)]
pub struct PullSecrets(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    current: RwLock<State>,
    loaded: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    /// Last credentials of each secret.
    parsed: BTreeMap<String, DockerConfig>,
    merged: DockerConfig,
    problems: Vec<String>,
}

impl Default for PullSecrets {
    /// Returns an empty set that is complete.
    fn default() -> Self {
        Self(Arc::new(Inner {
            current: RwLock::default(),
            loaded: watch::Sender::new(true),
        }))
    }
}

impl PullSecrets {
    /// Returns an empty set that is not loaded: pulls wait briefly for the first [`PullSecrets::replace`].
    #[must_use]
    pub fn unloaded() -> Self {
        Self(Arc::new(Inner {
            current: RwLock::default(),
            loaded: watch::Sender::new(false),
        }))
    }

    /// Replaces all credentials; a later secret wins for a key. Returns the secrets that cannot be parsed: each keeps its own
    /// former credentials, and does not affect the others.
    #[must_use]
    pub fn replace(&self, secrets: Vec<SecretText>) -> Vec<PullSecretError> {
        let mut errors = Vec::new();
        let mut current = self.0.current.write();
        let mut before = std::mem::take(&mut current.parsed);
        let mut merged = DockerConfig::default();
        for SecretText { name, text, legacy } in secrets {
            let parsed = if legacy {
                DockerConfig::parse_legacy(&text)
            } else {
                DockerConfig::parse(&text)
            };
            let config = parsed.or_else(|line| {
                // The same secret may be listed twice.
                let former = before
                    .remove(&name)
                    .or_else(|| current.parsed.get(&name).cloned());
                errors.push(PullSecretError {
                    name: name.clone(),
                    line,
                    former: former.is_some(),
                });
                former.ok_or(())
            });
            if let Ok(config) = config {
                merged.merge(config.clone());
                current.parsed.insert(name, config);
            }
        }
        current.merged = merged;
        drop(current);
        self.0.loaded.send_replace(true);
        errors
    }

    /// Sets the problems of the pull secrets, for messages about denied pulls.
    pub fn set_problems(&self, problems: Vec<String>) {
        self.0.current.write().problems = problems;
    }

    /// Returns the problems of the pull secrets, if any.
    pub(crate) fn problems(&self) -> Option<String> {
        let problems = &self.0.current.read().problems;
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    /// Returns the credentials, if there are any.
    pub(crate) async fn current(&self) -> Option<DockerConfig> {
        let mut loaded = self.0.loaded.subscribe();
        // Without them a pull may fail with a clear message; waiting longer would only hide the cause.
        if tokio::time::timeout(LOAD_TIMEOUT, loaded.wait_for(|loaded| *loaded))
            .await
            .is_err()
        {
            tracing::warn!("the pull secrets are not loaded yet: pulling without them");
            self.0.loaded.send_replace(true);
        }
        let merged = &self.0.current.read().merged;
        (!merged.is_empty()).then(|| merged.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Credentials;

    fn user(config: &DockerConfig, host: &str) -> Option<String> {
        match config.find(host, "a")? {
            Credentials::Password { user, .. } => Some(user.clone()),
            Credentials::Identity(_) => None,
        }
    }

    fn config(name: &str, text: &str) -> SecretText {
        SecretText::config(name, text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn later_secrets_win() {
        let secrets = PullSecrets::unloaded();
        let first = config(
            "a/b",
            r#"{"auths":{"x.io":{"auth":"YTpw"},"y.io":{"auth":"YTpw"}}}"#,
        );
        let second = SecretText {
            name: "a/c".to_owned(),
            text: br#"{"y.io":{"username":"b","password":"p"}}"#.to_vec(),
            legacy: true,
        };
        assert_eq!(secrets.replace(vec![first, second]), []);
        let current = secrets.current().await.unwrap();
        assert_eq!(user(&current, "x.io").as_deref(), Some("a"));
        assert_eq!(user(&current, "y.io").as_deref(), Some("b"));
        assert_eq!(secrets.replace(Vec::new()), []);
        assert!(secrets.current().await.is_none());
    }

    #[tokio::test]
    async fn a_broken_secret_affects_no_others() {
        let good = || config("a/good", r#"{"auths":{"x.io":{"auth":"YTpw"}}}"#);
        let bad = || config("a/bad", "{\"auths\":\n[]}");
        let message = |secrets: &PullSecrets, all| {
            let errors = secrets.replace(all);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        // After a start there are no former credentials.
        let secrets = PullSecrets::unloaded();
        assert_eq!(
            message(&secrets, vec![good(), bad()]),
            ["pull secret a/bad is not a docker config: at line 2; its credentials are not used"]
        );
        let current = secrets.current().await.unwrap();
        assert_eq!(user(&current, "x.io").as_deref(), Some("a"));

        let before = config("a/bad", r#"{"auths":{"y.io":{"auth":"YTpw"}}}"#);
        assert_eq!(message(&secrets, vec![good(), before]), Vec::<String>::new());
        let rotated = config("a/good", r#"{"auths":{"x.io":{"auth":"YjpwCg=="}}}"#);
        for _ in 0..2 {
            assert_eq!(
                message(&secrets, vec![rotated.clone(), bad()]),
                [
                    "pull secret a/bad is not a docker config: at line 2; its former credentials are still used"
                ]
            );
            let current = secrets.current().await.unwrap();
            assert_eq!(user(&current, "x.io").as_deref(), Some("b"));
            assert_eq!(user(&current, "y.io").as_deref(), Some("a"));
        }
        // A secret that was not used in between has no former credentials.
        assert_eq!(message(&secrets, vec![good()]), Vec::<String>::new());
        assert_eq!(message(&secrets, vec![bad()]).len(), 1);
        assert!(secrets.current().await.is_none());
    }
}
