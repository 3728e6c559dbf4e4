//! Lists the namespaces that an extension selects by labels.

use olm_applier::namespaces;
use olm_decide::extension::identity::config;

use crate::cluster_extension::call::{call, chain};
use crate::cluster_extension::pass::{Pass, Selected};
use crate::metrics::Step;

/// Returns the namespaces that `watchNamespaceSelector` matches. `None` without the field, without a request; rendering reports a field
/// that is not valid.
///
/// Errors: the text of a failed list.
pub(crate) async fn selected(pass: &Pass<'_>) -> Result<Option<Selected>, String> {
    let selections = &pass.context.namespace_selections;
    let selector = config(pass.extension)
        .filter(|_| !pass.is_paused())
        .and_then(|config| namespaces::selector(&config));
    let Some(selector) = selector else {
        selections.remove(&pass.name);
        return Ok(None);
    };
    selections.begin(&pass.name, &selector);
    let listing = namespaces::selected(pass.context.shared.client.clone(), &selector);
    let listing = call("listing the namespaces of watchNamespaceSelector", listing);
    let names = pass.step(Step::Namespaces, listing).await;
    let names = names.map_err(|error| chain(&error))?;
    let settles = selections.listed(&pass.name, names.clone(), pass.now);
    Ok(Some(Selected {
        names: names.into_iter().collect(),
        settles,
    }))
}
