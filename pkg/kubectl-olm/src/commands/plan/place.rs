//! Install namespace of an extension on a cluster.

use olm_api::{ClusterExtension, ClusterObjectSet, keys};

/// Returns the install namespace: that of the spec, or the one that was chosen for the newest revision.
pub(crate) fn install_namespace<'a>(
    extension: &'a ClusterExtension,
    newest: Option<&'a ClusterObjectSet>,
) -> Option<&'a str> {
    let annotations = newest.and_then(|newest| newest.metadata.annotations.as_ref());
    let chosen = annotations.and_then(|known| known.get(keys::INSTALL_NAMESPACE_ANNOTATION));
    extension.spec.namespace.as_deref().or(chosen.map(String::as_str))
}
