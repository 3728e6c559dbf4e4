//! Chooses the bundle that the spec asks for.
//!
//! Every pass resolves anew, against the *installed* bundle, so a change of the spec wins over a rollout in progress:
//! the rollout continues only while resolution returns the bundle that is rolling out.

use olm_api::{ClusterExtensionSpec, UpgradeConstraintPolicy};
use olm_fbc::Property;
use olm_resolve::{FailureCause, Installed, Request, Resolution, Selection};
use olm_status::catalogs::FormerContent;
use olm_status::cluster_extension::Deprecations;
use olm_status::cluster_upgrade::Successor;
use olm_status::upgrade::Upgrade;
use olm_text::name::{CatalogName, PackageName};
use olm_text::{dns, quoted};
use olm_version::{BundleVersion, RequestedRange};

use super::catalogs::{CatalogAnswers, CatalogLookups};
use super::history::{BundleRef, History, Revision};
use super::successors;

/// Maximum length of the name of a bundle in a message, in bytes.
const NAME_LIMIT: usize = 253;

/// Reason why no bundle can be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Message for the user: one sentence with the cause and the next step.
    pub message: String,
    /// True if only a change of the spec or of the catalog helps.
    pub terminal: bool,
}

impl Refusal {
    fn retry(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            terminal: false,
        }
    }
}

/// Bundle that the spec resolves to.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The bundle.
    pub bundle: BundleRef,
    /// Properties of the bundle in its catalog; empty if no catalog was read.
    pub properties: Vec<Property>,
    /// Lowest version of Kubernetes that the bundle supports, if its catalog says it.
    pub min_kube_version: Option<String>,
    /// Deprecations in the catalog; `None` if no catalog was read.
    pub deprecations: Option<Deprecations>,
    /// Catalog of the installed bundle, if the extension leaves that catalog for another.
    pub moved_from: Option<CatalogName>,
    /// Upgrade that the spec holds back, if any.
    pub upgrade: Upgrade,
    /// Bundles that upgrades of the installed bundle lead to, best first.
    pub successors: Vec<Successor>,
    /// Unread catalogs that could not have changed the result, each with the cause.
    pub left_out: Vec<(CatalogName, String)>,
}

/// Resolves the spec to a bundle. `release_support` keeps the release apart from the version.
///
/// Errors: [`Refusal`] if no bundle fits and the installed one may not stand in for it.
pub fn resolve(
    spec: &ClusterExtensionSpec,
    history: &History,
    lookups: &CatalogLookups,
    release_support: bool,
) -> Result<Resolved, Refusal> {
    let Some(catalog) = &spec.source.catalog else {
        return Err(Refusal {
            message: "spec.source.catalog is missing: name the package to install".to_owned(),
            terminal: true,
        });
    };
    let CatalogAnswers {
        any_selected,
        answers,
        former,
        selection,
        similar,
        digests: _,
    } = match lookups {
        CatalogLookups::Unavailable(why) => return Err(Refusal::retry(why.clone())),
        CatalogLookups::InvalidSelector(why) => {
            let message = format!("desired catalog selector is invalid: {why}");
            return Err(Refusal::retry(message));
        }
        CatalogLookups::Answered(answers) => answers,
    };
    let request = Request {
        package: catalog.package_name.as_str().into(),
        range: catalog.version.as_deref().and_then(RequestedRange::new),
        channels: catalog.channels.clone().unwrap_or_default(),
        self_certified: catalog.upgrade_constraint_policy == Some(UpgradeConstraintPolicy::SelfCertified),
        installed: history.installed.as_ref().map(installed),
        release_support,
        selection: *selection,
        similar: similar.clone(),
    };
    match olm_resolve::resolve(&request, answers) {
        Ok(resolution) if let Some(bundle) = rolling_on(&request, &resolution, history, former) => {
            Ok(stay(bundle, history))
        }
        Ok(resolution) if !dns::has_subdomain_parts(&resolution.bundle) => Err(unnameable(&resolution)),
        Ok(resolution) => Ok(Resolved {
            deprecations: Some(deprecations(&resolution, &request)),
            moved_from: resolution.moved_from.clone(),
            upgrade: upgrade(&resolution, &request, former),
            successors: successors::of(&resolution, answers),
            bundle: bundle(&resolution, &request.package, release_support),
            left_out: resolution.left_out,
            properties: resolution.properties,
            min_kube_version: resolution.min_kube_version,
        }),
        Err(error) => {
            let unread = matches!(error.cause, FailureCause::UnreadCatalog { .. });
            fallback(&request, history, *any_selected, unread)
                .map(|bundle| stay(bundle, history))
                .ok_or_else(|| Refusal::retry(error.to_string()))
        }
    }
}

/// Returns the refusal of a bundle whose name the API server accepts in no status: its installation could never be reported.
fn unnameable(resolution: &Resolution) -> Refusal {
    Refusal {
        message: format!(
            "bundle {} with version {} of catalog \"{}\" cannot be installed, because the status cannot hold its name: {}. Ask the \
             author of the catalog for another name, or exclude the version with spec.source.catalog.version",
            quoted(&resolution.bundle, NAME_LIMIT),
            resolution.version,
            resolution.catalog,
            dns::SUBDOMAIN_RULE
        ),
        terminal: true,
    }
}

