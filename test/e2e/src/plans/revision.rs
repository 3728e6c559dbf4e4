//! A revision with the plan of its rollout, and the facts about it from later writes.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_plan::{
    Budget, BundleIdentity, CatalogIdentity, Change, FieldChange, ObjectRef, Plan, Side, desired, fields,
};
use olm_text::object::{ObjectId, group_version};
use serde_json::Value;

/// Identity of an object: group, kind, namespace, name.
pub(super) type Key = [String; 4];

/// Secrets by namespace and name.
pub(super) type Secrets<'a> = BTreeMap<(String, String), &'a Value>;

/// A revision with its plan.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each read from another write"
)]
pub(super) struct Revision {
    pub(super) name: String,
    pub(super) uid: String,
    /// Name of the extension; empty for a revision without one.
    pub(super) extension: String,
    /// Uid of the extension, which tells it from an earlier extension of the same name.
    pub(super) family: String,
    /// Objects of the revision.
    pub(super) objects: BTreeMap<Key, Value>,
    /// Plan of the rollout; `None` for a revision without an extension.
    pub(super) plan: Option<Plan>,
    /// True if `spec.lifecycleState` is `Archived`.
    pub(super) archived: bool,
    /// True if the deletion of the revision was requested.
    pub(super) deleting: bool,
    /// True if the status has said that the revision has rolled out.
    pub(super) rolled_out: bool,
    /// True if the status has said that the objects of the archived revision are removed.
    pub(super) torn_down: bool,
    /// Objects that the controller wrote for the revision.
    pub(super) applied: BTreeSet<Key>,
}

impl Revision {
    /// Returns a new revision without a plan. It lacks objects that cannot be read.
    pub(super) fn new(set: &ClusterObjectSet, secrets: &Secrets<'_>) -> Self {
        let label = |key: &str| set.metadata.labels.as_ref()?.get(key).cloned();
        let owners = set.metadata.owner_references.iter().flatten();
        let mut family = owners
            .filter(|owner| owner.kind == "ClusterExtension")
            .map(|owner| owner.uid.clone());
        let objects = objects(set, secrets);
        Self {
            name: set.metadata.name.clone().unwrap_or_default(),
            uid: set.metadata.uid.clone().unwrap_or_default(),
            extension: label(keys::OWNER_NAME_LABEL).unwrap_or_default(),
            family: family.next_back().unwrap_or_default(),
            objects: objects
                .into_iter()
                .map(|object| (key_of(&object), object))
                .collect(),
            plan: None,
            archived: false,
            deleting: false,
            rolled_out: false,
            torn_down: false,
            applied: BTreeSet::new(),
        }
    }

    /// Returns true if both revisions belong to the same extension.
    pub(super) fn is_sibling(&self, other: &Self) -> bool {
        !self.extension.is_empty() && (&self.extension, &self.family) == (&other.extension, &other.family)
    }

    /// Returns true if the revision is neither archived nor deleted.
    pub(super) fn is_active(&self) -> bool {
        !self.archived && !self.deleting
    }

    /// Makes the plan of the rollout from the revision `previous` to this revision, whose object is `set`, as operator-controller
    /// does.
    pub(super) fn make_plan(
        &mut self,
        set: &ClusterObjectSet,
        extension: Option<&ClusterExtension>,
        previous: Option<(&Self, &ClusterObjectSet)>,
    ) {
        let to = BundleIdentity {
            revision: None,
            ..BundleIdentity::recorded(set)
        };
        let annotations = set.metadata.annotations.as_ref();
        let catalog = annotations.and_then(|all| all.get(keys::CATALOG_NAME_ANNOTATION));
        let change = Change {
            extension: Some(self.extension.clone()),
            namespace: extension
                .and_then(|extension| extension.spec.namespace.clone())
                .or_else(|| annotations?.get(keys::INSTALL_NAMESPACE_ANNOTATION).cloned())
                .unwrap_or_default(),
            config: extension.and_then(|extension| extension.spec.inline_config()),
            from: previous.map(|(revision, set)| Side {
                bundle: BundleIdentity::recorded(set),
                objects: revision.objects.values().cloned().collect(),
            }),
            to: Side {
                bundle: to,
                objects: self.objects.values().cloned().collect(),
            },
            catalog: catalog.map(|name| CatalogIdentity {
                name: name.clone(),
                digest: None,
            }),
            ..Change::default()
        };
        self.plan = Some(change.plan());
    }

    /// Returns the objects that the plan promises to write.
    pub(super) fn promised(&self) -> impl Iterator<Item = Key> {
        let plan = self.plan.iter();
        plan.flat_map(|plan| {
            let changed = plan.changed.iter().map(|change| &change.object);
            plan.created.iter().chain(changed).map(key_of_ref)
        })
    }

    /// Returns the objects that the plan promises to delete.
    pub(super) fn doomed(&self) -> impl Iterator<Item = Key> {
        self.plan
            .iter()
            .flat_map(|plan| plan.deleted.iter().map(key_of_ref))
    }

    /// Returns the fields in which the body of a write differs from the object of the revision. Labels and owners of the revision
    /// do not count. Returns `None` if the revision does not have the object.
    pub(super) fn differences(&self, key: &Key, body: &Value) -> Option<Vec<FieldChange>> {
        let form = |object: &Value| desired(vec![object.clone()]).into_values().next();
        let (held, sent) = (form(self.objects.get(key)?)?, form(body)?);
        Some(fields(&held, &sent, &mut Budget::default()).changes)
    }
}

/// Returns the objects of a revision, inline or from Secrets.
fn objects(set: &ClusterObjectSet, secrets: &Secrets<'_>) -> Vec<Value> {
    let entries = set.spec.phases.iter().flatten().flat_map(|phase| &phase.objects);
    let read = |entry: &olm_api::ClusterObjectSetObject| {
        if let Some(object) = &entry.object {
            return Some(object.clone());
        }
        let reference = entry.ref_.as_ref()?;
        let namespace = reference
            .namespace
            .clone()
            .filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| olm_harness::controllers::SYSTEM_NAMESPACE.to_owned());
        let secret = secrets.get(&(namespace, reference.name.clone()))?;
        let stored = STANDARD.decode(secret["data"][&reference.key].as_str()?).ok()?;
        olm_applier::plan::unpack(&stored).ok()?
    };
    entries.filter_map(read).collect()
}

/// Returns the key of an object.
pub(super) fn key_of(object: &Value) -> Key {
    let id = ObjectId::of(object);
    [id.group, id.kind, id.stored_namespace(), id.name].map(ToOwned::to_owned)
}

fn key_of_ref(object: &ObjectRef) -> Key {
    let group = group_version(&object.api_version).0.to_owned();
    [
        group,
        object.kind.clone(),
        object.namespace.clone(),
        object.name.clone(),
    ]
}
