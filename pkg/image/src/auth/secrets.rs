//! Credentials of pull secrets, held in memory only and never written to disk.

use std::{sync::Arc, time::Duration};

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
#[error("pull secret {name} is not a docker config: at line {line}")]
pub struct PullSecretError {
    /// `namespace/name`.
    pub name: String,
    /// Line number.
    pub line: usize,
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

    /// Replaces all credentials; a later secret wins for a key.
    ///
    /// # Errors
    /// A secret cannot be parsed; the former credentials stay.
    pub fn replace(&self, secrets: Vec<SecretText>) -> Result<(), PullSecretError> {
        let mut merged = DockerConfig::default();
        for SecretText { name, text, legacy } in secrets {
            let parsed = if legacy {
                DockerConfig::parse_legacy(&text)
            } else {
                DockerConfig::parse(&text)
            };
            match parsed {
                Ok(config) => merged.merge(config),
                Err(line) => {
                    self.0.loaded.send_replace(true);
                    return Err(PullSecretError { name, line });
                }
            }
        }
        self.0.current.write().merged = merged;
        self.0.loaded.send_replace(true);
        Ok(())
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

    #[tokio::test]
    async fn later_secrets_win_and_broken_ones_change_nothing() {
        let secrets = PullSecrets::unloaded();
        let first = SecretText::config(
            "a/b",
            br#"{"auths":{"x.io":{"auth":"YTpw"},"y.io":{"auth":"YTpw"}}}"#.to_vec(),
        );
        let second = SecretText {
            name: "a/c".to_owned(),
            text: br#"{"y.io":{"username":"b","password":"p"}}"#.to_vec(),
            legacy: true,
        };
        secrets.replace(vec![first.clone(), second]).unwrap();
        let current = secrets.current().await.unwrap();
        assert_eq!(user(&current, "x.io").as_deref(), Some("a"));
        assert_eq!(user(&current, "y.io").as_deref(), Some("b"));

        let broken = SecretText::config("a/d", b"{\"auths\":\n3}".to_vec());
        let error = secrets.replace(vec![first, broken]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pull secret a/d is not a docker config: at line 2"
        );
        assert!(secrets.current().await.is_some());
        secrets.replace(Vec::new()).unwrap();
        assert!(secrets.current().await.is_none());
    }
}
