//! Whether what a bundle needs of others is there; if not, who could bring it.
//!
//! Looked at after the bundle is chosen and before anything of it is pulled or written. Nothing is ever installed on its
//! account: the extension waits, says for what, and goes on by itself when that is there. What is installed already is
//! never taken away because something it needs has gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use olm_api::{AvailabilityMode, ClusterCatalog, ClusterExtension, ClusterObjectSet, keys};
use olm_fbc::Property;
use olm_resolve::CatalogLookup;
use olm_resolve::constraint::{self, Environment, Gvk, InstalledBundle, Requirement, Unmet, Want};
use olm_runtime::client::{asking_for, served_kinds};
use olm_status::cluster_extension::Progress;
use olm_version::{Version, go_quote};
use parking_lot::Mutex;

use super::call::{CallError, call, chain};
use super::decide::Choice;
use super::model::History;
use super::{Context, gather};

/// How soon an extension that waits looks again when no event says anything.
pub(crate) const RECHECK: Duration = Duration::from_secs(30);
/// Most things that are looked for in catalogs.
const LOOKED_FOR: usize = 4;
/// Most catalogs that are asked.
const CATALOGS: usize = 16;
/// How long the whole search may take.
const SEARCH_LIMIT: Duration = Duration::from_mins(1);
/// Longest message, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// The extensions that wait for something to be there.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashSet<String>>);

impl Waiting {
    /// Their names.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// `extension` waits no longer.
    pub(crate) fn clear(&self, extension: &str) {
        self.0.lock().remove(extension);
    }

    fn note(&self, extension: &str) {
        self.0.lock().insert(extension.to_owned());
    }
}

/// Whether the bundle of `choice` may be installed.
///
/// Errors: what it waits for, as the status tells it.
pub(crate) async fn check(
    context: &Context,
    extension: &ClusterExtension,
    choice: &Choice,
    history: &History,
) -> Result<(), Progress> {
    let name = extension.name_any();
    context.unmet.clear(&name);
    let newest = history.newest();
    if newest.is_some_and(|newest| newest.bundle.same_bundle(&choice.bundle)) {
        return Ok(());
    }
    let bundle = go_quote(&choice.bundle.name);
    let head = format!("validating bundle {bundle}: bundle {bundle}");
    let requirements = constraint::parse(&choice.properties).map_err(|error| {
        Progress::Retrying(format!("{head} has a dependency that cannot be read: {error}"))
    })?;
    if requirements.is_empty() {
        return Ok(());
    }
    // Noted before looking, so that what comes in between is not missed.
    context.unmet.note(&name);
    let environment = environment(context, &name, &requirements, &choice.properties)
        .await
        .map_err(|error| Progress::Retrying(format!("{head} has dependencies, and {}", chain(&error))))?;
    // Expressions are bounded, but may take a while on many bundles.
    let unmet = tokio::task::spawn_blocking(move || constraint::unmet(&requirements, &environment))
        .await
        .map_err(|_| {
            Progress::Retrying(format!(
                "{head} has dependencies, and looking at them was interrupted"
            ))
        })?;
    if unmet.is_empty() {
        context.unmet.clear(&name);
        return Ok(());
    }
    let providers = tokio::time::timeout(SEARCH_LIMIT, providers(context, &unmet))
        .await
        .unwrap_or_default();
    Err(Progress::Retrying(message(&head, &unmet, &providers)))
}

fn message(head: &str, unmet: &[Unmet], providers: &[String]) -> String {
    let texts: Vec<&str> = unmet.iter().map(|unmet| unmet.text.as_str()).collect();
    let mut sentences = vec![format!(
        "{head} has dependencies that are not met: {}",
        texts.join("; ")
    )];
    sentences.extend(providers.iter().cloned());
    if unmet.iter().any(|unmet| !unmet.wants.is_empty()) {
        sentences.push("Install what is missing; this extension then goes on by itself".to_owned());
    }
    let text = sentences.join(". ");
    let end = text.floor_char_boundary(MESSAGE_LIMIT);
    text.get(..end).unwrap_or_default().to_owned()
}

/// What there is, as far as `requirements` ask.
async fn environment(
    context: &Context,
    extension: &str,
    requirements: &[Requirement],
    own: &[Property],
) -> Result<Environment, CallError> {
    let mut served: BTreeSet<Gvk> = constraint::brought(own).collect();
    for (group, version) in constraint::group_versions(requirements) {
        let what = asking_for(&group, &version);
        let kinds = call(what, served_kinds(&context.shared.client, &group, &version)).await?;
        served.extend(constraint::apis(&group, &version, kinds));
    }
    Ok(Environment {
        installed: installed(context, extension).await?,
        served,
    })
}

