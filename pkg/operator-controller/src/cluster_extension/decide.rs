//! Which bundle is wanted and whether that takes a new revision. Pure.
//!
//! The spec always wins: every reconcile resolves again, against what is *installed*; a rollout in progress is kept only while the
//! answer is still the bundle that is rolling out.

use jiff::Timestamp;
use olm_api::{ClusterExtensionSpec, UpgradeConstraintPolicy};
use olm_fbc::Property;
use olm_resolve::{CatalogInput, CatalogLookup, Installed, Request, Resolution, Selection, Trouble};
use olm_status::catalogs::{Catalogs, Former};
use olm_status::cluster_extension::Deprecations;
use olm_status::cluster_upgrade::Successor;
use olm_status::upgrade::Upgrade;
use olm_version::{VersionRange, VersionRelease};

use super::identity::{Inputs, Provider};
use super::model::{BundleRef, History, Revision};
use super::reachable;

/// How many archived revisions are kept, newest first.
const ARCHIVED_KEPT: usize = 5;
/// Longest value a label may have; a revision's name is one.
const LABEL_VALUE_MAX: usize = 63;

/// What the catalogs say about the package.
#[derive(Debug)]
pub(crate) enum Market {
    /// The catalogs could not be listed.
    Unreadable(String),
    /// `spec.source.catalog.selector` is no selector.
    BadSelector(String),
    /// They were asked.
    Asked {
        /// Whether any ClusterCatalog is selected at all, available or not.
        any_selected: bool,
        /// The answers of those that are available.
        answers: Vec<CatalogInput>,
        /// Those of them that gave former content.
        former: Vec<Former>,
        /// How to choose between them.
        selection: Selection,
        /// Packages that may have been meant, where no catalog has the one asked for.
        similar: Vec<String>,
    },
}

impl Market {
    /// Returns whether catalogs are to be asked again although no event may come: a read failed.
    pub(crate) fn incomplete(&self) -> bool {
        match self {
            Self::Asked { answers, former, .. } => {
                let failed = |answer: &CatalogInput| matches!(answer.lookup, CatalogLookup::Failed(_));
                !former.is_empty() || answers.iter().any(failed)
            }
            // Nothing can be chosen, which is tried again anyway.
            Self::Unreadable(_) | Self::BadSelector(_) => false,
        }
    }

    /// Returns what the status says of catalogs that were not read, given the ones that the choice did without.
    pub(crate) fn degraded(&self, left_out: &[(String, String)]) -> Option<Catalogs> {
        match self {
            Self::Asked { former, .. } => Some(Catalogs {
                former: former.clone(),
                left_out: left_out.to_vec(),
            }),
            Self::Unreadable(_) | Self::BadSelector(_) => None,
        }
    }
}

/// Why there is nothing to install; `message` is for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// One sentence: what, why, what next.
    pub message: String,
    /// Only another spec helps.
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

/// The bundle the extension wants now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// The bundle.
    pub bundle: BundleRef,
    /// Its properties, where it was found in a catalog.
    pub properties: Vec<Property>,
    /// What the catalogs say about its being deprecated; `None` when they could not be asked.
    pub deprecations: Option<Deprecations>,
    /// The catalog that the extension is installed from, when it leaves that for another.
    pub moved_from: Option<String>,
    /// Whether the spec holds a successor back.
    pub upgrade: Upgrade,
    /// What can be reached from the installed bundle, best first.
    pub successors: Vec<Successor>,
    /// Catalogs that could not be read and could not have changed the choice, each with the cause.
    pub left_out: Vec<(String, String)>,
}

