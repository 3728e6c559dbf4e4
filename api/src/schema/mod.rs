//! Custom resource definitions, with the parts that cannot be derived from Rust types.
//!
//! - [`rules`]: validation rules that occur more than once, or are long;
//! - [`parts`]: schemas of types that are not ours (conditions, selectors, embedded objects);
//! - [`reference`]: the rules of image references;
//! - [`finish`]: the last step over a derived definition.

mod finish;
pub(crate) mod parts;
pub(crate) mod reference;
pub(crate) mod rules;

pub use rules::{DNS1123_LABEL, VERSION_RANGE, VERSION_RANGE_LENGTH, VERSION_RANGE_REFUSED};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use crate::{ClusterCatalog, ClusterExtension, ClusterObjectSet};

/// Returns the definitions of all kinds, in order of their names.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        finish::definition(ClusterCatalog::crd(), &["metadata", "spec"]),
        // An extension or a revision without a spec is admitted; it does nothing.
        finish::definition(ClusterExtension::crd(), &[]),
        finish::definition(ClusterObjectSet::crd(), &[]),
    ]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaProps, JSONSchemaPropsOrArray,
    };

    use super::*;

    fn without_description(path: &str, schema: &JSONSchemaProps, found: &mut Vec<String>) {
        for (name, property) in schema.properties.iter().flatten() {
            let path = format!("{path}.{name}");
            if property.description.is_none() && name != "metadata" {
                found.push(path.clone());
            }
            without_description(&path, property, found);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
            without_description(&format!("{path}[]"), item, found);
        }
    }

    #[test]
    fn every_field_is_described() {
        let mut found = Vec::new();
        for crd in crds() {
            for version in &crd.spec.versions {
                let root = version
                    .schema
                    .as_ref()
                    .unwrap()
                    .open_api_v3_schema
                    .as_ref()
                    .unwrap();
                without_description(&crd.spec.names.kind, root, &mut found);
            }
        }
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn the_kinds_are_as_clients_know_them() {
        let crds = crds();
        let names: Vec<_> = crds.iter().map(|crd| crd.spec.names.plural.as_str()).collect();
        assert_eq!(
            names,
            ["clustercatalogs", "clusterextensions", "clusterobjectsets"]
        );
        for crd in &crds {
            assert_eq!(crd.spec.scope, "Cluster");
            assert_eq!(crd.spec.names.short_names, None);
            assert_eq!(crd.spec.names.categories, None);
            let [version] = crd.spec.versions.as_slice() else {
                panic!("one version only")
            };
            assert!(version.served && version.storage);
            assert!(version.subresources.as_ref().is_some_and(|s| s.status.is_some()));
        }
    }
}