/// What the other extensions have installed.
async fn installed(context: &Context, extension: &str) -> Result<Vec<InstalledBundle>, CallError> {
    let revisions = if let Some(revisions) = context.stores.all_revisions() {
        revisions
    } else {
        let api: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
        let selector = keys::selector_of_extension(None);
        let what = "listing the ClusterObjectSets";
        call(what, api.list(&ListParams::default().labels(&selector)))
            .await?
            .items
    };
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
    Ok(by_owner
        .values()
        .filter_map(|revisions| current(revisions))
        .collect())
}

/// What the revisions of one extension have installed.
fn current(revisions: &[ClusterObjectSet]) -> Option<InstalledBundle> {
    let installed = History::read(revisions).installed?;
    let revision = revisions
        .iter()
        .find(|revision| revision.name_any() == installed.name)?;
    let properties = revision.annotations().get(keys::CATALOG_PROPERTIES_ANNOTATION);
    let properties = properties.and_then(|text| serde_json::from_str(text).ok());
    InstalledBundle::new(
        installed.bundle.package,
        &installed.bundle.version,
        properties.unwrap_or_default(),
    )
}

/// Longest text of [`keys::CATALOG_PROPERTIES_ANNOTATION`], in bytes: all annotations of an object share 256 KiB.
const PROPERTIES_LIMIT: usize = 64 * 1024;

/// What a revision remembers of its bundle's properties; nothing when they are too long to keep.
pub(crate) fn remembered(choice: &Choice) -> Option<String> {
    let text = serde_json::to_string(&choice.properties).ok()?;
    (!choice.properties.is_empty() && text.len() <= PROPERTIES_LIMIT).then_some(text)
}

/// One sentence for each thing that is missing: which package of which catalog would bring it.
async fn providers(context: &Context, unmet: &[Unmet]) -> Vec<String> {
    let wants: BTreeSet<&Want> = unmet.iter().flat_map(|unmet| &unmet.wants).collect();
    if wants.is_empty() {
        return Vec::new();
    }
    let Ok(mut catalogs) = gather::catalogs(context).await else {
        return Vec::new();
    };
    catalogs.retain(|catalog| catalog.spec.availability_mode != Some(AvailabilityMode::Unavailable));
    catalogs.sort_by_key(|catalog| {
        (
            std::cmp::Reverse(catalog.spec.priority.unwrap_or_default()),
            catalog.name_any(),
        )
    });
    catalogs.truncate(CATALOGS);
    let mut sentences = Vec::new();
    for want in wants.into_iter().take(LOOKED_FOR) {
        let mut found = Vec::new();
        for catalog in &catalogs {
            found.extend(look(context, catalog, want).await);
        }
        let what = match want {
            Want::Gvk(gvk) => format!("the API {gvk}"),
            Want::Package { name, range } => {
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

/// What one catalog has of it.
async fn look(context: &Context, catalog: &ClusterCatalog, want: &Want) -> Option<String> {
    let name = catalog.name_any();
    match want {
        Want::Gvk(gvk) => {
            let reference = gather::reference(catalog).ok()?;
            let packages = context
                .catalogs
                .providers(&reference, &gvk.group, &gvk.version, &gvk.kind)
                .await
                .inspect_err(|error| tracing::debug!(catalog = name, error = error.message(), "not searched"))
                .ok()?;
            let packages: Vec<String> = packages.iter().map(|package| go_quote(package)).collect();
            (!packages.is_empty())
                .then(|| format!("package {} of catalog {}", packages.join(" or "), go_quote(&name)))
        }
        Want::Package { name: package, range } => {
            let (answer, _) = gather::answer(context, catalog.clone(), package).await;
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
    fn the_message_says_what_and_from_where() {
        let unmet = [Unmet {
            text: "it needs the API g/v1 Kind, which the cluster does not serve".to_owned(),
            wants: vec![Want::Gvk(Gvk {
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
             cluster does not serve. The API x. Install what is missing; this extension then goes on by itself"
        );
        assert!(message(&"ä".repeat(2000), &unmet, &[]).len() <= MESSAGE_LIMIT);
    }
}
