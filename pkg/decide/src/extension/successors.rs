//! Bundles that an extension can be upgraded to, for the verdict on cluster upgrades.

use olm_fbc::{Bundle, PackageContent};
use olm_resolve::{CatalogInput, CatalogLookup, Resolution};
use olm_status::cluster_upgrade::{Minor, Successor, limit_of_value};
use olm_text::name::BundleName;

/// Most successors of one extension.
const MAX_SUCCESSORS: usize = 100;
/// Property with the last minor version of OpenShift that a bundle supports.
const MAX_OPENSHIFT_VERSION: &str = "olm.maxOpenShiftVersion";

/// Returns the bundles of the chosen catalog that upgrades lead to, best first.
pub(super) fn of(resolution: &Resolution, answers: &[CatalogInput]) -> Vec<Successor> {
    let content = answers
        .iter()
        .find(|catalog| catalog.name == resolution.catalog)
        .and_then(|catalog| match &catalog.lookup {
            CatalogLookup::Found(content) => Some(content.as_ref()),
            _ => None,
        });
    let explained = resolution
        .explanation
        .catalogs
        .iter()
        .find(|catalog| catalog.name == resolution.catalog);
    let (Some(content), Some(explained)) = (content, explained) else {
        return Vec::new();
    };
    let reached = explained.candidates.iter().filter_map(|candidate| {
        let steps = candidate.steps.filter(|steps| *steps > 0)?;
        let bundle = listed(content, &candidate.bundle);
        Some(Successor {
            version: candidate.version.clone()?,
            steps,
            limit: bundle.and_then(limit),
            min_kube: bundle.and_then(|bundle| Minor::of_version(bundle.min_kube_version.as_deref()?)),
        })
    });
    reached.take(MAX_SUCCESSORS).collect()
}

fn listed<'a>(content: &'a PackageContent, bundle: &BundleName) -> Option<&'a Bundle> {
    content
        .bundles
        .iter()
        .find(|found| *bundle == found.name.as_str())
}

fn limit(bundle: &Bundle) -> Option<Minor> {
    let property = bundle
        .properties
        .iter()
        .find(|property| property.type_ == MAX_OPENSHIFT_VERSION)?;
    limit_of_value(&property.value.to_string())
}
