//! Errors of the composition.

use crate::Overlay;

/// Reason why manifests cannot be composed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The overlays contradict each other.
    #[error("the overlays {} and {} exclude each other: choose one", .0.name(), .1.name())]
    Exclusive(Overlay, Overlay),
    /// A kustomization names a file that is not embedded.
    #[error("config/{0} is not part of this program")]
    Missing(String),
    /// A file is not YAML.
    #[error("config/{file} is not valid YAML")]
    Yaml {
        /// Path below `config/`.
        file: String,
        /// Cause.
        #[source]
        source: olm_yaml::YamlError,
    },
    /// A kustomization uses a feature that is not supported here, or has the wrong shape.
    #[error("config/{file} cannot be composed: {cause}")]
    Unsupported {
        /// Path below `config/`.
        file: String,
        /// Cause.
        cause: String,
    },
}
