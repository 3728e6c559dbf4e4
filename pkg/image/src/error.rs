//! Errors of image operations, one sentence each.

use std::{io, path::PathBuf, time::Duration};

use olm_runtime::tls::TlsError;

use crate::{
    auth::AuthError,
    policy::PolicyError,
    reference::{CanonicalRef, Reference, ReferenceError},
    registries::RegistriesError,
    registry::RegistryError,
    sanitize,
    unpack::UnpackError,
};

/// Maximum number of other sources whose errors a message shows.
const MAX_OTHERS: usize = 3;
/// Maximum size of the error of another source in a message, in bytes.
const MAX_OTHER_BYTES: usize = 400;

/// Failed resolve, fetch or forget.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The owner cannot name a directory.
    #[error("owner {0:?} of an image is not a DNS-1123 subdomain")]
    Owner(String),
    /// registries.conf cannot be used.
    #[error("error creating image source: registries configuration cannot be used")]
    Registries(#[source] RegistriesError),
    /// registries.conf blocks all sources.
    #[error("error creating image source: registry {registry} is blocked in {file}")]
    Blocked {
        /// The blocked prefix.
        registry: String,
        /// The file with the rule.
        file: String,
    },
    /// The credentials file cannot be used.
    #[error("error creating image source: registry credentials cannot be used")]
    Auth(#[source] AuthError),
    /// The directory of authorities cannot be used.
    #[error("error creating image source: certificate authorities cannot be used")]
    Authorities(#[source] TlsError),
    /// The signature policy cannot be used.
    #[error("error loading policy context")]
    Policy(#[source] PolicyError),
    /// The signature policy rejects the image.
    #[error("error copying image: {reference} is not accepted")]
    Refused {
        /// The reference.
        reference: CanonicalRef,
        /// The cause.
        #[source]
        source: Box<PolicyError>,
    },
    /// A tag could not be resolved.
    #[error("error getting manifest: image {reference} cannot be resolved")]
    Resolve {
        /// The reference.
        reference: Reference,
        /// Error of the decisive source.
        #[source]
        source: Box<RegistryError>,
    },
    /// More than one source failed.
    #[error("{}; {}", .failed.message(), others_failed(.others))]
    Sources {
        /// The failure, by the decisive source.
        failed: Box<Error>,
        /// Errors of the other sources, in the order of the attempts.
        others: Vec<RegistryError>,
    },
    /// Credentials are missing, and the pull secrets have a problem.
    #[error("{}; {problem}", .failed.message())]
    PullSecrets {
        /// Problem of the pull secrets.
        problem: String,
        /// The failure.
        failed: Box<Error>,
    },
    /// The image could not be transferred.
    #[error("error copying image: {reference} cannot be pulled")]
    Pull {
        /// The reference.
        reference: CanonicalRef,
        /// Error of the decisive source.
        #[source]
        source: Box<RegistryError>,
    },
    /// Unpacking took too long.
    #[error("error applying image: {reference} was not unpacked within {limit:?}")]
    TooSlow {
        /// The reference.
        reference: CanonicalRef,
        /// The time limit.
        limit: Duration,
    },
    /// The image's content cannot be unpacked.
    #[error("error applying image: error applying layer[{layer}]")]
    Unpack {
        /// Index of the layer, from 0.
        layer: usize,
        /// The cause.
        #[source]
        source: UnpackError,
    },
    /// The label that names the content's directory is missing.
    #[error("catalog image is missing the required label {label:?}")]
    MissingLabel {
        /// The label.
        label: &'static str,
    },
    /// The label does not name a directory inside the image.
    #[error("label {label:?} of the image names {directory:?}, which is not a directory inside the image")]
    LabelDirectory {
        /// The label.
        label: &'static str,
        /// Its value.
        directory: String,
    },
    /// The cache on disk cannot be used.
    #[error("error checking cache for existing content: cannot {action} {path}")]
    Cache {
        /// The attempted action.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The unpacking task panicked or was cancelled.
    #[error("error applying image: unpacking was interrupted")]
    Interrupted,
}

impl Error {
    /// Returns true if a retry cannot help, whatever the reference.
    pub fn terminal(&self) -> bool {
        matches!(self, Self::Reference(_) | Self::Owner(_))
    }

    /// Returns true if a retry cannot help for `reference`. A missing label is terminal if the reference has a digest;
    /// a tag may be pushed again.
    pub fn terminal_for(&self, reference: &Reference) -> bool {
        self.terminal() || (self.missing_label() && reference.by_digest())
    }

    /// Returns true if the image lacks the label that names its content.
    pub fn missing_label(&self) -> bool {
        matches!(self, Self::MissingLabel { .. })
    }

    /// Returns the chain of causes in one line that is the same at every attempt: varying parts, such as a connection's
    /// local port, are left out.
    pub fn message(&self) -> String {
        sanitize::stable(&olm_text::chain(self))
    }
}

fn others_failed(others: &[RegistryError]) -> String {
    let shown = others.iter().take(MAX_OTHERS);
    let mut texts: Vec<String> = shown
        .map(|error| olm_text::cut(&olm_text::chain(error), MAX_OTHER_BYTES).into_owned())
        .collect();
    if others.len() > MAX_OTHERS {
        texts.push("…".to_owned());
    }
    let count = olm_text::counted(others.len(), "other source");
    format!("{count} failed: {}", texts.join("; "))
}
