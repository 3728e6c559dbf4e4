//! What the objects of a revision follow from, as one digest. Pure.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::model::BundleRef;

/// Raised whenever rendering the same bundle with the same wishes gives other objects than before.
const RENDERER: u32 = 1;

/// Who makes the serving certificates of a bundle's webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    /// Nobody: the bundle has no webhooks.
    None,
    /// cert-manager.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// This controller.
    Own,
}

impl Provider {
    /// As written to the revision.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CertManager => "cert-manager",
            Self::ServiceCa => "service-ca",
            Self::Own => "own",
        }
    }
}

/// Everything the objects of a revision follow from.
#[derive(Clone, Debug)]
pub(crate) struct Inputs<'a> {
    /// The bundle.
    pub bundle: &'a BundleRef,
    /// Canonical reference of its image, by digest.
    pub canonical_image: &'a str,
    /// Where it is installed.
    pub namespace: &'a str,
    /// `spec.config`.
    pub config: Option<&'a Value>,
    /// Who makes certificates.
    pub provider: Provider,
}

impl Inputs<'_> {
    /// `sha256:` and hex. Two revisions with the same identity have the same objects.
    pub(crate) fn identity(&self) -> String {
        // Maps of serde_json are sorted, so equal wishes give equal bytes however they were written.
        let text = json!({
            "renderer": RENDERER,
            "bundle": self.bundle.name,
            "version": self.bundle.version,
            "release": self.bundle.release,
            "package": self.bundle.package,
            "reference": self.bundle.image,
            "image": self.canonical_image,
            "namespace": self.namespace,
            "config": self.config,
            "certificates": self.provider.as_str(),
        })
        .to_string();
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
            // Writing into a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
