//! Registry credentials from files and from the cluster's pull secrets.
//!
//! A key is a host, or a host and a path prefix; the longest match wins. Credentials are only ever sent to the host of
//! their key, or to that host's token service.

mod docker_config;
mod secrets;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::reference::Repository;

pub(crate) use docker_config::DockerConfig;
pub use secrets::{PullSecretError, PullSecrets, SecretText};

/// Maximum size of a credentials file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Failure to use credentials.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file exists but cannot be read.
    #[error("credentials file {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not a docker config.
    #[error("credentials file {path} is not a docker config: at line {line}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number; the text itself may hold secrets.
        line: usize,
    },
}

/// Credentials for a registry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// User name and password.
    Password {
        /// User name.
        user: String,
        /// Password.
        password: String,
    },
    /// Refresh token, valid for the registry's token service only.
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

/// Credentials of a pull, in descending precedence.
#[derive(Debug, Default)]
pub(crate) struct Keychain(Vec<DockerConfig>);

impl Keychain {
    /// Reads the pull secrets, then the file. If neither exists, reads the user's files of other programs.
    pub(crate) async fn read(secrets: &PullSecrets, file: Option<&Path>) -> Result<Self, AuthError> {
        let mut sources: Vec<DockerConfig> = secrets.current().await.into_iter().collect();
        if let Some(path) = file {
            sources.extend(read(path).await?);
        } else if sources.is_empty() {
            for path in default_files(|name| std::env::var_os(name).map(PathBuf::from)) {
                sources.extend(read(&path).await?);
            }
        }
        Ok(Self(sources))
    }

    /// Returns the credentials for a repository.
    pub(crate) fn find(&self, repository: &Repository) -> Option<&Credentials> {
        let (host, path) = (repository.domain(), repository.path());
        self.0.iter().find_map(|source| source.find(host, path))
    }
}

/// Reads a file's credentials; `None` if the file does not exist.
async fn read(path: &Path) -> Result<Option<DockerConfig>, AuthError> {
    match crate::files::read_capped(path, MAX_FILE_BYTES).await {
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

/// Returns the files of podman, skopeo and docker in the order in which they read them.
fn default_files(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
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
        let all = default_files(|name| match name {
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
            default_files(|name| (name == "REGISTRY_AUTH_FILE").then(|| "/a".into())),
            [Path::new("/a")]
        );
        assert!(default_files(|_| None).is_empty());
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
        let errors = secrets.replace(vec![SecretText::config(
            "ns/secret",
            entry("quay.io/a", "secret").into_bytes(),
        )]);
        assert_eq!(errors, []);
        let chain = Keychain::read(&secrets, Some(&file)).await.unwrap();
        assert_eq!(user(&chain, "quay.io/a/b"), Some("secret".to_owned()));
        assert_eq!(user(&chain, "quay.io/b"), Some("file".to_owned()));
        std::fs::write(&file, "{").unwrap();
        let error = Keychain::read(&secrets, Some(&file)).await.unwrap_err();
        assert!(matches!(error, AuthError::Malformed { .. }), "{error}");
    }
}
