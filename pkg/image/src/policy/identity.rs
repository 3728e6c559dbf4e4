//! Comparison of the name in a signature with the requested image.

use serde::{Deserialize, Serialize};

use crate::reference::{Digest, Reference, Repository, TagOrDigest};

/// `signedIdentity` of a policy.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(super) enum SignedIdentity {
    /// A signed name equal to the pulled one, including tag or digest.
    MatchExact,
    /// A signed name equal to the pulled one; for an image by digest, with the same repository.
    #[default]
    MatchRepoDigestOrExact,
    /// A signed name with the same repository and any tag.
    MatchRepository,
    /// A fixed name, whatever was requested.
    ExactReference {
        /// Reference with tag or digest.
        docker_reference: String,
    },
    /// A fixed repository, whatever was requested.
    ExactRepository {
        /// Repository without tag and digest.
        docker_repository: String,
    },
    /// `MatchRepoDigestOrExact` with another prefix of the name.
    RemapIdentity {
        /// Prefix of the requested name.
        prefix: String,
        /// Prefix of the signed name instead.
        signed_prefix: String,
    },
}

/// Name in a signature or policy. Unlike a [`Reference`] it may name a whole repository.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    repository: Repository,
    version: Option<TagOrDigest>,
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(reference) = text.parse::<Reference>() {
            return Some(Self::of(&reference));
        }
        Some(Self {
            repository: Repository::parse(text)?,
            version: None,
        })
    }

    fn of(reference: &Reference) -> Self {
        Self {
            repository: reference.repository().clone(),
            version: Some(reference.version().clone()),
        }
    }
}

impl SignedIdentity {
    /// Checks the fields.
    pub(super) fn validate(&self) -> Result<(), String> {
        match self {
            Self::MatchExact | Self::MatchRepoDigestOrExact | Self::MatchRepository => Ok(()),
            Self::ExactReference { docker_reference } => match Name::parse(docker_reference) {
                Some(Name { version: Some(_), .. }) => Ok(()),
                _ => Err(format!(
                    "dockerReference {docker_reference:?} is no reference with a tag or digest"
                )),
            },
            Self::ExactRepository { docker_repository } => match Name::parse(docker_repository) {
                Some(Name { version: None, .. }) => Ok(()),
                _ => Err(format!("dockerRepository {docker_repository:?} is no repository")),
            },
            Self::RemapIdentity {
                prefix,
                signed_prefix,
            } => {
                let fits =
                    |text: &String| !text.is_empty() && !text.ends_with('/') && !text.contains(['@', '*']);
                if fits(prefix) && fits(signed_prefix) {
                    Ok(())
                } else {
                    Err("remapIdentity needs prefix and signedPrefix".to_owned())
                }
            }
        }
    }

    /// Returns true if a signature for the name `signed` is valid for the requested image.
    pub(super) fn accepts(&self, requested: &Reference, signed: &str) -> bool {
        let Some(signed) = Name::parse(signed) else {
            return false;
        };
        let requested_name = Name::of(requested);
        match self {
            Self::MatchExact => requested_name == signed,
            Self::MatchRepoDigestOrExact => repo_digest_or_exact(&requested_name, &signed),
            Self::MatchRepository => requested_name.repository == signed.repository,
            Self::ExactReference { docker_reference } => {
                Name::parse(docker_reference).is_some_and(|name| name.version.is_some() && name == signed)
            }
            Self::ExactRepository { docker_repository } => {
                Name::parse(docker_repository).is_some_and(|name| name.repository == signed.repository)
            }
            Self::RemapIdentity {
                prefix,
                signed_prefix,
            } => remapped(requested_name, prefix, signed_prefix)
                .is_some_and(|name| repo_digest_or_exact(&name, &signed)),
        }
    }
}

fn repo_digest_or_exact(requested_name: &Name, signed: &Name) -> bool {
    match requested_name.version {
        // The digest itself is compared with that of the statement.
        Some(TagOrDigest::Digest(_)) => {
            signed.version.is_some() && requested_name.repository == signed.repository
        }
        _ => requested_name == signed,
    }
}

