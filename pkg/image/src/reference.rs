//! Fully qualified image references.
//!
//! The grammar is that of the distribution project. Unlike the docker command line, no part is defaulted: `nginx` and
//! `docker.io/nginx` are rejected because they do not show where they come from. Exactly one of tag and digest is
//! required. Values of these types are safe in URLs; a [`Digest`] is also safe as a file name.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;

/// Maximum length of a repository name, domain and path together, in bytes.
const NAME_BYTES: usize = 255;
/// Maximum length of a tag, in bytes.
const TAG_BYTES: usize = 128;

/// Reference to an image by tag or by digest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    repository: Repository,
    version: TagOrDigest,
}

/// Registry and path within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repository {
    domain: String,
    path: String,
}

/// Version of an image within its repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TagOrDigest {
    /// Name that may move.
    Tag(String),
    /// Digest of the content.
    Digest(Digest),
}

/// Reference by digest: `repository@algorithm:hex`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CanonicalRef {
    repository: Repository,
    digest: Digest,
}

/// Content digest, sha256 or sha512, in lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// Hash function of a [`Digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// 64 hex digits.
    Sha256,
    /// 128 hex digits.
    Sha512,
}

/// Invalid reference. Only the user can fix it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReferenceError {
    /// Parts are missing that would have to be guessed.
    #[error("error parsing image reference {0:?}: repository name must be canonical")]
    NotCanonical(String),
    /// The text does not match the grammar.
    #[error("error parsing image reference {reference:?}: {cause}")]
    Invalid {
        /// The text.
        reference: String,
        /// The violated rule.
        cause: &'static str,
    },
    /// Neither tag nor digest.
    #[error(
        "error creating reference: Docker reference {0} is not for an unknown digest case; tag or digest is needed"
    )]
    NoVersion(String),
    /// The reference has a tag and a digest, which could contradict each other.
    #[error(
        "error creating reference: Docker references with both a tag and digest are currently not supported"
    )]
    TagAndDigest,
}

impl Reference {
    /// Returns registry and path.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the tag or digest.
    pub fn version(&self) -> &TagOrDigest {
        &self.version
    }

    /// Returns true if the reference has a digest, so that a retry gives the same content.
    pub fn by_digest(&self) -> bool {
        matches!(self.version, TagOrDigest::Digest(_))
    }

    /// Returns the canonical form of a reference by digest.
    pub fn canonical(&self) -> Option<CanonicalRef> {
        match &self.version {
            TagOrDigest::Digest(digest) => Some(self.repository.at(digest.clone())),
            TagOrDigest::Tag(_) => None,
        }
    }
}

impl Repository {
    /// Returns the host with its port, if given.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the path below the host.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the reference to a digest in this repository.
    #[must_use]
    pub fn at(&self, digest: Digest) -> CanonicalRef {
        CanonicalRef {
            repository: self.clone(),
            digest,
        }
    }

    /// Parses a repository such as `registry:5000/team/app`, without tag or digest.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (domain, path) = text.split_once('/')?;
        (valid_domain(domain) && valid_path(path) && text.len() <= NAME_BYTES).then(|| Self {
            domain: domain.to_owned(),
            path: path.to_owned(),
        })
    }
}

impl CanonicalRef {
    /// Returns registry and path.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the digest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl Digest {
    /// Creates a digest from its algorithm and raw hash.
    pub(crate) fn from_hash(algorithm: Algorithm, hash: &[u8]) -> Self {
        let hex = HEXLOWER.encode(hash);
        Self { algorithm, hex }
    }

    /// Returns the hash function.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.path)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            TagOrDigest::Tag(tag) => write!(f, "{}:{tag}", self.repository),
            TagOrDigest::Digest(digest) => write!(f, "{}@{digest}", self.repository),
        }
    }
}

impl fmt::Display for CanonicalRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.repository, self.digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl From<CanonicalRef> for Reference {
    fn from(reference: CanonicalRef) -> Self {
        Self {
            repository: reference.repository,
            version: TagOrDigest::Digest(reference.digest),
        }
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (algorithm, hex) = text.split_once(':').ok_or("invalid checksum digest format")?;
        let algorithm = match algorithm {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err("unsupported digest algorithm"),
        };
        if hex.len() != algorithm.hex_digits() {
            return Err("invalid checksum digest length");
        }
        if !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err("invalid checksum digest format");
        }
        Ok(Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }
}

