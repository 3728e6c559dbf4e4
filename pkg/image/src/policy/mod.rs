//! Which images may be used: `policy.json` as containers/image knows it.
//!
//! The most specific scope of the transport `docker` that fits a reference decides alone, else the
//! transport's own default, else the default of all; every requirement listed there must hold.
//! What is not understood is an error, never passed over: a policy that is read half is none. The
//! one kind of signature that is verified is cosign's, by public key; a scope that asks for another
//! refuses its images and says so.

mod file;
mod identity;
mod key;
mod payload;
mod scope;

use std::{
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::file::Requirement;
pub(crate) use self::payload::Statement;
use crate::{
    reference::{Digest, Reference},
    registry::Attached,
};

/// The file when neither flag nor user say another.
const SYSTEM_FILE: &str = "/etc/containers/policy.json";
/// The user's own, below the home directory.
const USER_FILE: &str = ".config/containers/policy.json";
/// Larger files are refused.
const FILE_BYTES: u64 = 1024 * 1024;

/// Why there is no usable policy, or why it refuses an image.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file was named, or is there, but cannot be read.
    #[error("signature policy {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Not a policy.
    #[error("{path} is no signature policy")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Requirements that contradict themselves, or a key that is none.
    #[error("{path} is no usable signature policy: {scope}: {cause}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Where in it.
        scope: String,
        /// Why.
        cause: String,
    },
    /// The policy says no.
    #[error("Source image rejected: Running image docker://{image} is rejected by policy ({file}, {scope})")]
    Rejected {
        /// The image.
        image: String,
        /// The policy's file.
        file: PathBuf,
        /// Which of its scopes.
        scope: String,
    },
    /// The policy asks for what is not supported.
    #[error(
        "Source image rejected: {file} requires {kind} for {scope}, which is not supported; use sigstoreSigned with a public key"
    )]
    Unsupported {
        /// The policy's file.
        file: PathBuf,
        /// Which of its scopes.
        scope: String,
        /// What is asked for.
        kind: String,
    },
    /// Nothing is attached.
    #[error(
        "Source image rejected: A signature was required, but no signature exists ({file}, {scope}); sign the image with cosign"
    )]
    NoSignature {
        /// The policy's file.
        file: PathBuf,
        /// Which of its scopes.
        scope: String,
    },
    /// None of the signatures will do.
    #[error("Source image rejected: no signature is accepted ({file}, {scope}): {}", causes.join("; "))]
    NoneAccepted {
        /// The policy's file.
        file: PathBuf,
        /// Which of its scopes.
        scope: String,
        /// What is wrong with each, without repetitions.
        causes: Vec<String>,
    },
}

/// A policy that was read.
#[derive(Debug)]
pub(crate) struct Policy {
    path: PathBuf,
    content: file::Content,
}

/// What the policy says about one image.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    file: PathBuf,
    scope: String,
    wanted: Reference,
    requirements: Arc<Vec<Requirement>>,
}

impl Policy {
    /// The policy that is in force; `None` when there is no file and none was named.
    pub(crate) async fn read(named: Option<&Path>) -> Result<Option<Self>, PolicyError> {
        let Some(path) = find(named) else {
            return Ok(None);
        };
        let read = crate::cache::read_capped(&path, FILE_BYTES).await;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(PolicyError::Read { path, source }),
        };
        tokio::task::spawn_blocking(move || Self::parse(path, &bytes))
            .await
            .map_err(|error| PolicyError::Read {
                path: PathBuf::new(),
                source: io::Error::other(error),
            })?
            .map(Some)
    }

    /// A policy from its text. Reads the keys it names: not for async threads.
    pub(crate) fn parse(path: PathBuf, bytes: &[u8]) -> Result<Self, PolicyError> {
        match file::parse(bytes) {
            Ok(content) => Ok(Self { path, content }),
            Err(file::FileError::Json(source)) => Err(PolicyError::Malformed { path, source }),
            Err(file::FileError::Scope { scope, cause }) => Err(PolicyError::Unusable { path, scope, cause }),
        }
    }

    /// What it says about an image.
    pub(crate) fn verdict(&self, wanted: &Reference) -> Verdict {
        let (scope, requirements) = self.content.of(wanted);
        Verdict {
            file: self.path.clone(),
            scope,
            wanted: wanted.clone(),
            requirements,
        }
    }
}

/// Whether a policy file is there, or was named.
pub(crate) fn is_there(named: Option<&Path>) -> bool {
    named.is_some() || find(None).is_some()
}

fn find(named: Option<&Path>) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    let user = home.map(|home| Path::new(&home).join(USER_FILE));
    user.into_iter()
        .chain([PathBuf::from(SYSTEM_FILE)])
        .find(|path| path.exists())
}

/// What a verdict was made from, for its fingerprint.
#[derive(Serialize)]
struct Ground<'a> {
    wanted: String,
    requirements: &'a [Requirement],
}

impl Verdict {
    /// Refuses what no signature could make good, before anything is transferred.
    pub(crate) fn before(&self) -> Result<(), PolicyError> {
        for requirement in self.requirements.iter() {
            match requirement {
                Requirement::Accept | Requirement::Sigstore(_) => {}
                Requirement::Reject => {
                    return Err(PolicyError::Rejected {
                        image: self.wanted.to_string(),
                        file: self.file.clone(),
                        scope: self.scope.clone(),
                    });
                }
                Requirement::Unsupported(kind) => {
                    return Err(PolicyError::Unsupported {
                        file: self.file.clone(),
                        scope: self.scope.clone(),
                        kind: kind.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether signatures have to be looked at.
    pub(crate) fn wants_signatures(&self) -> bool {
        self.requirements
            .iter()
            .any(|requirement| matches!(requirement, Requirement::Sigstore(_)))
    }

    /// Whether every requirement is met by one of the signatures of an image, each of which may be
    /// of any of its digests: that of the index, or that of the manifest chosen from it.
    pub(crate) fn check(&self, digests: &[&Digest], attached: &[Attached]) -> Result<(), PolicyError> {
        for requirement in self.requirements.iter() {
            let Requirement::Sigstore(keys) = requirement else {
                continue;
            };
            if attached.is_empty() {
                return Err(PolicyError::NoSignature {
                    file: self.file.clone(),
                    scope: self.scope.clone(),
                });
            }
            let mut causes = Vec::new();
            for signature in attached {
                match keys.accepts(&self.wanted, digests, signature) {
                    Ok(()) => {
                        causes.clear();
                        break;
                    }
                    Err(cause) if causes.contains(&cause) => {}
                    Err(cause) => causes.push(cause),
                }
            }
            if !causes.is_empty() {
                return Err(PolicyError::NoneAccepted {
                    file: self.file.clone(),
                    scope: self.scope.clone(),
                    causes,
                });
            }
        }
        Ok(())
    }

    /// The same for the same requirements, keys included, on the same reference: what was accepted
    /// under one fingerprint need not be looked at again.
    pub(crate) fn fingerprint(&self) -> String {
        let ground = Ground {
            wanted: self.wanted.to_string(),
            requirements: &self.requirements,
        };
        // Plain data: serializing it does not fail.
        let text = serde_json::to_vec(&ground).unwrap_or_default();
        Digest::from_hash(crate::Algorithm::Sha256, &Sha256::digest(text)).to_string()
    }
}

#[cfg(test)]
mod tests;
