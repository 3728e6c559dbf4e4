//! Revisions of an extension, read from its ClusterObjectSets.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use olm_api::condition::{Status, find, is_true, reasons::ObjectSet as Reason, types::ObjectSet as Type};
use olm_api::rollback::{self, Rollback, RolloutAttempt};
use olm_api::{ClusterObjectSet, LifecycleState, keys};
use olm_image::CanonicalRef;
use olm_rollout::hold::begins_upgrade;
use olm_status::cluster_extension::{RevisionView, Revisions};
use olm_status::recorded::bundle_version;
use olm_text::name::{BundleName, CatalogName, ImageText, PackageName};
use olm_version::BundleVersion;

use super::bundle_image::BundleImage;

/// A bundle, from a catalog or from the annotations of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleRef {
    /// Name of the bundle in its catalog.
    pub name: BundleName,
    /// Version as the status shows it, with a separate release if release support is on.
    pub version: BundleVersion,
    /// Package of the bundle.
    pub package: PackageName,
    /// Image reference in the catalog.
    pub image: BundleImage,
    /// Catalog of the bundle; unknown for revisions that upstream created.
    pub catalog: Option<CatalogName>,
}

impl BundleRef {
    /// Returns true if both have the same name, version and release. Images may differ.
    pub fn same_bundle(&self, other: &Self) -> bool {
        self.name == other.name && self.version == other.version
    }
}

/// A revision that is not being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Uid of the ClusterObjectSet. Writes name it, since a later extension of the same name has revisions of the same names.
    pub uid: Option<String>,
    /// Number of the revision.
    pub number: i64,
    /// Bundle of the revision.
    pub bundle: BundleRef,
    /// See [`keys::CATALOG_MOVED_FROM_ANNOTATION`].
    pub moved_from: Option<CatalogName>,
    /// See [`keys::INSTALL_NAMESPACE_ANNOTATION`].
    pub install_namespace: Option<String>,
    /// See [`keys::REVISION_IDENTITY_ANNOTATION`]; absent on revisions that upstream created.
    pub identity: Option<String>,
    /// See [`keys::SELECTED_NAMESPACES_ANNOTATION`].
    pub namespaces: Option<Vec<String>>,
    /// See [`keys::RESOLVED_IMAGE_ANNOTATION`]; absent if invalid.
    pub image: Option<CanonicalRef>,
    /// See [`keys::TAKEN_OVER_OBJECTS_ANNOTATION`].
    pub taken_over: Option<String>,
    /// A [`CertificateProvider`](super::CertificateProvider); see [`keys::WEBHOOK_CERTIFICATES_ANNOTATION`].
    pub certificates: Option<String>,
    /// Properties of the bundle as a JSON list.
    pub properties: Option<String>,
    /// See [`keys::WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION`].
    pub renewal: Option<String>,
    /// Properties of the bundle in its catalog as a JSON list.
    pub catalog_properties: Option<String>,
    /// See [`keys::ROLLOUT_ATTEMPT_ANNOTATION`]; absent if unreadable.
    pub attempt: Option<RolloutAttempt>,
    /// See [`keys::ROLLBACK_ANNOTATION`]; absent if unreadable.
    pub rollback: Option<Rollback>,
    /// See [`keys::UPGRADEABLE_CONDITION_ANNOTATION`].
    pub upgradeable_condition: Option<String>,
    /// `spec.progressDeadlineMinutes`.
    pub deadline_minutes: Option<i32>,
    /// `spec.soak`.
    pub soak: Option<String>,
    /// True once the revision has rolled out.
    pub succeeded: bool,
    /// Conditions of the revision.
    pub conditions: Vec<Condition>,
}

impl Revision {
    /// Returns the part of the revision that the status of the extension shows.
    pub fn view(&self) -> RevisionView {
        RevisionView {
            name: self.name.clone(),
            bundle: self.bundle.name.clone(),
            version: self.bundle.version.clone(),
            image: self.bundle.image.text().clone(),
            catalog: self.bundle.catalog.clone(),
            moved_from: self.moved_from.clone(),
            install_namespace: self.install_namespace.clone(),
            conditions: self.conditions.clone(),
        }
    }

