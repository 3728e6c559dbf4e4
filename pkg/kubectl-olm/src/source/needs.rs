//! Dependencies of a bundle, compared with a cluster. Only reads.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, keys};
use olm_fbc::Property;
use olm_resolve::constraint::{
    ConstraintError, Environment, Gvk, InstalledBundle, Unmet, apis, group_versions, parse, provided_apis,
    unmet,
};
use olm_runtime::client::{discovery_call, served_kinds};
use olm_status::recorded::bundle_version;

use super::call::call;
use super::cluster::{Cluster, is_installed};
use super::error::SourceError;
use super::live::owner;

impl Cluster {
    /// Returns the dependencies of a bundle with these properties that the cluster does not meet, by the controller's
    /// own rules. `extension` is the extension that would install the bundle. None if the bundle has no dependencies,
    /// or unreadable ones.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn unmet(
        &self,
        properties: &[Property],
        extension: Option<&str>,
    ) -> Result<Option<Vec<Unmet>>, SourceError> {
        let requirements: Result<_, ConstraintError> = parse(properties);
        let Some(requirements) = requirements.ok().filter(|needs| !needs.is_empty()) else {
            return Ok(None);
        };
        let mut served: BTreeSet<Gvk> = provided_apis(properties).collect();
        for (group, version) in group_versions(&requirements) {
            let what = discovery_call(&group, &version);
            let kinds = call(&what, served_kinds(self.client(), &group, &version)).await?;
            served.extend(apis(&group, &version, kinds));
        }
        let environment = Environment {
            installed: installed(&self.revisions(None).await?, extension),
            served,
        };
        let looking = tokio::task::spawn_blocking(move || unmet(&requirements, &environment));
        Ok(Some(looking.await.map_err(|_| SourceError::Interrupted {
            place: "the dependencies".to_owned(),
        })?))
    }
}

/// Returns the bundles that the revisions of other extensions have installed.
fn installed(revisions: &[ClusterObjectSet], extension: Option<&str>) -> Vec<InstalledBundle> {
    let mut newest: BTreeMap<&str, &ClusterObjectSet> = BTreeMap::new();
    for revision in revisions.iter().filter(|revision| is_installed(revision)) {
        let owner = owner(revision);
        // Revisions are sorted, oldest first.
        if Some(owner) != extension {
            newest.insert(owner, revision);
        }
    }
    let bundles = newest.into_values().filter_map(|revision| {
        let annotation = |key: &str| revision.annotations().get(key).cloned().unwrap_or_default();
        let properties =
            serde_json::from_str(&annotation(keys::CATALOG_PROPERTIES_ANNOTATION)).unwrap_or_default();
        InstalledBundle::new(
            annotation(keys::PACKAGE_NAME_ANNOTATION).into(),
            &bundle_version(revision),
            properties,
        )
    });
    bundles.collect()
}
