//! Reads everything a decision needs. Writes nothing.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use olm_api::{AvailabilityMode, ClusterCatalog, ClusterExtensionSpec, ClusterObjectSet, keys};
use olm_catalog_client::CatalogRef;
use olm_resolve::{CatalogInput, CatalogLookup, Selection, Selector, SelectorError, near_names};
use olm_runtime::Feature;
use olm_status::catalogs::Former;

use super::Context;
use super::call::{CallError, call, chain};
use super::decide::Market;
use super::identity::Provider;

/// How many catalogs are asked at the same time.
const CATALOGS_AT_ONCE: usize = 4;
/// Time that all catalogs together may take to name packages for a message.
const NAMES_LIMIT: Duration = Duration::from_secs(10);

/// The revisions of the extension `name`, in no particular order.
///
/// One that another extension object controls is left out: that was an earlier extension of the same name.
pub(crate) async fn revisions(
    context: &Context,
    name: &str,
    uid: Option<&str>,
) -> Result<Vec<ClusterObjectSet>, CallError> {
    let ours = |object: &ClusterObjectSet| {
        let controller = object
            .owner_references()
            .iter()
            .find(|owner| owner.controller == Some(true));
        controller.is_none_or(|owner| uid.is_none_or(|uid| owner.uid == uid))
    };
    if let Some(known) = context.stores.revisions(name) {
        return Ok(known.into_iter().filter(ours).collect());
    }
    let api: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    let selector = keys::selector_of_extension(Some(name));
    let what = format!("listing the ClusterObjectSets of ClusterExtension \"{name}\"");
    let list = call(what, api.list(&ListParams::default().labels(&selector))).await?;
    context.stores.listed(name, &list.items);
    Ok(list.items.into_iter().filter(ours).collect())
}

/// Asks every selected catalog for the package.
pub(crate) async fn market(context: &Context, spec: &ClusterExtensionSpec) -> Market {
    let Some(wanted) = &spec.source.catalog else {
        return Market::Asked {
            any_selected: false,
            answers: Vec::new(),
            former: Vec::new(),
            selection: Selection::default(),
            similar: Vec::new(),
        };
    };
    let selector = match selector(wanted.selector.as_ref()) {
        Ok(selector) => selector,
        Err(error) => return Market::BadSelector(error.to_string()),
    };
    let catalogs = match catalogs(context).await {
        Ok(catalogs) => catalogs,
        Err(error) => return Market::Unreadable(chain(&error)),
    };
    let selected: Vec<ClusterCatalog> = catalogs
        .into_iter()
        .filter(|catalog| selector.matches(catalog.labels()))
        .collect();
    let any_selected = !selected.is_empty();
    let available: Vec<ClusterCatalog> = selected
        .into_iter()
        .filter(|catalog| catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable))
        .collect();
    let serving: Vec<CatalogRef> = available
        .iter()
        .filter_map(|catalog| reference(catalog).ok())
        .collect();
    let (answers, former): (Vec<CatalogInput>, Vec<Option<Former>>) = stream::iter(available)
        .map(|catalog| answer(context, catalog, &wanted.package_name).boxed())
        .buffered(CATALOGS_AT_ONCE)
        .unzip()
        .await;
    let nowhere = answers
        .iter()
        .all(|answer| matches!(answer.lookup, CatalogLookup::NoSuchPackage));
    let similar = if nowhere {
        similar(context, serving, &wanted.package_name).await
    } else {
        Vec::new()
    };
    Market::Asked {
        any_selected,
        answers,
        former: former.into_iter().flatten().collect(),
        selection: if context.features.enabled(Feature::UpstreamCatalogSelection) {
            Selection::Upstream
        } else {
            Selection::Ours
        },
        similar,
    }
}

/// The packages of these catalogs that `package` may be a misspelling of. A catalog that does not answer has none: this is
/// for a message.
async fn similar(context: &Context, catalogs: Vec<CatalogRef>, package: &str) -> Vec<String> {
    let names = stream::iter(catalogs)
        .map(|catalog| async move { context.catalogs.package_names(&catalog).await.ok() }.boxed())
        .buffered(CATALOGS_AT_ONCE)
        .collect();
    let all: Vec<Option<Arc<[String]>>> = tokio::time::timeout(NAMES_LIMIT, names).await.unwrap_or_default();
    let names = all.iter().flatten().flat_map(|names| names.iter());
    let near = near_names(package, names.map(String::as_str));
    near.into_iter().map(ToOwned::to_owned).collect()
}