    /// Returns the message of a rollout that has failed; `None` if the rollout goes on or is over.
    pub fn failure(&self) -> Option<&str> {
        let failures = [
            Reason::ProgressDeadlineExceeded,
            Reason::Blocked,
            Reason::SoakFailed,
        ];
        let progressing = find(&self.conditions, Type::Progressing).filter(|_| !self.succeeded)?;
        let failed = progressing.status == Status::False
            && failures.iter().any(|reason| progressing.reason == *reason);
        failed.then_some(progressing.message.as_str())
    }

    fn from_object(object: &ClusterObjectSet) -> Self {
        let annotation = |key: &str| object.annotations().get(key).cloned();
        let text = |key: &str| annotation(key).unwrap_or_default();
        Self {
            name: object.name_any(),
            uid: object.uid(),
            number: object.spec.revision,
            bundle: BundleRef {
                name: text(keys::BUNDLE_NAME_ANNOTATION).into(),
                version: bundle_version(object),
                package: text(keys::PACKAGE_NAME_ANNOTATION).into(),
                image: ImageText::from(text(keys::BUNDLE_REFERENCE_ANNOTATION)).into(),
                catalog: annotation(keys::CATALOG_NAME_ANNOTATION).map(CatalogName::from),
            },
            moved_from: annotation(keys::CATALOG_MOVED_FROM_ANNOTATION).map(CatalogName::from),
            install_namespace: annotation(keys::INSTALL_NAMESPACE_ANNOTATION),
            identity: annotation(keys::REVISION_IDENTITY_ANNOTATION),
            namespaces: annotation(keys::SELECTED_NAMESPACES_ANNOTATION)
                .map(|names| names.split(',').map(ToOwned::to_owned).collect()),
            image: annotation(keys::RESOLVED_IMAGE_ANNOTATION).and_then(|image| image.parse().ok()),
            taken_over: annotation(keys::TAKEN_OVER_OBJECTS_ANNOTATION),
            certificates: annotation(keys::WEBHOOK_CERTIFICATES_ANNOTATION),
            properties: annotation(keys::PROPERTIES_ANNOTATION),
            renewal: annotation(keys::WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION),
            catalog_properties: annotation(keys::CATALOG_PROPERTIES_ANNOTATION),
            attempt: annotation(keys::ROLLOUT_ATTEMPT_ANNOTATION).and_then(|text| rollback::read(&text)),
            rollback: annotation(keys::ROLLBACK_ANNOTATION).and_then(|text| rollback::read(&text)),
            upgradeable_condition: annotation(keys::UPGRADEABLE_CONDITION_ANNOTATION),
            deadline_minutes: object.spec.progress_deadline_minutes,
            soak: object.spec.soak.clone(),
            succeeded: is_true(object.conditions(), Type::Succeeded),
            conditions: object.conditions().to_vec(),
        }
    }
}

/// Revisions of one extension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Newest revision that has rolled out.
    pub installed: Option<Revision>,
    /// Revisions after [`History::installed`] that have not rolled out, oldest first. Older ones are about to be archived, and
    /// their state describes nothing that the extension has or gets.
    pub rolling_out: Vec<Revision>,
    /// Highest number of all revisions, in any state, and of those that [are gone](History::and_gone); 0 without any.
    pub highest: i64,
    /// Archived revisions that are not being deleted, oldest first.
    pub archived: Vec<Revision>,
    /// Active revisions before [`History::installed`], oldest first; they are about to be archived.
    pub superseded: Vec<Revision>,
}

