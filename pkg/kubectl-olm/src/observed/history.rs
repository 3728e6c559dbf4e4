//! Revisions of an extension.

use kube::ResourceExt as _;
use olm_api::condition::find;
use olm_api::condition::reasons::ObjectSet as Reason;
use olm_api::condition::types::ObjectSet as Type;
use olm_api::{ClusterObjectSet, LifecycleState, keys};
use olm_status::overview::Mood;
use olm_status::recorded::bundle_version;
use olm_version::BundleVersion;

/// A revision in a list.
#[derive(Debug)]
pub(crate) struct RevisionRow {
    /// Number of the revision.
    pub(crate) number: i64,
    /// Name of its object.
    pub(crate) name: String,
    /// Version of its bundle; empty if unknown.
    pub(crate) version: BundleVersion,
    /// Name of its bundle; empty if unknown.
    pub(crate) bundle: String,
    /// Catalog of its bundle; empty if unknown.
    pub(crate) catalog: String,
    /// State in a word.
    pub(crate) state: String,
    /// Good if it has rolled out and is kept up.
    pub(crate) mood: Mood,
    /// Time of its creation, RFC 3339; empty if unknown.
    pub(crate) created: String,
}

impl RevisionRow {
    /// Reads a revision.
    pub(crate) fn new(set: &ClusterObjectSet) -> Self {
        let annotation = |key: &str| set.annotations().get(key).cloned().unwrap_or_default();
        let state = match find(set.conditions(), Type::Progressing) {
            _ if set.spec.lifecycle_state == LifecycleState::Archived => Reason::Archived.as_str(),
            Some(found) => found.reason.as_str(),
            None => "Pending",
        };
        let created = set.metadata.creation_timestamp.as_ref();
        Self {
            number: set.spec.revision,
            name: set.name_any(),
            version: bundle_version(set),
            bundle: annotation(keys::BUNDLE_NAME_ANNOTATION),
            catalog: annotation(keys::CATALOG_NAME_ANNOTATION),
            state: state.to_owned(),
            mood: if *state == Reason::Succeeded {
                Mood::Good
            } else {
                Mood::Plain
            },
            created: created.map(|time| time.0.to_string()).unwrap_or_default(),
        }
    }
}
