//! The credentials of pull secrets, held in memory: no file of this machine ever holds them.

use std::{sync::Arc, time::Duration};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::DockerConfig;

/// How long a pull waits for the first reading of the pull secrets.
const FIRST: Duration = Duration::from_secs(10);

/// The text of a pull secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText {
    /// `namespace/name`, for messages.
    pub name: String,
    /// The value.
    pub text: Vec<u8>,
    /// Whether it is a `.dockercfg` rather than a `.dockerconfigjson`.
    pub legacy: bool,
}

impl SecretText {
    /// The value of `.dockerconfigjson`.
    pub fn config(name: impl Into<String>, text: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            text,
            legacy: false,
        }
    }
}

/// A pull secret holds no credentials that can be read. Never says what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pull secret {name} is not a docker config: at line {line}")]
pub struct PullSecretError {
    /// `namespace/name`.
    pub name: String,
    /// Where.
    pub line: usize,
}

/// The credentials of the pull secrets as they are now. Clones share them.
#[derive(Clone, Debug)]
pub struct PullSecrets(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    current: RwLock<State>,
    loaded: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    merged: DockerConfig,
    trouble: Vec<String>,
}

impl Default for PullSecrets {
    /// No pull secrets, and none awaited.
    fn default() -> Self {
        Self(Arc::new(Shared {
            current: RwLock::default(),
            loaded: watch::Sender::new(true),
        }))
    }
}

impl PullSecrets {
    /// No pull secrets yet: pulls wait for the first [`PullSecrets::replace`], but not for long.
    #[must_use]
    pub fn awaited() -> Self {
        Self(Arc::new(Shared {
            current: RwLock::default(),
            loaded: watch::Sender::new(false),
        }))
    }

    /// Takes these for the former ones; for a key the later secret counts.
    ///
    /// # Errors
    /// One of them cannot be read; the former ones stay.
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

    /// Says what is wrong with the pull secrets, for messages about refused pulls.
    pub fn set_trouble(&self, trouble: Vec<String>) {
        self.0.current.write().trouble = trouble;
    }

    /// What is wrong with the pull secrets, if anything.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = &self.0.current.read().trouble;
        (!trouble.is_empty()).then(|| trouble.join("; "))
    }

    /// The credentials, when there are any.
    pub(crate) async fn current(&self) -> Option<DockerConfig> {
        let mut loaded = self.0.loaded.subscribe();
        // Without them a pull may fail, which says why; waiting on would only hide that.
        if tokio::time::timeout(FIRST, loaded.wait_for(|loaded| *loaded))
            .await
            .is_err()
        {
            tracing::warn!("the pull secrets are not known yet: pulling without them");
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
        let secrets = PullSecrets::awaited();
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
