//! registries.conf, version 2: mirrors and rewrites of registries.
//!
//! The files are read again for every pull, so that edits apply at once. The supported keys are `prefix`, `location`,
//! `insecure`, `blocked`, `mirror` with `pull-from-mirror`, and `mirror-by-digest-only`. Other keys are ignored, since
//! short names are never completed.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::IgnoredAny};

use crate::reference::Repository;

/// Default path.
const DEFAULT_FILE: &str = "/etc/containers/registries.conf";
/// Path of the user's file, below the home directory.
const USER_FILE: &str = ".config/containers/registries.conf";
/// Environment variable that overrides the path.
const FILE_VARIABLE: &str = "CONTAINERS_REGISTRIES_CONF";
/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Failure to use registries.conf.
#[derive(Debug, thiserror::Error)]
pub enum RegistriesError {
    /// The file or its directory exists or was named, but cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A rule is inconsistent.
    #[error("{path} cannot be used: registry {registry:?}: {cause}")]
    Rule {
        /// The file.
        path: PathBuf,
        /// The rule's prefix, or its location.
        registry: String,
        /// The violated constraint.
        cause: &'static str,
    },
    /// The file has another format.
    #[error("{path} is not a registries.conf of version 2")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<toml::de::Error>,
    },
}

#[derive(Debug, Default, Deserialize)]
struct File {
    #[serde(default)]
    registry: Vec<Registry>,
    /// Version 1 of the format, which is rejected.
    registries: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Registry {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<Mirror>,
    #[serde(skip)]
    file: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Mirror {
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default, rename = "pull-from-mirror")]
    pull: PullFromMirror,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum PullFromMirror {
    #[default]
    #[serde(alias = "")]
    All,
    DigestOnly,
    TagOnly,
}

/// Rules of all files.
#[derive(Debug, Default)]
pub(crate) struct Registries(Vec<Registry>);

/// Location to pull from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Repository at this location.
    pub(crate) repository: Repository,
    /// Accepts an unverified certificate or plain HTTP.
    pub(crate) insecure: bool,
    /// A file names this host as a location.
    pub(crate) listed: bool,
}

/// Locations to pull a repository from, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sources {
    pub(crate) sources: Vec<Source>,
    /// Prefix and file of the rule that blocks the reference's own location.
    pub(crate) blocked: Option<(String, String)>,
}

impl Registry {
    /// Checks the consistency of the rule.
    fn check(&self) -> Result<(), &'static str> {
        const SCHEME: &str = "a location has no scheme: write HOST[:PORT][/PATH]";
        if self.prefix.contains("://") || self.location.contains("://") {
            return Err(SCHEME);
        }
        if let Some(domain) = self.prefix.strip_prefix('*') {
            if !domain.starts_with('.') || domain.contains(['*', '/']) {
                return Err("a prefix with * must be *.DOMAIN");
            }
        } else if self.location.is_empty() {
            return Err("location is unset, which only a prefix *.DOMAIN may have");
        }
        if self.prefix.is_empty() && self.location.contains('*') {
            return Err("a location has no *");
        }
        for mirror in &self.mirror {
            if mirror.location.is_empty() {
                return Err("a mirror lacks its location");
            }
            if mirror.location.contains("://") {
                return Err(SCHEME);
            }
            if self.mirror_by_digest_only && mirror.pull != PullFromMirror::All {
                return Err("mirror-by-digest-only and a mirror's pull-from-mirror exclude each other");
            }
        }
        Ok(())
    }
}

impl Registries {
    /// Reads the named file, else the environment's, else the user's, else the system's, and `<file>.d/*.conf` beside
    /// it. Only the default files may be missing.
    pub(crate) async fn read(file: Option<&PathBuf>) -> Result<Self, RegistriesError> {
        let listed = file.cloned().or_else(|| {
            std::env::var_os(FILE_VARIABLE)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        });
        let optional = listed.is_none();
        let path = listed
            .or_else(user_file)
            .unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
        let mut rules = Self::default();
        match crate::files::read_capped(&path, MAX_FILE_BYTES).await {
            Ok(bytes) => rules.add(&path, &bytes)?,
            Err(error) if optional && error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(RegistriesError::Read { path, source }),
        }
        let mut directory = path.into_os_string();
        directory.push(".d");
        for path in drop_ins(Path::new(&directory)).await? {
            match crate::files::read_capped(&path, MAX_FILE_BYTES).await {
                Ok(bytes) => rules.add(&path, &bytes)?,
                Err(source) => return Err(RegistriesError::Read { path, source }),
            }
        }
        Ok(rules)
    }

