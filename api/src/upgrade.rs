//! Upgrade of an installed bundle, as the status of its extension shows it.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Upgrade that is not rolled out, because it waits or because the spec holds it back.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AvailableUpgrade {
    /// Version that the upgrade brings.
    pub version: String,

    /// Name of the bundle in its catalog.
    pub bundle: String,

    /// Name of the ClusterCatalog of the bundle, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
}
