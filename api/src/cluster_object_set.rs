//! ClusterObjectSet: one revision of an extension, as objects in phases.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::absent::default_when_absent;
use crate::probe::ProgressionProbe;
use crate::schema::{parts, rules};

/// Objects of a revision, and the settings of their rollout.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "olm.operatorframework.io",
    version = "v1",
    kind = "ClusterObjectSet",
    plural = "clusterobjectsets",
    singular = "clusterobjectset",
    doc = "ClusterObjectSet is one revision of an extension: objects that are applied phase by phase.",
    status = "ClusterObjectSetStatus",
    derive = "Default",
    derive = "PartialEq",
    annotation("olm.operatorframework.io/generator", "experimental"),
    printcolumn = r#"{"name": "Available", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Available')].status"}"#,
    printcolumn = r#"{"name": "Progressing", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Progressing')].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ClusterObjectSetSpec {
    /// `Active` revisions are applied and maintained; `Archived` revisions only remain as a record. An archived
    /// revision cannot become active again.
    #[x_kube(validation = Rule::new(
        "oldSelf == 'Active' || oldSelf == 'Archived' && oldSelf == self"
    ).message("cannot un-archive"))]
    pub lifecycle_state: LifecycleState,

    /// Number of the revision, increasing for each extension.
    #[schemars(range(min = 1))]
    #[x_kube(validation = rules::immutable("revision"))]
    pub revision: i64,

    /// Collision protection of phases and objects that do not set their own.
    #[x_kube(validation = rules::immutable("collisionProtection"))]
    pub collision_protection: CollisionProtection,

    /// Objects in the order of their rollout: a phase starts when the previous one is complete. Can be set once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 20),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[x_kube(validation = rules::set_once("phases"))]
    pub phases: Option<Vec<ClusterObjectSetPhase>>,

    /// Minutes after which the rollout is reported as stuck. If absent, there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 720))]
    pub progress_deadline_minutes: Option<i32>,

    /// Probes that objects of a phase must pass before the next phase starts, besides the built-in probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub progression_probes: Option<Vec<ProgressionProbe>>,

    /// If true, the objects of an Active revision are observed, but neither applied nor repaired. Set by
    /// operator-controller from `spec.rollout.paused` of the ClusterExtension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,

    /// Time for which the objects must stay available before the revision counts as rolled out. Set by
    /// operator-controller from `spec.rollout.soak` of the ClusterExtension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = rules::duration("soak"))]
    pub soak: Option<String>,
}

impl ClusterObjectSetSpec {
    /// Returns the number of objects of all phases.
    pub fn object_count(&self) -> usize {
        let phases = self.phases.iter().flatten();
        phases.map(|phase| phase.objects.len()).sum()
    }
}

default_when_absent!(ClusterObjectSetSpec);

/// Lifecycle states of a revision.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LifecycleState {
    /// The revision's objects are applied and repaired.
    #[default]
    Active,
    /// The revision is kept as a record.
    Archived,
}

/// Ways to treat an object that already exists before it is applied.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CollisionProtection {
    /// An existing object is never adopted.
    #[default]
    Prevent,
    /// An existing object is adopted if no controller owns it.
    IfNoController,
    /// An existing object is always adopted.
    None,
}

/// Objects that are rolled out together.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterObjectSetPhase {
    /// Name of the phase, unique in the revision.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = rules::phase_name())]
    pub name: String,

    /// Objects of the phase, applied in any order.
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub objects: Vec<ClusterObjectSetObject>,

    /// Overrides the revision's `collisionProtection` for this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_protection: Option<CollisionProtection>,
}

/// Object of a phase, inline or by reference.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.object),has(self.ref)].filter(x,x==true).size() == 1")
    .message("exactly one of the fields in [object ref] must be set"))]
pub struct ClusterObjectSetObject {
    /// Inline object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::embedded_resource")]
    pub object: Option<Value>,

    /// Secret with the object, for large objects.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub ref_: Option<ObjectSourceRef>,

    /// Overrides the phase's `collisionProtection` for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_protection: Option<CollisionProtection>,
}

/// A key of an immutable Secret that holds an object as JSON, possibly gzipped.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSourceRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace of the Secret; the system namespace if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,

    /// Key of the Secret's data.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// Observed state of a ClusterObjectSet.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterObjectSetStatus {
    /// Generation that this status describes; -1 before the first reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Available, Progressing, Succeeded, and for tools Ready, Reconciling and Stalled. Set by
    /// operator-controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::conditions")]
    pub conditions: Option<Vec<Condition>>,

    /// Digest of every phase at the first reconcile, to detect later changes of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 20),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    #[x_kube(validation = rules::set_once("observedPhases"))]
    pub observed_phases: Option<Vec<ObservedPhase>>,
}

/// Phase at the first reconcile.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ObservedPhase {
    /// Name of the phase.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = rules::phase_name())]
    pub name: String,

    /// Digest of its objects, `<algorithm>:<hex>`.
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]+:[a-f0-9]+$')")
        .message("digest must be in the format '<algorithm>:<hex>'"))]
    pub digest: String,
}