    /// Adds the rules of one file; a later file replaces the rule of a prefix.
    pub(crate) fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<(), RegistriesError> {
        let file: File = toml::from_slice(bytes).map_err(|source| RegistriesError::Malformed {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let refused = |registry: &str, cause| RegistriesError::Rule {
            path: path.to_owned(),
            registry: registry.to_owned(),
            cause,
        };
        if file.registries.is_some() {
            return Err(refused("registries", "version 1 of the format is not supported"));
        }
        for mut registry in file.registry {
            registry
                .check()
                .map_err(|cause| refused(&registry.prefix, cause))?;
            if registry.prefix.is_empty() {
                registry.prefix.clone_from(&registry.location);
            }
            path.clone_into(&mut registry.file);
            self.0.retain(|known| known.prefix != registry.prefix);
            self.0.push(registry);
        }
        Ok(())
    }

    fn rule(&self, repository: &Repository) -> Option<&Registry> {
        let name = repository.to_string();
        self.0
            .iter()
            .filter(|registry| matched_length(&name, repository.domain(), &registry.prefix).is_some())
            .max_by_key(|registry| registry.prefix.len())
    }

    /// Returns the locations of a repository: mirrors in order, then its own location unless blocked.
    pub(crate) fn sources(&self, repository: &Repository, by_digest: bool) -> Sources {
        let Some(rule) = self.rule(repository) else {
            let own = Source {
                repository: repository.clone(),
                insecure: false,
                listed: self.lists_host(repository),
            };
            return Sources {
                sources: vec![own],
                blocked: None,
            };
        };
        let wanted = |mirror: &&Mirror| match mirror.pull {
            PullFromMirror::All => by_digest || !rule.mirror_by_digest_only,
            PullFromMirror::DigestOnly => by_digest,
            PullFromMirror::TagOnly => !by_digest,
        };
        let mut sources: Vec<_> = rule
            .mirror
            .iter()
            .filter(wanted)
            .filter_map(|mirror| self.source(repository, rule, &mirror.location, mirror.insecure))
            .collect();
        let blocked = rule
            .blocked
            .then(|| (rule.prefix.clone(), rule.file.display().to_string()));
        if blocked.is_none() {
            sources.extend(self.source(repository, rule, &rule.location, rule.insecure));
        }
        Sources { sources, blocked }
    }

    /// Returns the repository at another location; `None` if the location is invalid or blocked.
    fn source(
        &self,
        repository: &Repository,
        rule: &Registry,
        location: &str,
        insecure: bool,
    ) -> Option<Source> {
        let rewritten = if location.is_empty() {
            repository.clone()
        } else {
            let name = repository.to_string();
            let length = matched_length(&name, repository.domain(), &rule.prefix)?;
            let text = format!("{}{}", location.trim_end_matches('/'), name.get(length..)?);
            let Some(rewritten) = Repository::parse(&text) else {
                tracing::warn!(location = text, "skipping a location that is not a repository");
                return None;
            };
            rewritten
        };
        let own_rule = self.rule(&rewritten).filter(|own| own.prefix != rule.prefix);
        if own_rule.is_some_and(|own| own.blocked) {
            return None;
        }
        let insecure = insecure || own_rule.is_some_and(|own| own.insecure);
        Some(Source {
            listed: self.lists_host(&rewritten),
            repository: rewritten,
            insecure,
        })
    }

    /// Returns true if a rule names this host as a location.
    fn lists_host(&self, repository: &Repository) -> bool {
        let host = |location: &str| location.split('/').next() == Some(repository.domain());
        self.0
            .iter()
            .any(|rule| host(&rule.location) || rule.mirror.iter().any(|mirror| host(&mirror.location)))
    }
}

/// Returns the user's own file, if it exists.
fn user_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    let path = Path::new(&home).join(USER_FILE);
    path.is_file().then_some(path)
}

/// Returns the length of the part of a repository's name that a prefix matches.
fn matched_length(name: &str, domain: &str, prefix: &str) -> Option<usize> {
    if let Some(suffix) = prefix.strip_prefix('*') {
        // `*.example.com` matches any host below; it has no path.
        let host = domain.rsplit_once(':').map_or(domain, |(host, _)| host);
        return (suffix.starts_with('.') && (domain.ends_with(suffix) || host.ends_with(suffix)))
            .then_some(domain.len());
    }
    let rest = name.strip_prefix(prefix)?;
    (!prefix.is_empty()
        && (rest.is_empty() || rest.starts_with('/') || (rest.starts_with(':') && !prefix.contains('/'))))
    .then_some(prefix.len())
}

async fn drop_ins(directory: &Path) -> Result<Vec<PathBuf>, RegistriesError> {
    let failed = |source| RegistriesError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut entries = match tokio::fs::read_dir(directory).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "conf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Registries {
        let mut rules = Registries::default();
        rules.add(Path::new("test.conf"), text.as_bytes()).unwrap();
        rules
    }

    fn locations(rules: &Registries, name: &str, by_digest: bool) -> Vec<String> {
        let sources = rules
            .sources(&Repository::parse(name).unwrap(), by_digest)
            .sources;
        sources
            .iter()
            .map(|source| format!("{}{}", source.repository, if source.insecure { "!" } else { "" }))
            .collect()
    }

    #[test]
    fn without_rules_the_reference_is_the_location() {
        assert_eq!(
            locations(&Registries::default(), "quay.io/a/b", true),
            ["quay.io/a/b"]
        );
    }

