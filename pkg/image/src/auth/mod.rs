//! Registry credentials: from files, and from the cluster's pull secrets.
//!
//! A key is a host, or a host and the beginning of a path; the longest that fits is used, and a
//! credential is only ever offered to the host it stands under, or to that host's token service.

mod docker_config;
mod secrets;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::reference::Repository;

pub(crate) use docker_config::DockerConfig;
pub use secrets::{PullSecretError, PullSecrets, SecretText};

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

/// What a registry is told.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// A user name and password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A refresh token, good for the registry's token service only.
    Identity(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::Identity(_) => "Identity",
        })
    }
}

/// All credentials that a pull may use, best source first.
#[derive(Debug, Default)]
pub(crate) struct Keychain(Vec<DockerConfig>);

impl Keychain {
    /// What is configured: the pull secrets, then the file; when neither is there, the files that
    /// other programs of this machine keep for the user.
    pub(crate) async fn read(secrets: &PullSecrets, file: Option<&Path>) -> Result<Self, AuthError> {
        let mut sources: Vec<DockerConfig> = secrets.current().await.into_iter().collect();
        if let Some(path) = file {
            sources.extend(read(path).await?);
        } else if sources.is_empty() {
            for path in defaults(|name| std::env::var_os(name).map(PathBuf::from)) {
                sources.extend(read(&path).await?);
            }
        }
        Ok(Self(sources))
    }

    /// What to offer for a repository.
    pub(crate) fn find(&self, repository: &Repository) -> Option<&Credentials> {
        let (host, path) = (repository.domain(), repository.path());
        self.0.iter().find_map(|source| source.find(host, path))
    }
}

/// A file's credentials; `None` when there is no file.
async fn read(path: &Path) -> Result<Option<DockerConfig>, AuthError> {
    match crate::cache::read_capped(path, FILE_BYTES).await {
        Ok(bytes) => DockerConfig::parse(&bytes)
            .map(Some)
            .map_err(|line| AuthError::Malformed {
                path: path.to_owned(),
                line,
            }),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(AuthError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Where podman, skopeo and docker keep theirs, in the order in which they look.
fn defaults(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    if let Some(only) = set("REGISTRY_AUTH_FILE") {
        return vec![only];
    }
    let home = set("HOME");
    let below = |folder: Option<PathBuf>, path: &str| folder.map(|folder| folder.join(path));
    [
        below(set("XDG_RUNTIME_DIR"), "containers/auth.json"),
        below(
            set("XDG_CONFIG_HOME").or_else(|| below(home.clone(), ".config")),
            "containers/auth.json",
        ),
        below(
            set("DOCKER_CONFIG").or_else(|| below(home, ".docker")),
            "config.json",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_files() {
        let all = defaults(|name| match name {
            "HOME" => Some("/home/me".into()),
            "XDG_RUNTIME_DIR" => Some("/run/me".into()),
            "DOCKER_CONFIG" => Some("".into()),
            _ => None,
        });
        assert_eq!(
            all,
            [
                Path::new("/run/me/containers/auth.json"),
                Path::new("/home/me/.config/containers/auth.json"),
                Path::new("/home/me/.docker/config.json"),
            ]
        );
        assert_eq!(
            defaults(|name| (name == "REGISTRY_AUTH_FILE").then(|| "/a".into())),
            [Path::new("/a")]
        );
        assert!(defaults(|_| None).is_empty());
    }

    #[tokio::test]
    async fn the_first_source_that_knows_the_registry() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        let repository = |name: &str| Repository::parse(name).unwrap();
        let user = |chain: &Keychain, name: &str| match chain.find(&repository(name)) {
            Some(Credentials::Password { user, .. }) => Some(user.clone()),
            _ => None,
        };
        let secrets = PullSecrets::default();
        let entry = |host: &str, user: &str| {
            format!(r#"{{"auths":{{"{host}":{{"username":"{user}","password":"p"}}}}}}"#)
        };
        std::fs::write(&file, entry("quay.io", "file")).unwrap();
        let chain = Keychain::read(&secrets, Some(&file)).await.unwrap();
        assert_eq!(user(&chain, "quay.io/a/b"), Some("file".to_owned()));
        secrets
            .replace(vec![SecretText::config(
                "ns/secret",
                entry("quay.io/a", "secret").into_bytes(),
            )])
            .unwrap();
        let chain = Keychain::read(&secrets, Some(&file)).await.unwrap();
        assert_eq!(user(&chain, "quay.io/a/b"), Some("secret".to_owned()));
        assert_eq!(user(&chain, "quay.io/b"), Some("file".to_owned()));
        std::fs::write(&file, "{").unwrap();
        let error = Keychain::read(&secrets, Some(&file)).await.unwrap_err();
        assert!(matches!(error, AuthError::Malformed { .. }), "{error}");
    }
}
