//! Digest of everything that determines the objects of a revision.

use data_encoding::HEXLOWER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
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

/// Issuers of a cluster that the feature gates of operator-controller permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermittedProviders {
    /// cert-manager (gate `WebhookProviderCertManager`).
    pub cert_manager: bool,
    /// OpenShift's service CA (gate `WebhookProviderOpenshiftServiceCA`).
    pub service_ca: bool,
}

impl CertificateProvider {
    /// Returns the issuer for bundles with webhooks on a cluster that serves these API groups. operator-controller itself is the issuer if
    /// the cluster offers no permitted one.
    pub fn on_cluster(groups: &[APIGroup], permitted: PermittedProviders) -> Self {
        let group = |name: &str| groups.iter().find(|group| group.name == name);
        let has_v1 = |group: &APIGroup| group.versions.iter().any(|served| served.version == "v1");
        if permitted.cert_manager && group("cert-manager.io").is_some_and(has_v1) {
            Self::CertManager
        } else if permitted.service_ca && group("config.openshift.io").is_some() {
            Self::ServiceCa
        } else {
            Self::Own
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_without_inline_part_is_an_empty_object() {
        let of = |spec: Value| {
            let extension = json!({"metadata": {"name": "a"},
                "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}, "config": spec}});
            config(&serde_json::from_value(extension).unwrap())
        };
        let inline = json!({"watchNamespace": "n"});
        assert_eq!(
            of(json!({"configType": "Inline", "inline": inline.clone()})),
            Some(inline)
        );
        assert_eq!(of(json!({"configType": "Inline"})), Some(json!({})));
        assert_eq!(of(Value::Null), None);
    }

    #[test]
    fn an_issuer_of_the_cluster_must_be_served_and_permitted() {
        use CertificateProvider::{CertManager, Own, ServiceCa};
        let group = |name: &str, version: &str| -> APIGroup {
            let version = json!({"version": version, "groupVersion": format!("{name}/{version}")});
            serde_json::from_value(json!({"name": name, "versions": [version]})).unwrap()
        };
        let both = [group("cert-manager.io", "v1"), group("config.openshift.io", "v1")];
        let old = [group("cert-manager.io", "v1alpha2")];
        for (groups, cert_manager, service_ca, expected) in [
            (&both[..], true, true, CertManager),
            (&both, false, true, ServiceCa),
            (&both, false, false, Own),
            (&both[..1], false, true, Own),
            (&old, true, true, Own),
        ] {
            let permitted = PermittedProviders {
                cert_manager,
                service_ca,
            };
            assert_eq!(CertificateProvider::on_cluster(groups, permitted), expected);
        }
    }
}
