//! Verdict on one edge.

use std::collections::BTreeMap;

use olm_bundle::crd_safety::Rules;
use olm_graph::EdgeVerdict;
use olm_plan::{Change, Side, compare_crds};
use olm_text::cut;
use serde_json::{Value, json};

use super::bundles::{Place, digest, read};
use super::cache::Cache;
use crate::cli::bundle::Issuer;
use crate::commands::bundle::{Configuration, InstallInto, rendered_files};

/// Namespace in which bundles are rendered for a verdict.
const NAMESPACE: &str = "default";
/// Maximum number of rights and of images that a verdict names.
const NAMED: usize = 50;
/// Returns the verdict on an upgrade, from the cache if it is there.
pub(super) fn verdict(old: Option<&Place>, new: Option<&Place>, cache: &Cache) -> EdgeVerdict {
    let side = |place: Option<&Place>| match place {
        Some(Place::Found { root, image }) => {
            let files = read(root)?;
            Ok((digest(image.as_deref(), &files), files))
        }
        Some(Place::Missing(reason)) => Err(reason.clone()),
        None => Err("the bundle is unknown".to_owned()),
    };
    let ((from, old), (to, new)) = match (side(old), side(new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) => return EdgeVerdict::failed(&format!("the old bundle cannot be read: {error}")),
        (_, Err(error)) => return EdgeVerdict::failed(&format!("the new bundle cannot be read: {error}")),
    };
    if let Some(known) = cache.get(&from, &to) {
        return known;
    }
    let found = match (rendered(&old), rendered(&new)) {
        (Ok(before), Ok(after)) => compare(before, after),
        (Err(error), _) => EdgeVerdict::failed(&format!("the old bundle cannot be installed: {error}")),
        (_, Err(error)) => EdgeVerdict::failed(&format!("the new bundle cannot be installed: {error}")),
    };
    cache.put(&from, &to, &found);
    found
}

/// Renders a bundle for all namespaces, else for its own, else for another one.
///
/// # Errors
/// The bundle would be refused: the reason.
pub(crate) fn rendered(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<Value>, String> {
    let configs = [
        None,
        Some(json!({"watchNamespace": NAMESPACE})),
        Some(json!({"watchNamespace": "watched"})),
    ];
    let mut first = None;
    for inline in configs {
        let config = Configuration {
            inline,
            ..Configuration::default()
        };
        match rendered_files(files, InstallInto::Existing(NAMESPACE), config, Issuer::Own) {
            Ok(rendered) => return Ok(rendered.objects),
            Err(error) => first = first.or(Some(error.message())),
        }
    }
    Err(first.unwrap_or_default())
}

/// Compares the objects of two bundles.
pub(crate) fn compare(before: Vec<Value>, after: Vec<Value>) -> EdgeVerdict {
    let crds = compare_crds(&before, &after, Rules::Ours);
    let side = |objects| Side {
        objects,
        ..Side::default()
    };
    let plan = Change {
        namespace: NAMESPACE.to_owned(),
        from: Some(side(before)),
        to: side(after),
        crds,
        ..Change::default()
    }
    .plan();
    let mut findings = plan.crds.iter().flat_map(|crd| {
        crd.findings
            .iter()
            .map(|finding| format!("{}: {finding}", crd.crd))
    });
    let finding = findings.next();
    let gained = &plan.rights.bundle.gained;
    EdgeVerdict {
        findings: usize::from(finding.is_some()) + findings.count(),
        finding: finding.map(|finding| cut(&finding, EdgeVerdict::TEXT_LIMIT).into_owned()),
        rights: gained
            .iter()
            .take(NAMED)
            .map(|right| cut(&right.to_string(), EdgeVerdict::TEXT_LIMIT).into_owned())
            .collect(),
        rights_gained: gained.len() + plan.rights.bundle.more_gained,
        images: plan.images.added.iter().take(NAMED).cloned().collect(),
        new_images: plan.images.added.len(),
        error: None,
    }
}