/// Returns the resolution to a bundle of the revisions, about which no catalog was read.
fn stay(bundle: BundleRef, history: &History) -> Resolved {
    Resolved {
        bundle,
        properties: Vec::new(),
        min_kube_version: None,
        deprecations: None,
        moved_from: None,
        upgrade: unresolved(history),
        successors: Vec::new(),
        left_out: Vec::new(),
    }
}

/// Returns the bundle that is rolling out if the resolution is a lower version of the same catalog, from its former content: the present
/// content has the higher one.
fn rolling_on(
    request: &Request,
    resolution: &Resolution,
    history: &History,
    former: &[FormerContent],
) -> Option<BundleRef> {
    let bundle = &history.rolling_out.last()?.bundle;
    let is_former = former.iter().any(|former| former.catalog == resolution.catalog);
    let lower = bundle
        .version
        .parsed()
        .is_ok_and(|version| resolution.version.cmp_precedence(version).is_lt());
    let admitted = request
        .range
        .as_ref()
        .is_none_or(|range| range.admits(&bundle.version));
    let same = bundle.package == request.package && bundle.catalog.as_ref() == Some(&resolution.catalog);
    (is_former && lower && admitted && same).then(|| bundle.clone())
}

/// Returns the upgrade that the spec holds back. Former content of a catalog leaves the answer unknown.
fn upgrade(resolution: &Resolution, request: &Request, former: &[FormerContent]) -> Upgrade {
    let Some(installed) = &request.installed else {
        return Upgrade::NothingInstalled;
    };
    if let Some(held) = resolution.held_back.clone() {
        return Upgrade::HeldBack(held);
    }
    let is_former = |name: &CatalogName| former.iter().any(|former| former.catalog == *name);
    // By default an extension keeps its catalog, so the other catalogs do not matter.
    let stays =
        request.selection == Selection::Ours && installed.catalog.as_ref() == Some(&resolution.catalog);
    let unknown = if stays {
        is_former(&resolution.catalog)
    } else {
        !former.is_empty()
    };
    if unknown {
        Upgrade::FormerContent
    } else {
        Upgrade::UpToDate
    }
}

/// Returns the state of upgrades after a resolution that failed.
pub fn unresolved(history: &History) -> Upgrade {
    match history.installed {
        Some(_) => Upgrade::Unknown,
        None => Upgrade::NothingInstalled,
    }
}

/// Falls back to a bundle of the revisions: to the newest or the installed one if no catalog is selected and the spec
/// asks for no other version, and to the one that is rolling out while a catalog is unavailable.
fn fallback(request: &Request, history: &History, any_selected: bool, unread: bool) -> Option<BundleRef> {
    if any_selected {
        let rolling_out = history.rolling_out.last().filter(|_| unread)?;
        let range = request.range.as_ref();
        return range
            .is_none_or(|range| range.admits(&rolling_out.bundle.version))
            .then(|| rolling_out.bundle.clone());
    }
    kept(history, request.range.as_ref()).cloned()
}

/// Returns the bundle that stays while no catalog is selected: that of the newest or of the installed revision, if the spec asks for no
/// other version.
pub fn kept<'a>(history: &'a History, range: Option<&RequestedRange>) -> Option<&'a BundleRef> {
    let wanted = |bundle: &&BundleRef| range.is_none_or(|range| range.as_str() == bundle.version.as_str());
    let revisions = [history.newest(), history.installed.as_ref()]
        .into_iter()
        .flatten();
    revisions.map(|revision| &revision.bundle).find(wanted)
}

fn installed(revision: &Revision) -> Installed {
    Installed {
        name: revision.bundle.name.clone(),
        version: revision.bundle.version.clone(),
        catalog: revision.bundle.catalog.clone(),
    }
}

fn bundle(resolution: &Resolution, package: &PackageName, release_support: bool) -> BundleRef {
    BundleRef {
        name: resolution.bundle.clone(),
        version: BundleVersion::spelled(resolution.version.clone(), release_support),
        package: package.clone(),
        image: resolution.image.clone().into(),
        catalog: Some(resolution.catalog.clone()),
    }
}

/// Returns the deprecations of the package, of the channels in the spec and of the installed bundle.
fn deprecations(resolution: &Resolution, request: &Request) -> Deprecations {
    let known = &resolution.deprecation;
    let bundles = request
        .installed
        .as_ref()
        .and_then(|installed| known.bundles.get(installed.name.as_str()))
        .cloned()
        .into_iter()
        .collect();
    let mut names: Vec<&String> = request.channels.iter().collect();
    names.sort();
    names.dedup();
    let channels = names
        .into_iter()
        .filter_map(|name| known.channels.get(name))
        .flatten()
        .cloned()
        .collect();
    Deprecations {
        package: known.package.clone(),
        channels,
        bundles,
    }
}
