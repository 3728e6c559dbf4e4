//! Dependencies of a bundle, compared with a cluster. Only reads.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, keys};
use olm_fbc::Property;
use olm_plan::Dependent;
use olm_resolve::constraint::{
    ConstraintError, Environment, Gvk, InstalledBundle, Requirement, apis, group_versions, parse,
    provided_apis, unmet,
};
use olm_resolve::{Party, Resolution};
use olm_runtime::client::{discovery_call, served_kinds};
use olm_status::recorded::bundle_version;
use olm_text::name::PackageName;
use olm_version::{BundleVersion, go_quote};
use serde_json::Value;

use super::call::call;
use super::cluster::{Cluster, is_installed};
use super::error::SourceError;
use super::live::owner;

/// Bundle that another extension moves to.
#[derive(Clone, Debug)]
pub(crate) struct Joining {
    /// Name of the extension.
    pub(crate) extension: String,
    /// The bundle with its requirements.
    pub(crate) party: Party,
}

impl Cluster {
    /// Returns a phrase for each dependency of a bundle with these properties that the cluster does not meet, by the controller's
    /// own rules; the sentence of [`unreadable`] if there is one. `extension` is the extension that would install the bundle; `joining`
    /// move at the same time. None if the bundle has no dependencies.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn unmet(
        &self,
        bundle: &str,
        properties: &[Property],
        extension: Option<&str>,
        joining: &[Joining],
    ) -> Result<Option<Vec<String>>, SourceError> {
        let requirements = match parse(properties) {
            Ok(requirements) if requirements.is_empty() => return Ok(None),
            Ok(requirements) => requirements,
            Err(error) => return Ok(Some(vec![refused(bundle, &error)])),
        };
        let mut served = self.served_apis(&requirements).await?;
        served.extend(provided_apis(properties));
        served.extend(
            joining
                .iter()
                .flat_map(|other| other.party.provided.iter().cloned()),
        );
        let environment = Environment {
            installed: installed_with(&self.revisions(None).await?, extension.as_slice(), joining),
            served,
        };
        let looking = tokio::task::spawn_blocking(move || unmet(&requirements, &environment));
        let unmet = looking.await.map_err(|_| SourceError::Interrupted {
            place: "the dependencies".to_owned(),
        })?;
        Ok(Some(unmet.into_iter().map(|unmet| unmet.text).collect()))
    }

    /// Returns the APIs that the cluster serves in the group versions of these requirements.
    async fn served_apis(&self, requirements: &[Requirement]) -> Result<BTreeSet<Gvk>, SourceError> {
        let mut served = BTreeSet::new();
        for (group, version) in group_versions(requirements) {
            let what = discovery_call(&group, &version);
            let kinds = call(&what, served_kinds(self.client(), &group, &version)).await?;
            served.extend(apis(&group, &version, kinds));
        }
        Ok(served)
    }

    /// Returns the surroundings of a joint move of the extensions `names`.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn surroundings(
        &self,
        names: &[String],
        requirements: &[Requirement],
    ) -> Result<Surroundings, SourceError> {
        let revisions = self.revisions(None).await?;
        let parties: BTreeMap<String, Party> = newest_installed(&revisions, None)
            .into_iter()
            .filter_map(|(name, revision)| Some((name.to_owned(), party(revision)?)))
            .collect();
        let (members, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            parties.into_iter().partition(|(name, _)| names.contains(name));
        let needed = others
            .values()
            .flat_map(|party| &party.requirements)
            .chain(requirements);
        let mut served = self.served_apis(&needed.cloned().collect::<Vec<_>>()).await?;
        let present = Environment {
            installed: members
                .values()
                .chain(others.values())
                .map(|party| party.bundle.clone())
                .collect(),
            served: served.clone(),
        };
        for party in members.values() {
            served.retain(|api| !party.provided.contains(api));
        }
        // A requirement that is not met now holds nothing up.
        let others = others.into_values().map(|mut party| {
            party
                .requirements
                .retain(|one| unmet(std::slice::from_ref(one), &present).is_empty());
            party
        });
        Ok(Surroundings {
            others: others.collect(),
            members,
            served,
        })
    }
}

/// Returns operator-controller's sentence about a bundle with a dependency that cannot be read; none if all can be read.
pub(crate) fn unreadable(bundle: &str, properties: &[Property]) -> Option<String> {
    parse(properties).err().map(|error| refused(bundle, &error))
}

fn refused(bundle: &str, error: &ConstraintError) -> String {
    format!(
        "bundle {} has a dependency that cannot be read: {error}",
        go_quote(bundle)
    )
}

/// Installed bundles and served APIs around a joint move.
pub(crate) struct Surroundings {
    /// Installed bundles of the extensions that move.
    pub(crate) members: BTreeMap<String, Party>,
    /// Installed bundles of all other extensions, with the requirements that are met.
    pub(crate) others: Vec<Party>,
    /// APIs that the cluster serves without the members.
    pub(crate) served: BTreeSet<Gvk>,
}

