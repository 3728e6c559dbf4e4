//! Annotations of revisions that follow the spec of their extension.
//!
//! The present spec decides, also while the extension is being deleted: its revisions carry it in annotations, since their own
//! controller writes and deletes the objects.

use olm_api::{ClusterExtension, keys};

use super::account;

/// Returns the annotations of the revisions of `extension`; `None` for those that they must not have.
pub(crate) fn annotations(
    extension: &ClusterExtension,
) -> impl Iterator<Item = (&'static str, Option<String>)> {
    let deletion = extension.spec.deletion.as_ref();
    let custom_resources = deletion.and_then(|deletion| deletion.custom_resources);
    account::annotations(extension).into_iter().chain([(
        keys::CUSTOM_RESOURCES_ON_DELETE_ANNOTATION,
        custom_resources.map(|policy| policy.to_string()),
    )])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn extension(deletion: &Value) -> ClusterExtension {
        serde_json::from_value(
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "x"}, "spec": {"namespace": "ns", "deletion": deletion,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}}}),
        )
        .unwrap()
    }

    #[test]
    fn revisions_name_a_policy_only_if_the_spec_does() {
        let named = |deletion: Value| {
            let key = keys::CUSTOM_RESOURCES_ON_DELETE_ANNOTATION;
            let all = annotations(&extension(&deletion)).collect::<Vec<_>>();
            all.into_iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value)
        };
        assert_eq!(named(json!(null)), Some(None));
        assert_eq!(named(json!({})), Some(None));
        assert_eq!(
            named(json!({"customResources": "Block"})),
            Some(Some("Block".to_owned()))
        );
    }
}
