//! Holds an upgrade or deletion that takes away what another installed extension needs.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt as _;
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_decide::extension::dependents::{Neighbour, Provider, broken, named};
use olm_decide::extension::joint::Move;
use olm_decide::extension::{History, Resolved};
use olm_status::cluster_extension::Progress;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, chain};
use crate::cluster_extension::delays::Delays;
use crate::cluster_extension::failure::Stopped;
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore as _;

/// Longest delay before the dependents are looked at again without an event.
const RECHECK: Duration = Duration::from_secs(30);

/// Checks that the resolved bundle provides everything that other extensions need of the installed one. The extensions of `moves` count
/// with the bundles that they move to.
///
/// Errors: the dependents, as the status shows them.
pub(crate) async fn check(
    pass: &Pass<'_>,
    resolved: &Resolved,
    history: &History,
    moves: &[(String, Move)],
) -> Result<(), Stopped> {
    let newest = history.newest();
    if history.installed.is_none()
        || newest.is_some_and(|newest| newest.bundle.same_bundle(&resolved.bundle))
        || overridden(pass.extension)
    {
        return Ok(());
    }
    let after = Provider::new(
        resolved.bundle.package.clone(),
        &resolved.bundle.version,
        resolved.properties.clone(),
    );
    let held = held(pass.context, &pass.name, after, moves)
        .await
        .map_err(|error| {
            let bundle = &resolved.bundle.name;
            format!(
                "looking for dependents before bundle \"{bundle}\" is rolled out: {}",
                chain(&error)
            )
        });
    let text = match held {
        Ok(None) => return Ok(()),
        Ok(Some(dependents)) => format!(
            "bundle \"{}\" with version \"{}\" is held, because it lacks what others need: {dependents}. Upgrade or delete \
             these first, or {}",
            resolved.bundle.name,
            resolved.bundle.version,
            way_out(&pass.name)
        ),
        Err(text) => text,
    };
    pass.context.shared.metrics.retried("dependents");
    Err(Stopped {
        progress: Progress::Retrying(text),
        delays: Delays::at_most(RECHECK),
        superseded: false,
        waiting: None,
    })
}

/// Returns the sentence about the dependents that hold the deletion of an extension; `None` if there are none.
pub(crate) async fn of_deletion(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<Option<String>, CallError> {
    let name = extension.name_any();
    if overridden(extension) {
        return Ok(None);
    }
    let held = held(context, &name, None, &[]).await?;
    Ok(held.map(|dependents| {
        format!(
            "held, because others need what it installed: {dependents}. Delete these first, or {}",
            way_out(&name)
        )
    }))
}

fn overridden(extension: &ClusterExtension) -> bool {
    extension
        .annotations()
        .get(keys::IGNORE_DEPENDENTS_ANNOTATION)
        .map(String::as_str)
        == Some("true")
}

fn way_out(extension: &str) -> String {
    format!(
        "go on without them: kubectl annotate clusterextension {extension} {}=true",
        keys::IGNORE_DEPENDENTS_ANNOTATION
    )
}

/// Returns the dependents that lose something if `after` follows the installed bundle; `None` if there are none.
async fn held(
    context: &Context,
    extension: &str,
    after: Option<Provider>,
    moves: &[(String, Move)],
) -> Result<Option<String>, CallError> {
    if moves.is_empty() && !context.stores.may_have_dependents(extension) {
        context.dependency_waiters.remove(extension);
        return Ok(None);
    }
    // Registered before the look, so that a dependent that goes meanwhile wakes the extension.
    context.dependency_waiters.insert(extension);
    let mut by_owner: BTreeMap<String, Vec<ClusterObjectSet>> = BTreeMap::new();
    for revision in context.revisions.list(None).await? {
        if let Some(owner) = revision.labels().get(keys::OWNER_NAME_LABEL).cloned() {
            by_owner.entry(owner).or_default().push(revision);
        }
    }
    let before = by_owner
        .remove(extension)
        .and_then(|revisions| provider(&revisions));
    let neighbours: Vec<Neighbour> = by_owner
        .into_iter()
        // Extensions that are deleted together do not wait for each other.
        .filter(|(name, _)| !context.stores.is_deleting(name))
        .filter_map(|(extension, revisions)| {
            let joining = moves.iter().find(|(partner, _)| *partner == extension);
            let provider = match joining {
                Some((_, found)) => found.provider.clone(),
                None => provider(&revisions)?,
            };
            Some(Neighbour { extension, provider })
        })
        .collect();
    let dependents = match before {
        // CEL expressions are bounded, but many bundles can take a while.
        Some(before) => tokio::task::spawn_blocking(move || broken(&neighbours, &before, after.as_ref()))
            .await
            .map_err(|_| CallError::Interrupted {
                what: "comparing what others need".to_owned(),
            })?,
        None => Vec::new(),
    };
    if dependents.is_empty() {
        context.dependency_waiters.remove(extension);
        return Ok(None);
    }
    Ok(Some(named(&dependents)))
}

/// Returns the installed bundle among the revisions of one extension, with its recorded properties.
pub(super) fn provider(revisions: &[ClusterObjectSet]) -> Option<Provider> {
    let installed = History::read(revisions).installed?;
    let revision = revisions
        .iter()
        .find(|revision| revision.name_any() == installed.name)?;
    let recorded = revision.annotations().get(keys::CATALOG_PROPERTIES_ANNOTATION);
    let properties = recorded.and_then(|text| serde_json::from_str(text).ok());
    Provider::new(
        installed.bundle.package,
        &installed.bundle.version,
        properties.unwrap_or_default(),
    )
}
