//! Manifest of the ClusterExtension that installs a package.

use olm_api::keys;
use serde_json::{Value, json};

/// Longest name of a namespace, RFC 1123.
const MAX_NAMESPACE: usize = 63;

/// Installation of a package, with the meaning of the fields of a ClusterExtension.
#[derive(Clone, Copy, Debug, Default)]
pub struct Installation<'a> {
    /// Name of the ClusterExtension.
    pub name: &'a str,
    /// The package.
    pub package: &'a str,
    /// Namespace of the objects; without one, the bundle suggests it.
    pub namespace: Option<&'a str>,
    /// Version range; empty for any version.
    pub version: &'a str,
    /// Channels to choose from; empty for all.
    pub channels: &'a [String],
    /// True if every version is permitted, not only successors that the catalog names.
    pub self_certified: bool,
    /// The one catalog to choose from.
    pub catalog: Option<&'a str>,
    /// Service account of the installation.
    pub service_account: Option<&'a str>,
}

impl Installation<'_> {
    /// Returns the ClusterExtension, with only the fields that the installation states.
    pub fn manifest(&self) -> Value {
        let mut catalog = json!({"packageName": self.package});
        if !self.version.is_empty() {
            catalog["version"] = json!(self.version);
        }
        if !self.channels.is_empty() {
            catalog["channels"] = json!(self.channels);
        }
        if self.self_certified {
            catalog["upgradeConstraintPolicy"] = json!("SelfCertified");
        }
        if let Some(name) = self.catalog {
            catalog["selector"] = json!({"matchLabels": {keys::METADATA_NAME_LABEL: name}});
        }
        let mut spec = json!({"source": {"sourceType": "Catalog", "catalog": catalog}});
        if let Some(namespace) = self.namespace {
            spec["namespace"] = json!(namespace);
        }
        if let Some(account) = self.service_account {
            spec["serviceAccount"] = json!({"name": account});
        }
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": self.name}, "spec": spec})
    }
}

/// Returns the namespace that `kubectl olm install` takes by default; none if the package's name fits no namespace.
pub fn default_namespace(package: &str) -> Option<String> {
    let namespace = format!("{package}-system");
    (namespace.len() <= MAX_NAMESPACE && !namespace.contains('.')).then_some(namespace)
}