impl FromStr for CanonicalRef {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Reference>()?
            .canonical()
            .ok_or_else(|| ReferenceError::Invalid {
                reference: text.to_owned(),
                cause: "a digest is needed",
            })
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMAT: &str = "invalid reference format";
        let invalid = |cause| ReferenceError::Invalid {
            reference: text.to_owned(),
            cause,
        };
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the port.
        let last = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest.get(last..).and_then(|part| part.find(':')) {
            Some(colon) => {
                let (name, tag) = rest.split_at(last + colon);
                (name, tag.strip_prefix(':'))
            }
            None => (rest, None),
        };
        if tag.is_some_and(|tag| !valid_tag(tag)) || digest.is_some_and(|digest| !looks_like_digest(digest)) {
            return Err(invalid(FORMAT));
        }
        let spelled_out = match name.split_once('/') {
            // Without any of these characters the first part is a path on the default registry.
            Some((domain, _)) => {
                domain.contains(['.', ':'])
                    || domain == "localhost"
                    || domain.bytes().any(|byte| byte.is_ascii_uppercase())
            }
            None => false,
        };
        let (domain, path) = if spelled_out {
            name.split_once('/').ok_or_else(|| invalid(FORMAT))?
        } else {
            ("docker.io", name)
        };
        if path.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(invalid(
                "invalid reference format: repository name must be lowercase",
            ));
        }
        if !valid_domain(domain) || !valid_path(path) {
            return Err(invalid(FORMAT));
        }
        if domain.len() + 1 + path.len() > NAME_BYTES {
            return Err(invalid("repository name must not be more than 255 characters"));
        }
        let official = matches!(domain, "docker.io" | "index.docker.io") && !path.contains('/');
        if !spelled_out || official || domain == "index.docker.io" {
            return Err(ReferenceError::NotCanonical(text.to_owned()));
        }
        let digest = digest.map(str::parse::<Digest>).transpose().map_err(invalid)?;
        let version = match (tag, digest) {
            (Some(_), Some(_)) => return Err(ReferenceError::TagAndDigest),
            (Some(tag), None) => TagOrDigest::Tag(tag.to_owned()),
            (None, Some(digest)) => TagOrDigest::Digest(digest),
            (None, None) => return Err(ReferenceError::NoVersion(text.to_owned())),
        };
        let repository = Repository {
            domain: domain.to_owned(),
            path: path.to_owned(),
        };
        Ok(Self { repository, version })
    }
}

/// Checks a domain: dot-separated labels or an IPv6 address in brackets, with an optional port.
fn valid_domain(domain: &str) -> bool {
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = domain.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, port)| {
            !address.is_empty()
                && address
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b':')
                && (port.is_empty() || port.strip_prefix(':').is_some_and(digits))
        });
    }
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    port.is_none_or(digits)
        && host.split('.').all(|label| {
            label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && label.bytes().next().is_some_and(|byte| byte != b'-')
                && !label.ends_with('-')
        })
}

/// Checks a path: lower-case words joined by `.`, `_`, `__` or dashes; parts joined by slashes.
fn valid_path(path: &str) -> bool {
    path.split('/').all(|part| {
        let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = part.as_bytes();
        bytes.first().copied().is_some_and(word)
            && bytes.last().copied().is_some_and(word)
            && bytes
                .split(|byte| word(*byte))
                .filter(|separator| !separator.is_empty())
                .all(|separator| {
                    matches!(separator, b"." | b"_" | b"__") || separator.iter().all(|byte| *byte == b'-')
                })
    })
}

fn valid_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_BYTES
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

/// Checks the grammar's loose form of a digest; [`Digest`] is stricter and has better messages.
fn looks_like_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        algorithm.split(['-', '_', '+', '.']).all(|part| {
            part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }) && hex.len() >= 32
            && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
