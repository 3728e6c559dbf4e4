//! Facts that the annotations of a ClusterObjectSet record.

use olm_api::{ClusterObjectSet, keys};
use olm_version::BundleVersion;

/// Returns the version of the bundle of `revision`, with its release if that is recorded separately; empty without the
/// annotations.
#[must_use]
pub fn bundle_version(revision: &ClusterObjectSet) -> BundleVersion {
    let annotations = revision.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations.and_then(|all| all.get(key)).cloned();
    BundleVersion::recorded(
        annotation(keys::BUNDLE_VERSION_ANNOTATION).unwrap_or_default(),
        annotation(keys::BUNDLE_RELEASE_ANNOTATION),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_release_is_read_from_its_own_annotation() {
        let read = |annotations: serde_json::Value| {
            let revision = json!({"metadata": {"annotations": annotations}, "spec":
                {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}});
            bundle_version(&serde_json::from_value(revision).unwrap())
        };
        let version = json!({keys::BUNDLE_VERSION_ANNOTATION: "1.0.0+2"});
        assert_eq!(read(version), BundleVersion::from("1.0.0+2"));
        let both = json!({keys::BUNDLE_VERSION_ANNOTATION: "1.0.0", keys::BUNDLE_RELEASE_ANNOTATION: "2"});
        assert_eq!(read(both), BundleVersion::recorded("1.0.0", Some("2".to_owned())));
        assert_eq!(read(json!({})), BundleVersion::default());
    }
}
