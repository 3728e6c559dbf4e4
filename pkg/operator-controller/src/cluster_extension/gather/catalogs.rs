//! Reads the ClusterCatalogs and their answers about a package.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use olm_api::{AvailabilityMode, ClusterCatalog, ClusterExtensionSpec, condition};
use olm_catalog_client::CatalogRef;
use olm_decide::extension::{CatalogAnswers, CatalogLookups};
use olm_resolve::{CatalogInput, CatalogLookup, Selection, Selector, SelectorError, near_names};
use olm_runtime::Feature;
use olm_status::catalogs::FormerContent;
use olm_text::name::{CatalogName, PackageName};

use crate::cluster_catalog::Undecodable;
use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call, chain};

/// Number of catalogs that are asked concurrently.
const CATALOGS_AT_ONCE: usize = 4;
/// Limit for listing the package names of all catalogs, which only a message needs.
const NAMES_LIMIT: Duration = Duration::from_secs(10);

/// Asks every selected catalog for the package of the spec.
pub(crate) async fn lookups(context: &Context, spec: &ClusterExtensionSpec) -> CatalogLookups {
    let Some(wanted) = &spec.source.catalog else {
        return CatalogLookups::Answered(CatalogAnswers {
            any_selected: false,
            answers: Vec::new(),
            former: Vec::new(),
            digests: BTreeMap::new(),
            selection: Selection::default(),
            similar: Vec::new(),
        });
    };
    let package = PackageName::from(wanted.package_name.as_str());
    let selector = match selector(wanted.selector.as_ref()) {
        Ok(selector) => selector,
        Err(error) => return CatalogLookups::InvalidSelector(error.to_string()),
    };
    let catalogs = match catalogs(context).await {
        Ok(catalogs) => catalogs,
        Err(error) => return CatalogLookups::Unavailable(chain(&error)),
    };
    let selected: Vec<ClusterCatalog> = catalogs
        .into_iter()
        .filter(|catalog| selector.matches(catalog.labels()))
        .collect();
    let undecodable = context.listing.undecodable().into_iter();
    let undecodable: Vec<CatalogInput> = undecodable
        .filter(|catalog| selector.matches(&catalog.labels))
        .map(unread)
        .collect();
    let any_selected = !selected.is_empty() || !undecodable.is_empty();
    let available: Vec<ClusterCatalog> = selected
        .into_iter()
        .filter(|catalog| catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable))
        .collect();
    let serving: Vec<CatalogRef> = available
        .iter()
        .filter_map(|catalog| reference(catalog).ok())
        .collect();
    let (mut answers, former): (Vec<CatalogInput>, Vec<Option<FormerContent>>) = stream::iter(available)
        .map(|catalog| answer(context, catalog, &package).boxed())
        .buffered(CATALOGS_AT_ONCE)
        .unzip()
        .await;
    answers.extend(undecodable);
    let former: Vec<FormerContent> = former.into_iter().flatten().collect();
    let present = |name: &CatalogName| !former.iter().any(|former| former.catalog == *name);
    let digests = serving
        .iter()
        .map(|catalog| (catalog.name.clone(), catalog.digest.clone()))
        .filter(|(name, _)| present(name))
        .collect();
    let nowhere = answers
        .iter()
        .all(|answer| matches!(answer.lookup, CatalogLookup::NoSuchPackage));
    let similar = if nowhere {
        similar(context, serving, &package).await
    } else {
        Vec::new()
    };
    CatalogLookups::Answered(CatalogAnswers {
        any_selected,
        answers,
        former,
        digests,
        selection: if context.features.enabled(Feature::UpstreamCatalogSelection) {
            Selection::Upstream
        } else {
            Selection::Ours
        },
        similar,
    })
}

/// Returns the answer of a catalog that cannot be decoded.
fn unread(catalog: Undecodable) -> CatalogInput {
    let why = format!(
        "ClusterCatalog \"{}\" has values that this version of operator-controller does not know: correct it, or upgrade \
         operator-controller",
        catalog.name
    );
    CatalogInput {
        name: catalog.name.into(),
        priority: catalog.priority,
        lookup: CatalogLookup::Failed(why),
    }
}

/// Returns the packages of the catalogs with a name similar to `package`, for a message. Catalogs that fail to answer are skipped.
async fn similar(context: &Context, catalogs: Vec<CatalogRef>, package: &PackageName) -> Vec<String> {
    let names = stream::iter(catalogs)
        .map(|catalog| async move { context.catalogs.package_names(&catalog).await.ok() }.boxed())
        .buffered(CATALOGS_AT_ONCE)
        .collect();
    let all: Vec<Option<Arc<[PackageName]>>> =
        tokio::time::timeout(NAMES_LIMIT, names).await.unwrap_or_default();
    let names = all.iter().flatten().flat_map(|names| names.iter());
    let near = near_names(package, names.map(PackageName::as_str));
    near.into_iter().map(ToOwned::to_owned).collect()
}

/// Returns all ClusterCatalogs, from the watch or, before its first list, from the API server.
pub(crate) async fn catalogs(context: &Context) -> Result<Vec<ClusterCatalog>, CallError> {
    if let Some(known) = context.listing.all() {
        return Ok(known);
    }
    let api: Api<ClusterCatalog> = Api::all(context.shared.client.clone());
    match call("listing the ClusterCatalogs", api.list(&ListParams::default())).await {
        Ok(list) => Ok(list.items),
        // The API server does not serve the kind, so no catalog exists.
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn selector(selector: Option<&LabelSelector>) -> Result<Selector, SelectorError> {
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

/// Asks one catalog for the package. The second value is set if the catalog answered from its former content.
pub(crate) async fn answer(
    context: &Context,
    catalog: ClusterCatalog,
    package: &PackageName,
) -> (CatalogInput, Option<FormerContent>) {
    let name = CatalogName::from(catalog.name_any());
    let priority = catalog.spec.priority.unwrap_or_default();
    let mut former = None;
    let lookup = match reference(&catalog) {
        Err(lookup) => lookup,
        Ok(reference) => match context.catalogs.package(&reference, package).await {
            Ok(answer) => {
                former = answer.former.map(|former| FormerContent {
                    catalog: name.clone(),
                    since: Time(former.since.try_into().unwrap_or_default()),
                    cause: former.why,
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

/// Returns the place of the catalog's present content, or the answer for a catalog that does not serve.
pub(crate) fn reference(catalog: &ClusterCatalog) -> Result<CatalogRef, CatalogLookup> {
    let name = catalog.name_any();
    let status = catalog.status.as_ref();
    if !condition::is_true(catalog.conditions(), condition::types::Catalog::Serving) {
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
        name: name.into(),
        base_url,
        digest,
    })
}