    #[test]
    fn mirrors_come_first_and_the_longest_prefix_counts() {
        let rules = rules(
            r#"
            unqualified-search-registries = ["docker.io"]
            [[registry]]
            location = "quay.io"
            [[registry.mirror]]
            location = "mirror.example:5000/quay"
            insecure = true
            [[registry.mirror]]
            location = "tags.example"
            pull-from-mirror = "tag-only"
            [[registry]]
            prefix = "quay.io/team"
            location = "other.example/moved"
            mirror-by-digest-only = true
            [[registry.mirror]]
            location = "digests.example"
            "#,
        );
        assert_eq!(
            locations(&rules, "quay.io/a/b", true),
            ["mirror.example:5000/quay/a/b!", "quay.io/a/b"]
        );
        assert_eq!(
            locations(&rules, "quay.io/a/b", false),
            ["mirror.example:5000/quay/a/b!", "tags.example/a/b", "quay.io/a/b"]
        );
        assert_eq!(
            locations(&rules, "quay.io/team/x", true),
            ["digests.example/x", "other.example/moved/x"]
        );
        assert_eq!(
            locations(&rules, "quay.io/team/x", false),
            ["other.example/moved/x"]
        );
        assert_eq!(locations(&rules, "quay.io/teammate/x", false).len(), 3);
    }

    #[test]
    fn blocked_places_are_left_out_and_named() {
        let rules = rules(
            r#"
            [[registry]]
            prefix = "*.example"
            blocked = true
            [[registry]]
            location = "quay.io"
            blocked = true
            [[registry.mirror]]
            location = "127.0.0.1:5000"
            [[registry.mirror]]
            location = "mirror.example"
            "#,
        );
        assert_eq!(locations(&rules, "quay.io/a/b", true), ["127.0.0.1:5000/a/b"]);
        let sources = rules.sources(&Repository::parse("a.example:5000/b").unwrap(), true);
        assert!(sources.sources.is_empty());
        assert_eq!(
            sources.blocked,
            Some(("*.example".to_owned(), "test.conf".to_owned()))
        );
        assert_eq!(locations(&rules, "example/b", true), ["example/b"]);
    }

    #[test]
    fn locations_of_a_file_are_known() {
        let rules = rules(
            r#"
            [[registry]]
            prefix = "quay.io"
            location = "mirror.ns.svc:5000/quay"
            [[registry.mirror]]
            location = "127.0.0.1:5000"
            "#,
        );
        let listed = |name: &str| -> Vec<bool> {
            let sources = rules.sources(&Repository::parse(name).unwrap(), true).sources;
            sources.iter().map(|source| source.listed).collect()
        };
        assert_eq!(listed("quay.io/a"), [true, true]);
        assert_eq!(listed("127.0.0.1:5000/a"), [true]);
        assert_eq!(listed("127.0.0.1:5001/a"), [false]);
        assert_eq!(listed("ghcr.io/a"), [false]);
    }

    #[test]
    fn rules_that_contradict_themselves_are_refused() {
        for bad in [
            "[[registry]]\n",
            "[[registry]]\nprefix = \"quay.io\"\n",
            "[[registry]]\nlocation = \"https://quay.io\"\n",
            "[[registry]]\nprefix = \"*quay.io\"\n",
            "[[registry]]\nprefix = \"*.io/a\"\n",
            "[[registry]]\nlocation = \"q.io\"\n[[registry.mirror]]\n",
            "[[registry]]\nlocation = \"q.io\"\n[[registry.mirror]]\nlocation = \"\"\n",
            "[[registry]]\nlocation = \"q.io\"\nmirror-by-digest-only = true\n[[registry.mirror]]\n\
             location = \"m.io\"\npull-from-mirror = \"tag-only\"\n",
            "[registries.search]\nregistries = [\"docker.io\"]\n",
        ] {
            let mut rules = Registries::default();
            assert!(rules.add(Path::new("bad.conf"), bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn drop_ins_come_after_the_file_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("registries.conf");
        let rule = |insecure| format!("[[registry]]\nlocation = \"quay.io\"\ninsecure = {insecure}\n");
        let drop_ins = folder.path().join("registries.conf.d");
        std::fs::create_dir(&drop_ins).unwrap();
        std::fs::write(&file, rule(true)).unwrap();
        std::fs::write(drop_ins.join("1.conf"), rule(false)).unwrap();
        std::fs::write(drop_ins.join("2.conf"), rule(true)).unwrap();
        std::fs::write(drop_ins.join("3.txt"), "nothing of ours").unwrap();
        let rules = Registries::read(Some(&file)).await.unwrap();
        assert_eq!(locations(&rules, "quay.io/a", true), ["quay.io/a!"]);
        assert!(Registries::read(Some(&folder.path().join("none"))).await.is_err());
    }

    #[test]
    fn a_later_file_replaces_a_rule() {
        let mut rules = rules("[[registry]]\nlocation = \"quay.io\"\nblocked = true\n");
        rules
            .add(
                Path::new("later.conf"),
                b"[[registry]]\nlocation = \"quay.io\"\ninsecure = true\n",
            )
            .unwrap();
        assert_eq!(locations(&rules, "quay.io/a", true), ["quay.io/a!"]);
        assert!(rules.add(Path::new("bad.conf"), b"[[registry]\n").is_err());
    }
}