/// Returns the installed bundle of a revision with its requirements.
fn party(revision: &ClusterObjectSet) -> Option<Party> {
    let properties: Vec<Property> = serde_json::from_value(catalog_properties(revision).into()).ok()?;
    Some(Party::new(recorded(revision)?, &properties))
}

impl Cluster {
    /// Returns the other extensions whose dependencies are met now and would not be with `next` in place of the bundle of `extension`;
    /// [`resolved`] and [`recorded`] return a bundle for `next`.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub(crate) async fn dependents(
        &self,
        extension: &str,
        next: Option<InstalledBundle>,
        joining: &[Joining],
    ) -> Result<Vec<Dependent>, SourceError> {
        let revisions = self.revisions(None).await?;
        let (extension, joining) = (extension.to_owned(), joining.to_vec());
        let looking =
            tokio::task::spawn_blocking(move || losers(&revisions, &extension, next.as_ref(), &joining));
        looking.await.map_err(|_| SourceError::Interrupted {
            place: "the dependencies of other extensions".to_owned(),
        })
    }
}

/// Returns a resolved bundle as it will be installed. With `release_support`, its release is apart from its version.
pub(crate) fn resolved(
    next: &Resolution,
    package: &PackageName,
    release_support: bool,
) -> Option<InstalledBundle> {
    let version = BundleVersion::spelled(next.version.clone(), release_support);
    InstalledBundle::with(package.clone(), &version, &next.properties)
}

/// Returns the extensions that lack a package with `next` in place of the bundle of `extension`, but not before.
///
/// The comparison covers packages only: the APIs of the old bundle stay unless its CRDs are deleted, which a plan shows anyway.
/// Extensions among `joining` are left out: their new bundles have requirements of their own, which their plans show.
fn losers(
    revisions: &[ClusterObjectSet],
    extension: &str,
    next: Option<&InstalledBundle>,
    joining: &[Joining],
) -> Vec<Dependent> {
    let lacking = |requirements: &[Requirement], installed: Vec<InstalledBundle>| {
        let environment = Environment {
            installed,
            served: BTreeSet::new(),
        };
        unmet(requirements, &environment)
            .into_iter()
            .map(|unmet| unmet.text)
            .collect::<BTreeSet<String>>()
    };
    let mut found = Vec::new();
    for (name, revision) in newest_installed(revisions, Some(extension)) {
        if joining.iter().any(|other| other.extension == name) {
            continue;
        }
        let properties = serde_json::from_value(catalog_properties(revision).into());
        let requirements = properties
            .ok()
            .and_then(|properties: Vec<Property>| parse(&properties).ok());
        let Some(requirements) = requirements.filter(|needs| !needs.is_empty()) else {
            continue;
        };
        let before = lacking(&requirements, installed(revisions, &[name]));
        let mut then = installed_with(revisions, &[name, extension], joining);
        then.extend(next.cloned());
        let lost: Vec<String> = lacking(&requirements, then)
            .difference(&before)
            .cloned()
            .collect();
        if !lost.is_empty() {
            found.push(Dependent {
                extension: name.to_owned(),
                reason: lost.join("; "),
            });
        }
    }
    found
}

/// Returns the newest installed revision of each extension but `except`.
fn newest_installed<'a>(
    revisions: &'a [ClusterObjectSet],
    except: Option<&str>,
) -> BTreeMap<&'a str, &'a ClusterObjectSet> {
    let mut newest = BTreeMap::new();
    for revision in revisions.iter().filter(|revision| is_installed(revision)) {
        let owner = owner(revision);
        // Revisions are sorted, oldest first.
        if Some(owner) != except {
            newest.insert(owner, revision);
        }
    }
    newest
}

fn catalog_properties(revision: &ClusterObjectSet) -> Vec<Value> {
    let recorded = revision.annotations().get(keys::CATALOG_PROPERTIES_ANNOTATION);
    recorded
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Returns the bundles that the revisions of extensions have installed, except those of the extensions `except`.
fn installed(revisions: &[ClusterObjectSet], except: &[&str]) -> Vec<InstalledBundle> {
    let newest = newest_installed(revisions, None).into_iter();
    let others = newest.filter(|(name, _)| !except.contains(name));
    others.filter_map(|(_, revision)| recorded(revision)).collect()
}

/// Variant of [`installed`] in which the extensions `joining` have moved.
fn installed_with(
    revisions: &[ClusterObjectSet],
    except: &[&str],
    joining: &[Joining],
) -> Vec<InstalledBundle> {
    let moving = joining.iter().map(|other| other.extension.as_str());
    let without: Vec<&str> = except.iter().copied().chain(moving).collect();
    let mut bundles = installed(revisions, &without);
    bundles.extend(joining.iter().map(|other| other.party.bundle.clone()));
    bundles
}

/// Returns the bundle of a revision with its recorded properties.
pub(crate) fn recorded(revision: &ClusterObjectSet) -> Option<InstalledBundle> {
    let annotations = revision.annotations();
    let package = annotations
        .get(keys::PACKAGE_NAME_ANNOTATION)
        .cloned()
        .unwrap_or_default();
    InstalledBundle::new(
        package.into(),
        &bundle_version(revision),
        catalog_properties(revision),
    )
}
