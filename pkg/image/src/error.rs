//! What can go wrong with an image, one sentence each.

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

/// A failed resolve, fetch or forget.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reference is no reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The owner cannot name a directory.
    #[error("owner {0:?} of an image is not a DNS-1123 subdomain")]
    Owner(String),
    /// registries.conf cannot be used.
    #[error("error creating image source: registries configuration cannot be used")]
    Registries(#[source] RegistriesError),
    /// registries.conf leaves nowhere to pull from.
    #[error("error creating image source: registry {registry} is blocked in {file}")]
    Blocked {
        /// The blocked prefix.
        registry: String,
        /// Where it says so.
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
    /// The signature policy refuses the image.
    #[error("error copying image: {reference} is not accepted")]
    Refused {
        /// The reference.
        reference: CanonicalRef,
        /// Why.
        #[source]
        source: Box<PolicyError>,
    },
    /// A tag could not be resolved.
    #[error("error getting manifest: image {reference} cannot be resolved")]
    Resolve {
        /// The reference.
        reference: Reference,
        /// What the last source answered.
        #[source]
        source: Box<RegistryError>,
    },
    /// Credentials are missing, and the pull secrets have a trouble of their own.
    #[error("{}; {trouble}", .failed.message())]
    PullSecrets {
        /// What is wrong with the pull secrets.
        trouble: String,
        /// What failed.
        failed: Box<Error>,
    },
    /// An image could not be transferred.
    #[error("error copying image: {reference} cannot be pulled")]
    Pull {
        /// The reference.
        reference: CanonicalRef,
        /// What the last source answered.
        #[source]
        source: Box<RegistryError>,
    },
    /// A pull took too long as a whole.
    #[error("error copying image: {reference} was not pulled within {limit:?}")]
    TooSlow {
        /// The reference.
        reference: CanonicalRef,
        /// How long it had.
        limit: Duration,
    },
    /// The image's content cannot be unpacked.
    #[error("error applying image: error applying layer[{layer}]")]
    Unpack {
        /// Which layer, from 0.
        layer: usize,
        /// Why.
        #[source]
        source: UnpackError,
    },
    /// The label that names the content's directory is missing.
    #[error("catalog image is missing the required label {label:?}")]
    MissingLabel {
        /// The label.
        label: &'static str,
    },
    /// The label names no directory inside the image.
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
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The task that unpacks ended abnormally.
    #[error("error applying image: unpacking was interrupted")]
    Interrupted,
}

impl Error {
    /// Whether trying again cannot help, whatever the reference.
    pub fn terminal(&self) -> bool {
        matches!(self, Self::Reference(_) | Self::Owner(_))
    }

    /// Whether trying again cannot help for the reference that was asked for: a missing label is
    /// final when the content cannot change, that is with a digest; a tag may be pushed again.
    pub fn terminal_for(&self, reference: &Reference) -> bool {
        self.terminal() || (self.missing_label() && reference.by_digest())
    }

    /// Whether the image lacks the label that names its content.
    pub fn missing_label(&self) -> bool {
        matches!(self, Self::MissingLabel { .. })
    }

    /// The whole chain of causes in one line that stays the same from try to try: what differs
    /// each time (a connection's own port) is left out.
    pub fn message(&self) -> String {
        sanitize::stable(&olm_text::chain(self))
    }
}
