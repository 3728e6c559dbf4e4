//! Checks the dependencies of a resolved bundle and finds the packages that would meet them.
//!
//! The check precedes every pull and write. Nothing is installed to meet a dependency: the extension waits, its status
//! names the missing ones, and the installation continues automatically once they are met. An installed bundle stays
//! when a dependency disappears.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use kube::ResourceExt as _;
use olm_api::{AvailabilityMode, ClusterCatalog, ClusterObjectSet, keys};
use olm_decide::extension::joint::Move;
use olm_decide::extension::{History, Resolved};
use olm_fbc::Property;
use olm_resolve::CatalogLookup;
use olm_resolve::constraint::{
    self, Environment, Gvk, InstalledBundle, MissingDependency, Requirement, Unmet,
};
use olm_runtime::client::{discovery_call, served_kinds};
use olm_runtime::workers::without_worker;
use olm_status::cluster_extension::Progress;
use olm_text::head;
use olm_version::{Version, go_quote};
use parking_lot::Mutex;

use super::catalogs;
use super::dependents::provider;
use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call, chain};
use crate::cluster_extension::delays::Delays;
use crate::cluster_extension::failure::Stopped;
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore as _;

/// Longest delay before the dependencies are checked again without an event.
const RECHECK: Duration = Duration::from_secs(30);
/// Most missing dependencies that the catalogs are searched for.
const MAX_SEARCHED: usize = 4;
/// Most catalogs that are searched.
const MAX_CATALOGS: usize = 16;
/// Limit of the whole search.
const SEARCH_LIMIT: Duration = Duration::from_mins(1);
/// Longest message, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// Names of the extensions that wait for their dependencies or dependents.
#[derive(Debug, Default)]
pub(crate) struct DependencyWaiters(Mutex<HashSet<String>>);

impl DependencyWaiters {
    /// Returns all names.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// Removes `extension`.
    pub(crate) fn remove(&self, extension: &str) {
        self.0.lock().remove(extension);
    }

    pub(super) fn insert(&self, extension: &str) {
        self.0.lock().insert(extension.to_owned());
    }
}

/// Checks the dependencies of a bundle that the newest revision does not hold yet. The extensions of `moves` count with the bundles that
/// they move to.
///
/// Errors: the missing dependencies, as the status shows them.
pub(crate) async fn check(
    pass: &Pass<'_>,
    resolved: &Resolved,
    history: &History,
    moves: &[(String, Move)],
) -> Result<(), Stopped> {
    unmet(pass, resolved, history, moves).await.map_err(|text| {
        pass.context.shared.metrics.retried("constraints");
        Stopped {
            progress: Progress::Retrying(text),
            delays: Delays::at_most(RECHECK),
            superseded: false,
            waiting: None,
        }
    })
}

async fn unmet(
    pass: &Pass<'_>,
    resolved: &Resolved,
    history: &History,
    moves: &[(String, Move)],
) -> Result<(), String> {
    let waiters = &pass.context.dependency_waiters;
    waiters.remove(&pass.name);
    let newest = history.newest();
    if newest.is_some_and(|newest| newest.bundle.same_bundle(&resolved.bundle)) {
        return Ok(());
    }
    let bundle = go_quote(&resolved.bundle.name);
    let subject = format!("validating bundle {bundle}: bundle {bundle}");
    let requirements = constraint::parse(&resolved.properties)
        .map_err(|error| format!("{subject} has a dependency that cannot be read: {error}"))?;
    if requirements.is_empty() {
        return Ok(());
    }
    // Registered before the check, so that a dependency that is met meanwhile wakes the extension.
    waiters.insert(&pass.name);
    let own = &resolved.properties;
    let environment = environment(pass.context, &pass.name, &requirements, own, moves)
        .await
        .map_err(|error| format!("{subject} has dependencies, and {}", chain(&error)))?;
    // CEL expressions are bounded, but many bundles can take a while.
    let unmet = tokio::task::spawn_blocking(move || constraint::unmet(&requirements, &environment))
        .await
        .map_err(|_| format!("{subject} has dependencies, and looking at them was interrupted"))?;
    if unmet.is_empty() {
        waiters.remove(&pass.name);
        return Ok(());
    }
    // It reads catalogs, and serves only the message.
    let search = tokio::time::timeout(SEARCH_LIMIT, providers(pass.context, &unmet));
    let providers = without_worker(search).await.unwrap_or_default();
    Err(message(&subject, &unmet, &providers))
}

fn message(subject: &str, unmet: &[Unmet], providers: &[String]) -> String {
    let texts: Vec<&str> = unmet.iter().map(|unmet| unmet.text.as_str()).collect();
    let mut sentences = vec![format!(
        "{subject} has dependencies that are not met: {}",
        texts.join("; ")
    )];
    sentences.extend(providers.iter().cloned());
    if unmet.iter().any(|unmet| !unmet.missing.is_empty()) {
        sentences
            .push("Install the missing dependencies and the installation continues automatically".to_owned());
    }
    let text = sentences.join(". ");
    head(&text, MESSAGE_LIMIT).to_owned()
}

/// Reads the part of the cluster that `requirements` ask about.
async fn environment(
    context: &Context,
    extension: &str,
    requirements: &[Requirement],
    own: &[Property],
    moves: &[(String, Move)],
) -> Result<Environment, CallError> {
    let mut served: BTreeSet<Gvk> = constraint::provided_apis(own).collect();
    let joining = moves.iter().map(|(_, found)| &found.provider.properties);
    served.extend(joining.flat_map(|properties| constraint::provided_apis(properties)));
    for (group, version) in constraint::group_versions(requirements) {
        let what = discovery_call(&group, &version);
        let kinds = call(what, served_kinds(&context.shared.client, &group, &version)).await?;
        served.extend(constraint::apis(&group, &version, kinds));
    }
    Ok(Environment {
        installed: installed(context, extension, moves).await?,
        served,
    })
}

