//! What a cluster has of what a bundle needs. Only reads.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, keys};
use olm_fbc::Property;
use olm_resolve::constraint::{
    ConstraintError, Environment, Gvk, InstalledBundle, Unmet, brought, group_versions, parse, unmet,
};

use super::cluster::{Cluster, call, counts};
use super::{SourceError, owner};

/// What the controller remembers of a bundle's properties on its revision.
const PROPERTIES: &str = "olm.operatorframework.io/catalog-properties";
/// Most group versions that a cluster is asked for.
const GROUP_VERSIONS: usize = 128;

impl Cluster {
    /// What a bundle with these properties needs and the cluster does not have, judged as the controller does; `extension` is
    /// the one that would have it installed. None when it needs nothing, or cannot be read.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub(crate) async fn unmet(
        &self,
        properties: &[Property],
        extension: Option<&str>,
    ) -> Result<Option<Vec<Unmet>>, SourceError> {
        let requirements: Result<_, ConstraintError> = parse(properties);
        let Some(requirements) = requirements.ok().filter(|needs| !needs.is_empty()) else {
            return Ok(None);
        };
        let mut served: BTreeSet<Gvk> = brought(properties).collect();
        for (group, version) in group_versions(&requirements).into_iter().take(GROUP_VERSIONS) {
            served.extend(self.kinds(&group, &version).await?);
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

    /// The kinds served in one version of a group.
    async fn kinds(&self, group: &str, version: &str) -> Result<Vec<Gvk>, SourceError> {
        // These become part of a path, and come from a catalog.
        let plain = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        };
        if !plain(group) || !plain(version) || version.contains('.') {
            return Ok(Vec::new());
        }
        let client = self.client();
        let answer = if group.is_empty() {
            call("asking for the core API", client.list_core_api_resources(version)).await
        } else {
            let name = format!("{group}/{version}");
            call(
                &format!("asking for the API {name}"),
                client.list_api_group_resources(&name),
            )
            .await
        };
        let list = match answer {
            Ok(list) => list,
            Err(SourceError::Cluster { source, .. }) if matches!(&*source, kube::Error::Api(status) if status.code == 404) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let kinds = list.resources.into_iter().map(|resource| Gvk {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource.kind,
        });
        Ok(kinds.collect())
    }
}

/// What the revisions say that other extensions have installed.
fn installed(revisions: &[ClusterObjectSet], extension: Option<&str>) -> Vec<InstalledBundle> {
    let mut newest: BTreeMap<&str, &ClusterObjectSet> = BTreeMap::new();
    for revision in revisions.iter().filter(|revision| counts(revision)) {
        let owner = owner(revision);
        // They come oldest first.
        if Some(owner) != extension {
            newest.insert(owner, revision);
        }
    }
    let bundles = newest.into_values().filter_map(|revision| {
        let annotation = |key: &str| revision.annotations().get(key).cloned().unwrap_or_default();
        let properties = serde_json::from_str(&annotation(PROPERTIES)).unwrap_or_default();
        InstalledBundle::new(
            annotation(keys::PACKAGE_NAME_ANNOTATION),
            &annotation(keys::BUNDLE_VERSION_ANNOTATION),
            properties,
        )
    });
    bundles.collect()
}
