//! Digest of everything that determines the objects of a revision.

use data_encoding::HEXLOWER;
use olm_api::ClusterExtension;
use olm_image::CanonicalRef;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::history::BundleRef;

/// Version of the renderer; raised if the same bundle and configuration render to other objects than before.
const RENDERER: u32 = 1;

/// Issuer of the serving certificates of a bundle's webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateProvider {
    /// No issuer: the bundle has no webhooks.
    None,
    /// cert-manager.io.
    CertManager,
    /// OpenShift's service CA.
    ServiceCa,
    /// operator-controller itself.
    Own,
}

impl CertificateProvider {
    /// Returns the value of the annotation on a revision.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CertManager => "cert-manager",
            Self::ServiceCa => "service-ca",
            Self::Own => "own",
        }
    }
}

/// Everything that determines the objects of a revision.
#[derive(Clone, Debug)]
pub struct RenderInputs<'a> {
    /// The bundle.
    pub bundle: &'a BundleRef,
    /// Reference of the bundle's image, by digest.
    pub canonical_image: &'a CanonicalRef,
    /// Install namespace; `None` before it is chosen.
    pub namespace: Option<&'a str>,
    /// `spec.config`.
    pub config: Option<&'a Value>,
    /// Namespaces that the configuration selects by labels, sorted; `None` if it does not.
    pub namespaces: Option<&'a [String]>,
    /// Issuer of the webhooks' certificates.
    pub provider: CertificateProvider,
}

impl RenderInputs<'_> {
    /// Returns the digest as `sha256:` and hex. Two revisions with the same digest have the same objects.
    pub fn identity(&self) -> String {
        // Maps of serde_json are sorted, so equal configurations give equal bytes in any order of keys.
        let mut inputs = json!({
            "renderer": RENDERER,
            "bundle": self.bundle.name,
            "version": self.bundle.version.as_str(),
            "release": self.bundle.version.release(),
            "package": self.bundle.package,
            "reference": self.bundle.image.text(),
            "image": self.canonical_image.to_string(),
            "namespace": self.namespace,
            "config": self.config,
            "certificates": self.provider.as_str(),
        });
        // Absent otherwise, so that revisions of former versions keep their digests.
        if let (Some(map), Some(namespaces)) = (inputs.as_object_mut(), self.namespaces) {
            map.insert("namespaces".to_owned(), json!(namespaces));
        }
        let text = inputs.to_string();
        format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text.as_bytes())))
    }
}

/// Returns `spec.config.inline`; an empty object if `spec.config` has no inline part.
pub fn config(extension: &ClusterExtension) -> Option<Value> {
    extension.spec.inline_config()
}
