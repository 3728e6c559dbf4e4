//! What an extension could be upgraded to, as far as a verdict on cluster upgrades asks. Pure.

use olm_fbc::PackageContent;
use olm_resolve::{CatalogInput, CatalogLookup, Resolution};
use olm_status::cluster_upgrade::{Minor, Successor, limit_of_value};

/// How many are kept of one extension.
const KEPT: usize = 100;
/// The property that names the last minor of OpenShift that a bundle runs on.
const LIMIT: &str = "olm.maxOpenShiftVersion";

/// The bundles of the catalog that was chosen which upgrades lead to, best first.
pub(crate) fn successors(resolution: &Resolution, answers: &[CatalogInput]) -> Vec<Successor> {
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
        Some(Successor {
            version: candidate.version.clone()?,
            steps,
            limit: limit(content, &candidate.bundle),
        })
    });
    reached.take(KEPT).collect()
}

fn limit(content: &PackageContent, bundle: &str) -> Option<Minor> {
    let bundle = content.bundles.iter().find(|found| found.name == bundle)?;
    let property = bundle
        .properties
        .iter()
        .find(|property| property.type_ == LIMIT)?;
    limit_of_value(&property.value.to_string())
}
