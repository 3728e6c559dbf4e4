//! The CustomResourceDefinitions, and what the derives over the Rust types cannot say about them.
//!
//! - [`rules`]: validation rules that occur more than once, or are long;
//! - [`parts`]: schemas of types that are not ours (conditions, selectors, embedded objects);
//! - [`reference`]: the rules of image references;
//! - [`finish`]: the last step over a derived definition.

mod finish;
pub(crate) mod parts;
pub(crate) mod reference;
pub(crate) mod rules;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use crate::{ClusterCatalog, ClusterExtension, ClusterObjectSet};

/// The definitions of all kinds, ready to be applied, in order of their names.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        finish::definition(ClusterCatalog::crd(), &["metadata", "spec"]),
        // An extension or a revision without a spec is admitted; it does nothing.
        finish::definition(ClusterExtension::crd(), &[]),
        finish::definition(ClusterObjectSet::crd(), &[]),
    ]
}