fn remapped(requested_name: Name, prefix: &str, signed_prefix: &str) -> Option<Name> {
    let name = requested_name.repository.to_string();
    match name.strip_prefix(prefix) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(Name {
            repository: Repository::parse(&format!("{signed_prefix}{rest}"))?,
            version: requested_name.version,
        }),
        _ => Some(requested_name),
    }
}

/// Returns true if the signed digest is one of the image's.
pub(super) fn digest_fits(signed: &str, digests: &[&Digest]) -> bool {
    signed
        .parse::<Digest>()
        .is_ok_and(|signed| digests.contains(&&signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(identity: &str, requested: &str, signed: &str) -> bool {
        let identity: SignedIdentity = serde_json::from_str(identity).unwrap();
        identity.validate().unwrap();
        identity.accepts(&requested.parse().unwrap(), signed)
    }

    #[test]
    fn identities() {
        let by_digest = format!("quay.io/a/b@sha256:{}", "0".repeat(64));
        let exact = r#"{"type":"matchExact"}"#;
        let default = r#"{"type":"matchRepoDigestOrExact"}"#;
        let repository = r#"{"type":"matchRepository"}"#;
        let one = r#"{"type":"exactReference","dockerReference":"x.io/y:v1"}"#;
        let place = r#"{"type":"exactRepository","dockerRepository":"x.io/y"}"#;
        let remap = r#"{"type":"remapIdentity","prefix":"quay.io/a","signedPrefix":"x.io"}"#;
        for (identity, requested, signed, expected) in [
            (exact, "quay.io/a/b:v1", "quay.io/a/b:v1", true),
            (exact, "quay.io/a/b:v1", "quay.io/a/b:v2", false),
            (exact, "quay.io/a/b:v1", "quay.io/a/b", false),
            (exact, &by_digest, &by_digest, true),
            (exact, &by_digest, "quay.io/a/b:v1", false),
            (default, "quay.io/a/b:v1", "quay.io/a/b:v1", true),
            (default, "quay.io/a/b:v1", "quay.io/a/b:v2", false),
            (default, "quay.io/a/b:v1", "quay.io/a/b", false),
            (default, &by_digest, "quay.io/a/b:v7", true),
            (default, &by_digest, "quay.io/a/c:v7", false),
            (default, &by_digest, "quay.io/a/b", false),
            (repository, "quay.io/a/b:v1", "quay.io/a/b", true),
            (repository, "quay.io/a/b:v1", "quay.io/a/b:v9", true),
            (repository, "quay.io/a/b:v1", "quay.io/a", false),
            (repository, "quay.io/a/b:v1", "evil.io/a/b", false),
            (repository, "quay.io/a/b:v1", "../b", false),
            (one, "quay.io/a/b:v1", "x.io/y:v1", true),
            (one, "x.io/y:v2", "x.io/y:v2", false),
            (place, "quay.io/a/b:v1", "x.io/y:v3", true),
            (place, "quay.io/a/b:v1", "x.io/z:v3", false),
            (remap, "quay.io/a/b:v1", "x.io/b:v1", true),
            (remap, "quay.io/a/b:v1", "quay.io/a/b:v1", false),
            (remap, "quay.io/ab/c:v1", "quay.io/ab/c:v1", true),
        ] {
            assert_eq!(
                accepts(identity, requested, signed),
                expected,
                "{identity} {requested} {signed}"
            );
        }
    }

    #[test]
    fn empty_identities_are_refused() {
        for bad in [
            r#"{"type":"exactReference","dockerReference":"x.io/y"}"#,
            r#"{"type":"exactRepository","dockerRepository":"x.io/y:v1"}"#,
            r#"{"type":"remapIdentity","prefix":"","signedPrefix":"x.io"}"#,
        ] {
            let identity: SignedIdentity = serde_json::from_str(bad).unwrap();
            assert!(identity.validate().is_err(), "{bad}");
        }
        for bad in [r#"{"type":"matchAnything"}"#, r#"{"type":"exactReference"}"#] {
            assert!(serde_json::from_str::<SignedIdentity>(bad).is_err(), "{bad}");
        }
    }
}
