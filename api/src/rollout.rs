//! `spec.rollout` and its counterparts in the status: approval, pause and windows of rollouts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::BundleMetadata;
use crate::schema::{parts, rules};

/// Conditions for the rollout of new revisions. If absent, new revisions roll out at once.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "!has(self.automatic) || !has(self.approval) || self.approval == 'Automatic'"
).message("automatic applies only if approval is Automatic"))]
pub struct RolloutConfig {
    /// `Automatic`, the default, rolls new revisions out without approval. With `Manual`, nothing is written until
    /// `approvedPlan` is the digest of `status.pendingPlan`, also for the first installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<RolloutApproval>,

    /// Upgrades that need no approval, by the part of the version that changes: `Patch`, `Minor` (patches included) or
    /// `All`, the default. Other upgrades, and with `Patch` or `Minor` all downgrades, wait for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<AutomaticUpgrades>,

    /// Changes that need approval whatever their version is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub require_approval_for: Option<Vec<ApprovalTrigger>>,

    /// Digest of the approved plan, from `status.pendingPlan.digest`. A plan with another digest needs a new approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = "^sha256:[a-f0-9]{64}$"))]
    pub approved_plan: Option<String>,

    /// Approved joint plan: the plans of extensions whose new versions need each other, this one included. The extensions of the list
    /// may then lack what the new versions of each other need or drop, as long as each of them rolls out exactly its plan. The list
    /// applies only if all its extensions have the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 2, max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["extension"])
    )]
    pub joint_plan: Option<Vec<JointPlanMember>>,

    /// If true, nothing is resolved, applied or repaired. Deletion works as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,

    /// Times at which upgrades may begin. If absent or empty, they may begin at any time. Installations, repairs and
    /// downgrades do not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub windows: Option<Vec<RolloutWindow>>,

    /// `Wait`, the default, leaves a failed upgrade in place. `RollBack` writes the content of the installed revision as
    /// a new revision, unless that could lose data. The failed version is not tried again until its catalog, its image
    /// or the spec changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailurePolicy>,

    /// Time for which a new revision must stay available before it counts as rolled out, such as `10m` or `1h30m`, at
    /// most a week. Until then, the objects of the former revision stay. If absent, the revision counts as rolled out as
    /// soon as it is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = rules::duration("soak"))]
    pub soak: Option<String>,

    /// Number of a former revision whose content the extension has while the field is set: operator-controller writes
    /// the content as a new revision, and rolls out nothing else. Without the field, the extension follows its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub roll_back_to: Option<i64>,
}

/// Reactions to an upgrade that fails.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FailurePolicy {
    /// The failed revision stays, and the rollout goes on if it can.
    #[default]
    Wait,
    /// The content of the installed revision is rolled out again.
    RollBack,
}

/// Plan of one extension in a joint plan.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct JointPlanMember {
    /// Name of the ClusterExtension.
    #[schemars(length(min = 1, max = 253))]
    pub extension: String,

    /// Digest of its plan.
    #[schemars(length(max = 71), regex(pattern = "^sha256:[a-f0-9]{64}$"))]
    pub plan: String,
}

/// Ways to approve rollouts.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RolloutApproval {
    /// No approval is needed, except for changes that `automatic` and `requireApprovalFor` name.
    #[default]
    Automatic,
    /// Every plan needs an approval.
    Manual,
}

/// Upgrades that need no approval.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutomaticUpgrades {
    /// Upgrades within a minor version.
    Patch,
    /// Upgrades within a major version.
    Minor,
    /// All upgrades.
    #[default]
    All,
}

/// Changes that need approval.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApprovalTrigger {
    /// The extension gains rights that it does not have. A first installation gains all of its rights.
    NewRights,
    /// Existing custom resource definitions change or are deleted.
    #[serde(rename = "CRDChanges")]
    CrdChanges,
    /// The major version changes.
    MajorVersion,
}

/// Recurring time span in which upgrades may begin.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutWindow {
    /// Opening times as a cron expression of five fields: minute, hour, day of the month, month, day of the week.
    #[schemars(length(min = 9, max = 128))]
    #[x_kube(validation = rules::cron())]
    pub schedule: String,

    /// Minutes for which the window stays open, at most a week.
    #[schemars(range(min = 1, max = 10080))]
    pub duration_minutes: i32,

    /// Time zone of the schedule, a name of the IANA database such as `Europe/Berlin`. If absent, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: Option<String>,
}

/// Change that waits for its approval or for a window.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PendingPlan {
    /// Digest of the plan: the value of `spec.rollout.approvedPlan` that approves it.
    pub digest: String,

    /// Bundle that the plan rolls out.
    pub bundle: BundleMetadata,

    /// Name of the ClusterCatalog of the bundle, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,

    /// Counts of the objects that the plan changes.
    pub objects: PendingObjects,

    /// Settings that require the approval; absent if the plan needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "set"))]
    pub required_by: Option<Vec<ApprovalCause>>,

    /// The gravest effects, gravest first: irreversible changes, changes of CRDs, gained rights, restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub findings: Option<Vec<String>>,
}

/// Counts of the objects that a plan changes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PendingObjects {
    /// Number of objects that are created.
    pub created: i64,
    /// Number of objects that change.
    pub changed: i64,
    /// Number of objects that are deleted.
    pub deleted: i64,
}

/// Settings of `spec.rollout` that require an approval.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApprovalCause {
    /// `approval: Manual`.
    Manual,
    /// The version changes by more than `automatic` permits.
    Automatic,
    /// `requireApprovalFor` names `NewRights`, and the extension gains rights.
    NewRights,
    /// `requireApprovalFor` names `CRDChanges`, and CRDs change.
    #[serde(rename = "CRDChanges")]
    CrdChanges,
    /// `requireApprovalFor` names `MajorVersion`, and the major version changes.
    MajorVersion,
}

impl ApprovalCause {
    /// Returns the setting as a path with its value.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Manual => "approval: Manual",
            Self::Automatic => "automatic",
            Self::NewRights => "requireApprovalFor: NewRights",
            Self::CrdChanges => "requireApprovalFor: CRDChanges",
            Self::MajorVersion => "requireApprovalFor: MajorVersion",
        }
    }
}

/// State of the windows at the last pass.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// `Open` if upgrades may begin.
    pub window: WindowState,

    /// Time at which the open window closes; absent if it does not close in the foreseeable future.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::timestamp")]
    pub closes_at: Option<Time>,

    /// Time at which the next window opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::timestamp")]
    pub opens_at: Option<Time>,
}

/// States of the windows.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WindowState {
    /// A window is open.
    Open,
    /// No window is open.
    #[default]
    Closed,
}
