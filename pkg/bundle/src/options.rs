//! Options of rendering.

use std::collections::BTreeMap;

use serde_json::Value;

/// Options for rendering one bundle.
#[derive(Clone, Debug)]
pub struct RenderOptions {
    /// The namespace that the operator runs in.
    pub install_namespace: String,
    /// True if the Namespace is one of the rendered objects, with the labels and annotations that the bundle suggests.
    pub with_namespace: bool,
    /// `spec.config.inline` of the extension; `None` if there is no `spec.config`.
    pub config: Option<Value>,
    /// Names of the namespaces that [`namespace_selector`](crate::namespace_selector) of the configuration matches, without those
    /// that are being deleted; the names beyond [`MAX_NAMESPACES`](crate::MAX_NAMESPACES) + 1 may be left out. `None` if they are
    /// not known, which is an error only for a configuration with a selector.
    pub selected_namespaces: Option<Vec<String>>,
    /// Source of the serving certificates of the bundle's webhooks and API services.
    pub certificates: Certificates,
    /// True if bundles without `AllNamespaces` may be installed. On by default.
    pub single_own_namespace: bool,
    /// True if `deploymentConfig` is a known configuration field. On by default.
    pub deployment_config: bool,
}

impl RenderOptions {
    /// Creates options without configuration. Webhooks are refused until [`certificates`](Self::certificates) is set.
    pub fn new(install_namespace: impl Into<String>) -> Self {
        Self {
            install_namespace: install_namespace.into(),
            with_namespace: false,
            config: None,
            selected_namespaces: None,
            certificates: Certificates::None,
            single_own_namespace: true,
            deployment_config: true,
        }
    }
}

/// Issuers of the serving certificates of webhooks and API services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// Bundles with webhooks or API services are rejected.
    #[default]
    None,
    /// cert-manager: an `Issuer` and a `Certificate` per deployment, CA injected by annotation.
    CertManager,
    /// OpenShift's service CA: annotations only.
    ServiceCa,
    /// The caller: it passes PEMs by secret name for every [`CertificateRequest`] of
    /// [`serving_certificates`](crate::serving_certificates).
    Own(BTreeMap<String, OwnCertificate>),
}

/// A serving certificate made by the caller. All three fields are PEM text.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnCertificate {
    /// The CAs to trust; goes into `caBundle`. The one that signed `cert_pem` is the first.
    pub ca_pem: String,
    /// The certificate chain, leaf first.
    pub cert_pem: String,
    /// The private key of the leaf.
    pub key_pem: String,
    /// Certificate that replaces this one at the next renewal. `ca_pem` already holds its CA, so clients trust both
    /// certificates during the change.
    pub next: Option<NextCertificate>,
}

/// A serving certificate in the Secret that is not in use yet.
#[derive(Clone, PartialEq, Eq)]
pub struct NextCertificate {
    /// The certificate chain, leaf first.
    pub cert_pem: String,
    /// The private key of the leaf.
    pub key_pem: String,
}

impl std::fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Private keys must not be logged.
        f.debug_struct("OwnCertificate").finish_non_exhaustive()
    }
}

/// A certificate that [`Certificates::Own`] must hold for a bundle with webhooks or API services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Name of the Secret that the deployment mounts; the key in [`Certificates::Own`].
    pub secret_name: String,
    /// The Service in front of the deployment.
    pub service_name: String,
    /// Subject alternative names; the first may also serve as common name.
    pub dns_names: Vec<String>,
}
