//! The extension's revisions as deciding and reporting see them. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use olm_api::{ClusterObjectSet, LifecycleState, keys};
use olm_status::cluster_extension::RevisionView;

/// Digest over everything the objects of a revision follow from; equal digest, equal objects.
pub(crate) const IDENTITY_ANNOTATION: &str = "olm.operatorframework.io/revision-identity";
/// Canonical reference, by digest, of the image that the objects of a revision were rendered from.
pub(crate) const IMAGE_ANNOTATION: &str = "olm.operatorframework.io/resolved-bundle-image";
/// The catalog the bundle of a revision was found in.
pub(crate) const CATALOG_ANNOTATION: &str = "olm.operatorframework.io/catalog-name";
/// The catalog that the extension was installed from before, on a revision that moved it to another.
pub(crate) const MOVED_FROM_ANNOTATION: &str = "olm.operatorframework.io/catalog-moved-from";
/// Who makes the serving certificates of the bundle's webhooks: a [`Provider`](super::identity::Provider).
pub(crate) const CERTIFICATES_ANNOTATION: &str = "olm.operatorframework.io/webhook-certificates";
/// When certificates made by this controller are due to be renewed (RFC 3339).
pub(crate) const RENEWAL_ANNOTATION: &str = "olm.operatorframework.io/webhook-certificates-renewal";

/// One bundle, wherever it is known from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundleRef {
    /// Name of the bundle in its catalog.
    pub name: String,
    /// Version as it is shown.
    pub version: String,
    /// Release, where releases are a field of their own.
    pub release: Option<String>,
    /// Package it belongs to.
    pub package: String,
    /// Image reference as the catalog gives it.
    pub image: String,
    /// Catalog it was found in; unknown for revisions made by others.
    pub catalog: Option<String>,
}

impl BundleRef {
    /// Whether both mean the same bundle, whatever image it is in.
    pub(crate) fn same_bundle(&self, other: &Self) -> bool {
        self.name == other.name && self.version == other.version && self.release == other.release
    }
}

/// A revision that counts: Active and not being deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Revision {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Its number.
    pub number: i64,
    /// What it installs.
    pub bundle: BundleRef,
    /// See [`MOVED_FROM_ANNOTATION`].
    pub moved_from: Option<String>,
    /// See [`IDENTITY_ANNOTATION`]; absent on revisions made by others.
    pub identity: Option<String>,
    /// See [`IMAGE_ANNOTATION`].
    pub image: Option<String>,
    /// See [`CERTIFICATES_ANNOTATION`].
    pub certificates: Option<String>,
    /// The bundle's properties, a JSON list.
    pub properties: Option<String>,
    /// See [`RENEWAL_ANNOTATION`].
    pub renewal: Option<String>,
    /// `spec.progressDeadlineMinutes`.
    pub deadline_minutes: Option<i32>,
    /// Whether it has ever rolled out.
    pub succeeded: bool,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

impl Revision {
    /// As the status shows it.
    pub(crate) fn view(&self) -> RevisionView {
        RevisionView {
            name: self.name.clone(),
            bundle: self.bundle.name.clone(),
            version: self.bundle.version.clone(),
            release: self.bundle.release.clone(),
            image: self.bundle.image.clone(),
            catalog: self.bundle.catalog.clone(),
            moved_from: self.moved_from.clone(),
            conditions: self.conditions.clone(),
        }
    }

    fn from_object(object: &ClusterObjectSet) -> Self {
        let annotation = |key: &str| object.annotations().get(key).cloned();
        let text = |key: &str| annotation(key).unwrap_or_default();
        let conditions = object
            .status
            .as_ref()
            .and_then(|status| status.conditions.clone())
            .unwrap_or_default();
        Self {
            name: object.name_any(),
            number: object.spec.revision,
            bundle: BundleRef {
                name: text(keys::BUNDLE_NAME_ANNOTATION),
                version: text(keys::BUNDLE_VERSION_ANNOTATION),
                release: annotation(keys::BUNDLE_RELEASE_ANNOTATION),
                package: text(keys::PACKAGE_NAME_ANNOTATION),
                image: text(keys::BUNDLE_REFERENCE_ANNOTATION),
                catalog: annotation(CATALOG_ANNOTATION),
            },
            moved_from: annotation(MOVED_FROM_ANNOTATION),
            identity: annotation(IDENTITY_ANNOTATION),
            image: annotation(IMAGE_ANNOTATION),
            certificates: annotation(CERTIFICATES_ANNOTATION),
            properties: annotation(keys::PROPERTIES_ANNOTATION),
            renewal: annotation(RENEWAL_ANNOTATION),
            deadline_minutes: object.spec.progress_deadline_minutes,
            succeeded: conditions
                .iter()
                .any(|c| c.type_ == "Succeeded" && c.status == "True"),
            conditions,
        }
    }
}

/// All revisions of one extension.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    /// The newest that has rolled out.
    pub installed: Option<Revision>,
    /// Those that have not, oldest first.
    pub rolling_out: Vec<Revision>,
    /// The highest number ever seen, of any state; 0 when there is none.
    pub highest: i64,
    /// Names of the archived ones that are not being deleted, oldest first.
    pub archived: Vec<String>,
}

impl History {
    /// Reads the revisions of one extension, in any order.
    pub(crate) fn read(objects: &[ClusterObjectSet]) -> Self {
        let mut sorted: Vec<&ClusterObjectSet> = objects.iter().collect();
        sorted.sort_by_key(|object| object.spec.revision);
        let mut history = Self::default();
        for object in sorted {
            history.highest = history.highest.max(object.spec.revision);
            if object.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if object.spec.lifecycle_state == LifecycleState::Archived {
                history.archived.push(object.name_any());
            } else {
                let revision = Revision::from_object(object);
                if revision.succeeded {
                    history.installed = Some(revision);
                } else {
                    history.rolling_out.push(revision);
                }
            }
        }
        history
    }

    /// Takes in a revision that was just made.
    pub(crate) fn add(&mut self, made: &ClusterObjectSet) {
        self.highest = self.highest.max(made.spec.revision);
        self.rolling_out.push(Revision::from_object(made));
    }

    /// Takes in that `revision` has come to be of another catalog.
    pub(crate) fn moved(&mut self, revision: &str, from: &str, to: &str) {
        let all = self.rolling_out.iter_mut().chain(&mut self.installed);
        for found in all.filter(|found| found.name == revision) {
            found.bundle.catalog = Some(to.to_owned());
            found.moved_from = Some(from.to_owned());
        }
    }

    /// The revision with the highest number among those that count.
    pub(crate) fn newest(&self) -> Option<&Revision> {
        let rolling_out = self.rolling_out.last();
        match (rolling_out, &self.installed) {
            (Some(a), Some(b)) => Some(if a.number > b.number { a } else { b }),
            (a, b) => a.or(b.as_ref()),
        }
    }
}
