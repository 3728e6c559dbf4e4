//! Lists the namespaces that a bundle's configuration selects by labels.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Api, Client, ResourceExt};
use olm_bundle::{MAX_NAMESPACES, namespace_selector};
use serde_json::Value;

/// Namespaces of one answer.
const PAGE: u32 = 250;

/// Returns the selector of a configuration (`spec.config.inline`), if it has a valid one.
pub fn selector(config: &Value) -> Option<Selector> {
    Selector::try_from(namespace_selector(config)?).ok()
}

/// Returns the names of the namespaces that `selector` matches, without those that are being deleted; at most one more than an operator
/// may watch, which shows that there are too many. Only metadata are read, in pages.
///
/// # Errors
/// The list fails.
pub async fn selected(client: Client, selector: &Selector) -> kube::Result<BTreeSet<String>> {
    let api: Api<Namespace> = Api::all(client);
    let mut params = ListParams::default().labels_from(selector).limit(PAGE);
    let mut names = BTreeSet::new();
    loop {
        let page = api.list_metadata(&params).await?;
        let alive = page
            .items
            .iter()
            .filter(|namespace| namespace.metadata.deletion_timestamp.is_none());
        names.extend(alive.map(ResourceExt::name_any));
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        match next.filter(|_| names.len() <= MAX_NAMESPACES) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(names.into_iter().take(MAX_NAMESPACES + 1).collect()),
        }
    }
}