impl History {
    /// Reads the ClusterObjectSets of one extension, given in any order.
    pub fn read(objects: &[ClusterObjectSet]) -> Self {
        let mut sorted: Vec<&ClusterObjectSet> = objects.iter().collect();
        sorted.sort_by_key(|object| object.spec.revision);
        let mut history = Self::default();
        for object in sorted {
            history.highest = history.highest.max(object.spec.revision);
            if object.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if object.spec.lifecycle_state == LifecycleState::Archived {
                history.archived.push(Revision::from_object(object));
            } else {
                let revision = Revision::from_object(object);
                if revision.succeeded {
                    history.superseded.extend(history.installed.take());
                    history.superseded.append(&mut history.rolling_out);
                    history.installed = Some(revision);
                } else {
                    history.rolling_out.push(revision);
                }
            }
        }
        history
    }

    /// Adds that the extension had revisions up to this number; see [`numbers`](crate::numbers).
    #[must_use]
    pub fn and_gone(mut self, highest_gone: i64) -> Self {
        self.highest = self.highest.max(highest_gone);
        self
    }

    /// Returns true if both permit the same next revision: they have the same numbers, the same installed revision, and the same
    /// failure of the newest rollout.
    pub fn permits_as(&self, other: &Self) -> bool {
        let inputs = |history: &Self| {
            let installed = history.installed.as_ref().map(|revision| revision.number);
            let newest = history.newest();
            let failed = newest.is_some_and(|newest| newest.failure().is_some());
            (
                history.highest,
                installed,
                newest.map(|newest| newest.number),
                failed,
            )
        };
        inputs(self) == inputs(other)
    }

    /// Returns the revisions in the form of the status.
    pub fn view(&self) -> Revisions {
        Revisions::Known {
            installed: self.installed.as_ref().map(Revision::view),
            rolling_out: self.rolling_out.iter().map(Revision::view).collect(),
        }
    }

    /// Adds a revision that was just created.
    pub fn add(&mut self, created: &ClusterObjectSet) {
        self.highest = self.highest.max(created.spec.revision);
        self.rolling_out.push(Revision::from_object(created));
    }

    /// Replaces a revision by its new version.
    pub fn replace(&mut self, changed: &ClusterObjectSet) {
        let changed = Revision::from_object(changed);
        let mut all = self.rolling_out.iter_mut().chain(&mut self.installed);
        if let Some(found) = all.find(|found| found.name == changed.name) {
            *found = changed;
        }
    }

    /// Records that `revision` moved to another catalog.
    pub fn moved(&mut self, revision: &str, from: &CatalogName, to: &CatalogName) {
        let all = self.rolling_out.iter_mut().chain(&mut self.installed);
        for found in all.filter(|found| found.name == revision) {
            found.bundle.catalog = Some(to.clone());
            found.moved_from = Some(from.clone());
        }
    }

    /// Returns the revisions whose content can be rolled out again, oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Revision> {
        let active = self
            .superseded
            .iter()
            .chain(&self.installed)
            .chain(&self.rolling_out);
        let mut all: Vec<&Revision> = self.archived.iter().chain(active).collect();
        all.sort_by_key(|revision| revision.number);
        all.into_iter()
    }

    /// Returns the installed revision if a change to `to` begins an upgrade of it. One that is rolling out has begun already.
    pub fn upgraded_by(&self, to: &BundleVersion) -> Option<&Revision> {
        let rolling_out = self.newest().filter(|revision| !revision.succeeded);
        let rolling_out = rolling_out.map(|revision| &revision.bundle.version);
        let installed = self.installed.as_ref()?;
        begins_upgrade(Some(&installed.bundle.version), rolling_out, to).then_some(installed)
    }

    /// Returns the Active revision with the highest number.
    pub fn newest(&self) -> Option<&Revision> {
        self.rolling_out.last().or(self.installed.as_ref())
    }

    /// Returns the install namespace that was chosen because the spec names none; `None` before the first revision. It never
    /// changes, whatever later bundles suggest.
    pub fn chosen_namespace(&self) -> Option<&str> {
        let active = self.rolling_out.iter().rev().chain(&self.installed);
        active
            .chain(self.archived.iter().rev())
            .find_map(|revision| revision.install_namespace.as_deref())
    }
}