/// Chooses the bundle.
///
/// Errors: [`Refusal`] when no bundle fits and nothing installed may stand in for it.
pub(crate) fn choose(
    spec: &ClusterExtensionSpec,
    history: &History,
    market: &Market,
    release_support: bool,
) -> Result<Choice, Refusal> {
    let Some(catalog) = &spec.source.catalog else {
        return Err(Refusal {
            message: "spec.source.catalog is missing: name the package to install".to_owned(),
            terminal: true,
        });
    };
    let (any_selected, answers, former, selection, similar) = match market {
        Market::Unreadable(why) => return Err(Refusal::retry(why.clone())),
        Market::BadSelector(why) => {
            return Err(Refusal::retry(format!(
                "desired catalog selector is invalid: {why}"
            )));
        }
        Market::Asked {
            any_selected,
            answers,
            former,
            selection,
            similar,
        } => (*any_selected, answers, former, *selection, similar),
    };
    let request = Request {
        package: catalog.package_name.clone(),
        version: catalog.version.clone().filter(|version| !version.is_empty()),
        channels: catalog.channels.clone().unwrap_or_default(),
        self_certified: catalog.upgrade_constraint_policy == Some(UpgradeConstraintPolicy::SelfCertified),
        installed: history.installed.as_ref().map(installed),
        release_support,
        selection,
        similar: similar.clone(),
    };
    match olm_resolve::resolve(&request, answers) {
        Ok(resolution) => Ok(Choice {
            deprecations: Some(deprecations(&resolution, &request)),
            moved_from: resolution.moved_from.clone(),
            upgrade: upgrade(&resolution, &request, answers, former),
            successors: reachable::successors(&resolution, answers),
            bundle: bundle(&resolution, &request.package, release_support),
            left_out: resolution.left_out,
            properties: resolution.properties,
        }),
        Err(error) => {
            let unread = matches!(error.trouble, Trouble::Waiting { .. });
            stand_in(&request, history, any_selected, unread)
                .map(|bundle| Choice {
                    bundle,
                    properties: Vec::new(),
                    deprecations: None,
                    moved_from: None,
                    upgrade: unresolved(history),
                    successors: Vec::new(),
                    left_out: Vec::new(),
                })
                .ok_or_else(|| Refusal::retry(error.to_string()))
        }
    }
}