/// All catalogs, as the watch knows them; asked for when it does not know yet.
pub(super) async fn catalogs(context: &Context) -> Result<Vec<ClusterCatalog>, CallError> {
    if let Some(known) = context.listing.all() {
        return Ok(known);
    }
    let api: Api<ClusterCatalog> = Api::all(context.shared.client.clone());
    match call("listing the ClusterCatalogs", api.list(&ListParams::default())).await {
        Ok(list) => Ok(list.items),
        // Without the kind there are no catalogs.
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn selector(
    selector: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector>,
) -> Result<Selector, SelectorError> {
    let Some(selector) = selector else {
        return Ok(Selector::default());
    };
    let labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    Selector::new(
        labels.map(|(key, value)| (key.as_str(), value.as_str())),
        expressions.map(|expression| {
            let values = expression.values.as_deref().unwrap_or_default();
            (expression.key.as_str(), expression.operator.as_str(), values)
        }),
    )
}

/// Asks one catalog for the package. Returns also whether the catalog's former content stands in.
pub(super) async fn answer(
    context: &Context,
    catalog: ClusterCatalog,
    package: &str,
) -> (CatalogInput, Option<Former>) {
    let name = catalog.name_any();
    let priority = catalog.spec.priority.unwrap_or_default();
    let mut former = None;
    let lookup = match reference(&catalog) {
        Err(lookup) => lookup,
        Ok(reference) => match context.catalogs.package(&reference, package).await {
            Ok(answer) => {
                former = answer.former.map(|former| Former {
                    catalog: name.clone(),
                    since: Time(former.since.try_into().unwrap_or_default()),
                    why: former.why,
                });
                answer
                    .content
                    .map_or(CatalogLookup::NoSuchPackage, CatalogLookup::Found)
            }
            Err(error) => CatalogLookup::Failed(error.message()),
        },
    };
    let input = CatalogInput {
        name,
        priority,
        lookup,
    };
    (input, former)
}

/// Where the catalog's present content is, or what stands in for the answer.
pub(super) fn reference(catalog: &ClusterCatalog) -> Result<CatalogRef, CatalogLookup> {
    let name = catalog.name_any();
    let status = catalog.status.as_ref();
    let serving = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Serving" && condition.status == "True");
    if !serving {
        return Err(CatalogLookup::NotServing);
    }
    let digest = status
        .and_then(|status| status.resolved_source.as_ref())
        .map(|source| source.image.ref_.clone())
        .ok_or_else(|| {
            CatalogLookup::Failed(format!(
                "error: catalog \"{name}\" has a nil status.resolvedSource value"
            ))
        })?;
    let base_url = status
        .and_then(|status| status.urls.as_ref())
        .map(|urls| urls.base.clone())
        .ok_or_else(|| CatalogLookup::Failed(format!("catalog \"{name}\" has no status.urls.base")))?;
    Ok(CatalogRef {
        name,
        base_url,
        digest,
    })
}

/// Who on this cluster makes certificates.
pub(crate) async fn provider(context: &Context) -> Result<Provider, CallError> {
    let groups = call("listing the API groups", context.shared.client.list_api_groups()).await?;
    let serves = |name: &str, version: Option<&str>| {
        groups.groups.iter().any(|group| {
            group.name == name
                && version.is_none_or(|version| group.versions.iter().any(|v| v.version == version))
        })
    };
    let on = |feature| context.features.enabled(feature);
    Ok(
        if on(Feature::WebhookProviderCertManager) && serves("cert-manager.io", Some("v1")) {
            Provider::CertManager
        } else if on(Feature::WebhookProviderOpenshiftServiceCa) && serves("config.openshift.io", None) {
            Provider::ServiceCa
        } else {
            Provider::Own
        },
    )
}
