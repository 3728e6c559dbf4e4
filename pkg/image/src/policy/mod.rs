//! Signature policy: `policy.json` of containers/image.
//!
//! The most specific scope of the transport `docker` that matches a reference decides alone, then the transport's
//! default, then the global default. Every requirement listed there must hold. Unknown content is an error, never
//! ignored: a half-read policy would be no policy. The only supported signatures are cosign's with a public key; a
//! scope that requires another kind rejects its images with an explanation.

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
    registry::Signature,
};

/// Default path.
const SYSTEM_FILE: &str = "/etc/containers/policy.json";
/// Path of the user's file, below the home directory.
const USER_FILE: &str = ".config/containers/policy.json";
/// Maximum size of a policy, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The policy is unusable or rejects an image.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file exists or was named, but cannot be read.
    #[error("signature policy {path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not a policy.
    #[error("{path} is not a signature policy")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The requirements are inconsistent, or a key is invalid.
    #[error("{path} is not a valid signature policy: {scope}: {cause}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The scope.
        scope: String,
        /// The cause.
        cause: String,
    },
    /// The policy rejects the image.
    #[error("Source image rejected: Running image docker://{image} is rejected by policy ({file}, {scope})")]
    Rejected {
        /// The image.
        image: String,
        /// The policy's file.
        file: PathBuf,
        /// The scope that decided.
        scope: String,
    },
    /// The policy requires an unsupported kind of signature.
    #[error(
        "Source image rejected: {file} requires {kind} for {scope}, which is not supported; use sigstoreSigned with a public key"
    )]
    Unsupported {
        /// The policy's file.
        file: PathBuf,
        /// The scope that decided.
        scope: String,
        /// The required kind.
        kind: String,
    },
    /// The image has no signatures.
    #[error(
        "Source image rejected: A signature was required, but no signature exists ({file}, {scope}); sign the image with cosign"
    )]
    NoSignature {
        /// The policy's file.
        file: PathBuf,
        /// The scope that decided.
        scope: String,
    },
    /// Every signature is rejected.
    #[error("Source image rejected: no signature is accepted ({file}, {scope}): {}", causes.join("; "))]
    NoneAccepted {
        /// The policy's file.
        file: PathBuf,
        /// The scope that decided.
        scope: String,
        /// The distinct causes.
        causes: Vec<String>,
    },
}

/// Parsed policy.
#[derive(Debug)]
pub(crate) struct Policy {
    path: PathBuf,
    content: file::Content,
}

/// Requirements of the policy for one image.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    file: PathBuf,
    scope: String,
    requested: Reference,
    requirements: Arc<Vec<Requirement>>,
}

impl Policy {
    /// Returns the effective policy; `None` if there is no file and none was named.
    pub(crate) async fn read(named: Option<&Path>) -> Result<Option<Self>, PolicyError> {
        let Some(path) = find(named) else {
            return Ok(None);
        };
        let read = crate::files::read_capped(&path, MAX_FILE_BYTES).await;
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

    /// Parses a policy and reads the keys it names. Blocks on the disk.
    pub(crate) fn parse(path: PathBuf, bytes: &[u8]) -> Result<Self, PolicyError> {
        match file::parse(bytes) {
            Ok(content) => Ok(Self { path, content }),
            Err(file::FileError::Json(source)) => Err(PolicyError::Malformed { path, source }),
            Err(file::FileError::Scope { scope, cause }) => Err(PolicyError::Unusable { path, scope, cause }),
        }
    }

    /// Returns the requirements for an image.
    pub(crate) fn verdict(&self, requested: &Reference) -> Verdict {
        let (scope, requirements) = self.content.of(requested);
        Verdict {
            file: self.path.clone(),
            scope,
            requested: requested.clone(),
            requirements,
        }
    }
}

/// Returns true if a policy file exists or was named.
pub(crate) fn exists(named: Option<&Path>) -> bool {
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

/// Inputs of a fingerprint.
#[derive(Serialize)]
struct FingerprintInput<'a> {
    // The name is part of the fingerprint that markers on disk hold.
    #[serde(rename = "wanted")]
    requested: String,
    requirements: &'a [Requirement],
}

impl Verdict {
    /// Rejects images that no signature could make acceptable, before any transfer.
    pub(crate) fn reject_early(&self) -> Result<(), PolicyError> {
        for requirement in self.requirements.iter() {
            match requirement {
                Requirement::Accept | Requirement::Sigstore(_) => {}
                Requirement::Reject => {
                    return Err(PolicyError::Rejected {
                        image: self.requested.to_string(),
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

    /// Returns true if signatures are required.
    pub(crate) fn requires_signatures(&self) -> bool {
        self.requirements
            .iter()
            .any(|requirement| matches!(requirement, Requirement::Sigstore(_)))
    }

    /// Returns the fingerprint if signatures are required. Otherwise acceptance needs no proof.
    pub(crate) fn required_fingerprint(&self) -> Option<String> {
        self.requires_signatures().then(|| self.fingerprint())
    }

    /// Checks that a signature of the image meets every requirement. A signature may be for any of the image's digests:
    /// that of the index, or that of the manifest chosen from it.
    pub(crate) fn check(&self, digests: &[&Digest], signatures: &[Signature]) -> Result<(), PolicyError> {
        for requirement in self.requirements.iter() {
            let Requirement::Sigstore(keys) = requirement else {
                continue;
            };
            if signatures.is_empty() {
                return Err(PolicyError::NoSignature {
                    file: self.file.clone(),
                    scope: self.scope.clone(),
                });
            }
            let mut causes = Vec::new();
            for signature in signatures {
                match keys.accepts(&self.requested, digests, signature) {
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

    /// Returns a digest of the requirements, keys included, and the reference. An image accepted under the same
    /// fingerprint needs no second check.
    pub(crate) fn fingerprint(&self) -> String {
        let input = FingerprintInput {
            requested: self.requested.to_string(),
            requirements: &self.requirements,
        };
        // Serializing plain data does not fail.
        let text = serde_json::to_vec(&input).unwrap_or_default();
        Digest::from_hash(crate::Algorithm::Sha256, &Sha256::digest(text)).to_string()
    }
}

#[cfg(test)]
mod tests;