/// Returns the bundles that the other extensions have installed, or move to.
async fn installed(
    context: &Context,
    extension: &str,
    moves: &[(String, Move)],
) -> Result<Vec<InstalledBundle>, CallError> {
    let revisions = context.revisions.list(None).await?;
    let mut by_owner: BTreeMap<String, Vec<ClusterObjectSet>> = BTreeMap::new();
    for revision in revisions {
        let owner = revision
            .labels()
            .get(keys::OWNER_NAME_LABEL)
            .cloned()
            .unwrap_or_default();
        by_owner.entry(owner).or_default().push(revision);
    }
    by_owner.remove(extension);
    for (partner, _) in moves {
        by_owner.remove(partner);
    }
    Ok(by_owner
        .values()
        .filter_map(|revisions| provider(revisions))
        .map(|provider| provider.bundle)
        .chain(moves.iter().map(|(_, found)| found.provider.bundle.clone()))
        .collect())
}

/// Longest text of [`keys::CATALOG_PROPERTIES_ANNOTATION`], in bytes: all annotations of an object share 256 KiB.
const PROPERTIES_LIMIT: usize = 64 * 1024;

/// Returns the bundle's properties for the annotation of its revision; `None` if they exceed the limit.
pub(crate) fn recorded_properties(resolved: &Resolved) -> Option<String> {
    let text = serde_json::to_string(&resolved.properties).ok()?;
    (!resolved.properties.is_empty() && text.len() <= PROPERTIES_LIMIT).then_some(text)
}

/// Returns a sentence for each missing dependency with the packages that would meet it.
async fn providers(context: &Context, unmet: &[Unmet]) -> Vec<String> {
    let missing: BTreeSet<&MissingDependency> = unmet.iter().flat_map(|unmet| &unmet.missing).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let Ok(mut catalogs) = catalogs::catalogs(context).await else {
        return Vec::new();
    };
    catalogs.retain(|catalog| catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable));
    catalogs.sort_by_key(|catalog| {
        (
            std::cmp::Reverse(catalog.spec.priority.unwrap_or_default()),
            catalog.name_any(),
        )
    });
    catalogs.truncate(MAX_CATALOGS);
    let mut sentences = Vec::new();
    for missing in missing.into_iter().take(MAX_SEARCHED) {
        let mut found = Vec::new();
        for catalog in &catalogs {
            found.extend(search(context, catalog, missing).await);
        }
        let what = match missing {
            MissingDependency::Gvk(gvk) => format!("the API {gvk}"),
            MissingDependency::Package { name, range } => {
                format!("package {} in a version {}", go_quote(name), go_quote(range))
            }
        };
        sentences.push(if found.is_empty() {
            format!("No catalog has {what}")
        } else {
            format!("There is {what}: {}", found.join(", and "))
        });
    }
    sentences
}

/// Returns the packages of one catalog that would meet the dependency.
async fn search(context: &Context, catalog: &ClusterCatalog, missing: &MissingDependency) -> Option<String> {
    let name = catalog.name_any();
    match missing {
        MissingDependency::Gvk(gvk) => {
            let reference = catalogs::reference(catalog).ok()?;
            let packages = context
                .catalogs
                .providers(&reference, [&gvk.group, &gvk.version, &gvk.kind])
                .await
                .inspect_err(|error| {
                    tracing::debug!(
                        catalog = name,
                        error = error.message(),
                        "a catalog was not searched for a dependency"
                    );
                })
                .ok()?;
            let packages: Vec<String> = packages.iter().map(|package| go_quote(package)).collect();
            (!packages.is_empty())
                .then(|| format!("package {} of catalog {}", packages.join(" or "), go_quote(&name)))
        }
        MissingDependency::Package { name: package, range } => {
            let (answer, _) = catalogs::answer(context, catalog.clone(), package).await;
            let CatalogLookup::Found(offered) = answer.lookup else {
                return None;
            };
            let range: olm_version::SkipRange = range.parse().ok()?;
            let versions = offered
                .bundles
                .iter()
                .filter_map(|bundle| bundle.version_release(false).ok());
            let highest: Version = versions
                .map(|version| version.version)
                .filter(|version| range.matches(version))
                .max_by(Version::cmp_precedence)?;
            Some(format!("catalog {} (version {highest})", go_quote(&name)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_dependencies_and_providers() {
        let unmet = [Unmet {
            text: "it needs the API g/v1 Kind, which the cluster does not serve".to_owned(),
            missing: vec![MissingDependency::Gvk(Gvk {
                group: "g".to_owned(),
                version: "v1".to_owned(),
                kind: "Kind".to_owned(),
            })],
        }];
        let text = message(
            "validating bundle \"a\": bundle \"a\"",
            &unmet,
            &["The API x".to_owned()],
        );
        assert_eq!(
            text,
            "validating bundle \"a\": bundle \"a\" has dependencies that are not met: it needs the API g/v1 Kind, which the \
             cluster does not serve. The API x. Install the missing dependencies and the installation continues automatically"
        );
        assert!(message(&"ä".repeat(2000), &unmet, &[]).len() <= MESSAGE_LIMIT);
    }
}
