//! Registry credentials from a docker config file.
//!
//! A key is a host, or a host and the beginning of a path; the longest that fits is used, and a
//! credential is only ever offered to the host it stands under.

use std::{collections::HashMap, fmt, io, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

/// Larger files are refused.
const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file is there but cannot be read.
    #[error("credentials file {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Not a docker config.
    #[error("credentials file {path} is not a docker config: at line {line}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where; the text itself may hold secrets.
        line: usize,
    },
}

/// A user name and password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Credentials by key.
#[derive(Debug, Default)]
pub(crate) struct AuthFile(HashMap<String, Credentials>);

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: HashMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl Entry {
    fn credentials(self) -> Option<Credentials> {
        if self.auth.is_empty() {
            return (!self.username.is_empty()).then_some(Credentials {
                user: self.username,
                password: self.password,
            });
        }
        let text = String::from_utf8(STANDARD.decode(self.auth.trim()).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        Some(Credentials {
            user: user.to_owned(),
            password: password.trim_end_matches('\0').to_owned(),
        })
    }
}

impl AuthFile {
    /// Reads the file; a missing one holds nothing.
    pub(crate) async fn read(path: Option<&PathBuf>) -> Result<Self, AuthError> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        match crate::cache::read_capped(path, FILE_BYTES).await {
            Ok(bytes) => Self::parse(&bytes).map_err(|line| AuthError::Malformed {
                path: path.clone(),
                line,
            }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(AuthError::Read {
                path: path.clone(),
                source,
            }),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let config: DockerConfig = serde_json::from_slice(bytes).map_err(|error| error.line())?;
        let entries = config.auths.into_iter().filter_map(|(key, entry)| {
            let key = normal(&key);
            let credentials = entry.credentials();
            if credentials.is_none() {
                tracing::warn!(
                    registry = key,
                    "credentials without user and password are left out"
                );
            }
            Some((key, credentials?))
        });
        Ok(Self(entries.collect()))
    }

    /// What to offer to `host` for the repository at `path`.
    pub(crate) fn find(&self, host: &str, path: &str) -> Option<&Credentials> {
        let mut key = format!("{host}/{path}");
        loop {
            if let Some(found) = self.0.get(&key) {
                return Some(found);
            }
            key.truncate(key.rfind('/')?);
        }
    }
}

/// The key without what older tools write around it.
fn normal(key: &str) -> String {
    let bare = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"));
    let key = match bare {
        // A URL: only its host counts.
        Some(url) => url.split('/').next().unwrap_or(url),
        None => key.trim_end_matches('/'),
    };
    match key {
        "index.docker.io" | "registry-1.docker.io" | "index.docker.io/v1" => "docker.io".to_owned(),
        key => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> AuthFile {
        AuthFile::parse(text.as_bytes()).unwrap()
    }

    fn user<'a>(file: &'a AuthFile, host: &str, path: &str) -> Option<&'a str> {
        file.find(host, path).map(|found| found.user.as_str())
    }

    #[test]
    fn the_longest_key_of_this_host_only() {
        let file = file(
            r#"{"auths": {
                "quay.io": {"auth": "aG9zdDpwYXNz"},
                "quay.io/team": {"username": "team", "password": "p"},
                "https://index.docker.io/v1/": {"auth": "aHViOnA="},
                "broken.io": {"auth": "!"}
            }}"#,
        );
        assert_eq!(user(&file, "quay.io", "team/app"), Some("team"));
        assert_eq!(user(&file, "quay.io", "teammate/app"), Some("host"));
        assert_eq!(user(&file, "docker.io", "library/nginx"), Some("hub"));
        assert_eq!(user(&file, "quay.io.evil.example", "team/app"), None);
        assert_eq!(user(&file, "quay.io:8443", "team/app"), None);
        assert_eq!(user(&file, "broken.io", "a"), None);
    }

    #[test]
    fn a_broken_file_names_only_the_line() {
        assert_eq!(AuthFile::parse(b"{\n \"auths\": 3}").unwrap_err(), 2);
        assert!(
            !format!(
                "{:?}",
                file(r#"{"auths":{"a":{"username":"u","password":"secret"}}}"#)
            )
            .contains("secret")
        );
    }
}
