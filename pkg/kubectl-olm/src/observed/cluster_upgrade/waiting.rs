//! Upgrades of extensions: those that wait for a newer Kubernetes, and those that lead away from a bundle that blocks.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_bundle::kube_version::{KubeVersionError, supports};
use olm_decide::extension::{CatalogAnswers, CatalogLookups, History, resolve as decide};
use olm_resolve::{FailureCause, Resolution, resolve};
use olm_status::cluster_upgrade::{Minor, Successor};

use crate::failure::Failure;
use crate::gates::Gates;
use crate::resolution_input::ResolutionInput;
use crate::source::{Cluster, Sources, owner};

/// Bundle that an extension asks for and the cluster is too old for.
pub(crate) struct Upgrade {
    /// The extension.
    pub(crate) extension: String,
    /// Version of the bundle.
    pub(crate) version: String,
    /// Lowest version of Kubernetes that it supports, as written.
    pub(crate) needed: String,
    /// True if the target of the cluster's upgrade is new enough, at the latest with a later patch of it.
    pub(crate) possible: bool,
}

/// Upgrades that the catalogs state.
#[derive(Default)]
pub(crate) struct Waiting {
    /// Upgrades that wait for a newer Kubernetes.
    pub(crate) upgrades: Vec<Upgrade>,
    /// Bundles that upgrades of each extension lead to, best first.
    pub(super) successors: BTreeMap<String, Vec<Successor>>,
    /// Extensions that could not be checked, a sentence for each.
    pub(crate) unchecked: Vec<String>,
}

impl Waiting {
    /// Resolves every extension of the cluster, which has version `kubernetes` and these revisions, sorted by extension; `target` is the
    /// minor version that it is upgraded to.
    pub(super) async fn read(
        cluster: &Cluster,
        kubernetes: &str,
        target: Option<Minor>,
        revisions: &[ClusterObjectSet],
    ) -> Result<Self, Failure> {
        let mut out = Self::default();
        let extensions = cluster.extensions().await?;
        let sources = match Sources::of_cluster(cluster).await {
            Ok(sources) => sources,
            Err(error) => {
                out.unchecked.push(olm_text::chain(&error));
                return Ok(out);
            }
        };
        let gates = cluster.gates().await;
        for extension in extensions {
            let name = extension.name_any();
            let ignored = extension
                .annotations()
                .get(keys::IGNORE_MIN_KUBE_VERSION_ANNOTATION)
                .is_some_and(|ignored| ignored == "true");
            let next = match input(cluster, &sources, extension, &gates).await {
                Ok(input) => {
                    let found = successors(&input, &history(revisions, &name));
                    out.successors.insert(name.clone(), found);
                    next(&input)
                }
                Err(error) => Err(error),
            };
            match next {
                Ok(Some(next)) if !ignored => out.upgrades.extend(upgrade(name, &next, kubernetes, target)),
                Ok(_) => {}
                Err(error) => out.unchecked.push(format!("ClusterExtension {name:?}: {error}")),
            }
        }
        Ok(out)
    }
}

/// Reads the input of an extension's resolution. The error is a text.
async fn input(
    cluster: &Cluster,
    sources: &Sources,
    extension: ClusterExtension,
    gates: &Gates,
) -> Result<ResolutionInput, String> {
    let installed = cluster.installed(&extension).await;
    let installed = installed.map_err(|error| olm_text::chain(&error))?;
    let input = ResolutionInput::with(sources, extension, installed, gates).await;
    input.map_err(|error| error.message())
}

fn history(revisions: &[ClusterObjectSet], extension: &str) -> History {
    let mut by_owner = revisions.chunk_by(|a, b| owner(a) == owner(b));
    let own = by_owner.find(|own| own.first().is_some_and(|first| owner(first) == extension));
    History::read(own.unwrap_or_default())
}

/// Returns the bundles that upgrades lead to, best first, as operator-controller finds them.
fn successors(input: &ResolutionInput, history: &History) -> Vec<Successor> {
    let answers = CatalogAnswers {
        any_selected: true,
        answers: input.inputs.clone(),
        former: Vec::new(),
        digests: BTreeMap::new(),
        selection: input.request.selection,
        similar: Vec::new(),
    };
    let lookups = CatalogLookups::Answered(answers);
    let extension = input.extension.as_ref();
    let decided = extension
        .and_then(|extension| decide(&extension.spec, history, &lookups, input.request.release_support).ok());
    decided.map(|decided| decided.successors).unwrap_or_default()
}

/// Returns the bundle that the extension would get next; none if it has that bundle or there is none. The error is a text.
fn next(input: &ResolutionInput) -> Result<Option<Resolution>, String> {
    match resolve(&input.request, &input.inputs) {
        Ok(next) => {
            let installed = input.request.installed.as_ref();
            let same = installed.is_some_and(|installed| installed.name == next.bundle);
            Ok(Some(next).filter(|_| !same))
        }
        Err(error) if matches!(error.cause, FailureCause::UnreadCatalog { .. }) => Err(error.to_string()),
        Err(_) => Ok(None),
    }
}

fn upgrade(extension: String, next: &Resolution, kubernetes: &str, target: Option<Minor>) -> Option<Upgrade> {
    let needed = next.min_kube_version.as_deref()?;
    Some(Upgrade {
        extension,
        version: next.version.to_string(),
        needed: needed.to_owned(),
        possible: possible(needed, kubernetes, target)?,
    })
}

/// Returns true if a bundle that needs more than `kubernetes` runs on `target`, at the latest with a later patch of it; none if the bundle
/// need not wait.
fn possible(needed: &str, kubernetes: &str, target: Option<Minor>) -> Option<bool> {
    let Err(KubeVersionError::TooOld { .. }) = supports(needed, kubernetes) else {
        return None;
    };
    let minors = Minor::of_version(needed).zip(target);
    Some(minors.is_some_and(|(needed, target)| needed <= target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bundle_that_needs_a_newer_kubernetes_waits() {
        let target = Minor::of_version("1.34");
        for (needed, verdict) in [
            ("1.33.5", None),
            ("1.20", None),
            ("latest", None),
            ("1.33.6", Some(true)),
            ("v1.34.0", Some(true)),
            ("1.34.7", Some(true)),
            ("1.35.0", Some(false)),
        ] {
            assert_eq!(possible(needed, "v1.33.5+k3s1", target), verdict, "{needed}");
        }
        assert_eq!(possible("1.34.0", "v1.33.5", None), Some(false));
    }
}
