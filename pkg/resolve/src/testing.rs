//! Parts of catalogs for the tests of this crate.

use std::sync::Arc;

use olm_fbc::{Bundle, Entry, PackageContent, Property};
use serde_json::{Value, json};

use crate::{CatalogInput, CatalogLookup};

pub(crate) fn property(type_: &str, value: Value) -> Property {
    Property {
        type_: type_.to_owned(),
        value,
    }
}

/// Returns a bundle of package `p`.
pub(crate) fn bundle(name: &str, version: &str) -> Bundle {
    Bundle {
        name: name.to_owned(),
        properties: vec![property(
            "olm.package",
            json!({"packageName": "p", "version": version}),
        )],
        ..Bundle::default()
    }
}

/// Returns the entry of a bundle that nothing leads to.
pub(crate) fn entry(bundle: &str) -> Entry {
    Entry {
        name: bundle.to_owned(),
        replaces: String::new(),
        skips: Vec::new(),
        skip_range: String::new(),
    }
}

/// Returns a catalog of priority 0 that has a package.
pub(crate) fn catalog(name: &str, content: PackageContent) -> CatalogInput {
    CatalogInput {
        name: name.into(),
        priority: 0,
        lookup: CatalogLookup::Found(Arc::new(content)),
    }
}