/// Reports if the spec holds a successor of the choice back. Former content proves nothing about the present one.
fn upgrade(
    resolution: &Resolution,
    request: &Request,
    answers: &[CatalogInput],
    former: &[Former],
) -> Upgrade {
    let Some(installed) = &request.installed else {
        return Upgrade::NothingInstalled;
    };
    if let Some(held) = olm_resolve::held_back(request, answers, resolution) {
        return Upgrade::HeldBack(held);
    }
    let is_former = |name: &str| former.iter().any(|former| former.catalog == name);
    // An extension stays with its catalog, whatever the others have.
    let stays = request.selection == Selection::Ours
        && installed.catalog.as_deref() == Some(resolution.catalog.as_str());
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

/// What is known of upgrades when nothing could be resolved.
pub(crate) fn unresolved(history: &History) -> Upgrade {
    match history.installed {
        Some(_) => Upgrade::Unknown,
        None => Upgrade::NothingInstalled,
    }
}

/// What is there stands in for an answer of the catalogs when there is no catalog left to give one and the spec does not ask
/// for another version. A rollout in progress also stands in while a catalog cannot be read: nothing speaks against it.
fn stand_in(request: &Request, history: &History, any_selected: bool, unread: bool) -> Option<BundleRef> {
    if any_selected {
        let rolling_out = history.rolling_out.last().filter(|_| unread)?;
        return admits(request, &rolling_out.bundle).then(|| rolling_out.bundle.clone());
    }
    let wanted = |revision: &&Revision| {
        request
            .version
            .as_ref()
            .is_none_or(|version| *version == revision.bundle.version)
    };
    [history.newest(), history.installed.as_ref()]
        .into_iter()
        .flatten()
        .find(wanted)
        .map(|revision| revision.bundle.clone())
}

/// Whether the requested range, if any, admits `bundle`.
fn admits(request: &Request, bundle: &BundleRef) -> bool {
    let Some(range) = &request.version else {
        return true;
    };
    let version = VersionRelease::parse_legacy(&bundle.version);
    match (range.parse::<VersionRange>(), version) {
        (Ok(range), Ok(version)) => range.matches(&version),
        _ => false,
    }
}

fn installed(revision: &Revision) -> Installed {
    Installed {
        name: revision.bundle.name.clone(),
        version: revision.bundle.version.clone(),
        release: revision.bundle.release.clone(),
        catalog: revision.bundle.catalog.clone(),
    }
}

fn bundle(resolution: &Resolution, package: &str, release_support: bool) -> BundleRef {
    let release = resolution.version.release.as_ref().map(ToString::to_string);
    let (version, release) = if release_support {
        (resolution.version.version.to_string(), release)
    } else {
        (
            legacy_version(&resolution.version.version, release.as_deref()),
            None,
        )
    };
    BundleRef {
        name: resolution.bundle.clone(),
        version,
        release,
        package: package.to_owned(),
        image: resolution.image.clone(),
        catalog: Some(resolution.catalog.clone()),
    }
}

/// Without releases as a field of their own, the release is the build metadata it was read from.
fn legacy_version(version: &impl ToString, release: Option<&str>) -> String {
    match release {
        Some(release) if !release.is_empty() => format!("{}+{release}", version.to_string()),
        _ => version.to_string(),
    }
}

/// The messages that concern this extension: of the package, of the channels it names, of the bundle it has installed.
fn deprecations(resolution: &Resolution, request: &Request) -> Deprecations {
    let known = &resolution.deprecation;
    let bundles = request
        .installed
        .as_ref()
        .and_then(|installed| known.bundles.get(&installed.name))
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

/// What to do about the bundle that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The newest revision already is what is wanted.
    Keep {
        /// Its name.
        revision: String,
        /// `spec.progressDeadlineMinutes` has changed: it is the one thing of a revision that may.
        deadline_differs: bool,
        /// It is of this catalog, and the extension moves to the one that was chosen.
        moves_from: Option<String>,
    },
    /// A new revision is needed.
    Roll {
        /// Its name.
        name: String,
        /// Its number.
        number: i64,
    },
}

/// Whether the newest revision already is what `inputs` ask for.
///
/// Errors: [`Refusal`] when the extension's name is too long for its revisions to be named after it.
pub(crate) fn step(
    extension: &str,
    deadline_minutes: Option<i32>,
    inputs: &Inputs<'_>,
    moved_from: Option<&str>,
    history: &History,
    now: Timestamp,
) -> Result<Step, Refusal> {
    if let Some(newest) = history.newest() {
        // Only rendering tells whether a bundle has webhooks, and the newest revision remembers: for the same image the answer
        // is the same, for another one the identity differs anyway.
        let provider = match newest.certificates.as_deref() {
            Some("none") => Provider::None,
            _ => inputs.provider,
        };
        let wanted = Inputs {
            provider,
            ..inputs.clone()
        }
        .identity();
        if newest.identity.as_deref() == Some(wanted.as_str()) && !renewal_due(newest, now) {
            return Ok(Step::Keep {
                revision: newest.name.clone(),
                deadline_differs: newest.deadline_minutes != deadline_minutes,
                moves_from: moved_from
                    .filter(|from| newest.bundle.catalog.as_deref() == Some(*from))
                    .map(ToOwned::to_owned),
            });
        }
    }
    let number = history.highest.saturating_add(1);
    let name = format!("{extension}-{number}");
    if name.len() > LABEL_VALUE_MAX {
        return Err(Refusal {
            message: format!(
                "the name of ClusterExtension \"{extension}\" is too long: its revision \"{name}\" would have more than \
                 {LABEL_VALUE_MAX} characters; create it again with a shorter name"
            ),
            terminal: true,
        });
    }
    Ok(Step::Roll { name, number })
}

fn renewal_due(revision: &Revision, now: Timestamp) -> bool {
    revision
        .renewal
        .as_deref()
        .and_then(|text| text.parse::<Timestamp>().ok())
        .is_some_and(|due| due <= now)
}

/// Names of the archived revisions beyond those that are kept, oldest first.
pub(crate) fn superfluous(history: &History) -> &[String] {
    let count = history.archived.len().saturating_sub(ARCHIVED_KEPT);
    history.archived.get(..count).unwrap_or_default()
}
