//! ClusterExtension: a package of a catalog to install and keep up to date.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::absent::default_when_absent;
use crate::deletion::DeletionConfig;
use crate::rollout::{PendingPlan, RolloutConfig, RolloutStatus};
use crate::schema::{parts, rules};
use crate::upgrade::AvailableUpgrade;

/// Desired state of a ClusterExtension.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "olm.operatorframework.io",
    version = "v1",
    kind = "ClusterExtension",
    plural = "clusterextensions",
    singular = "clusterextension",
    doc = "ClusterExtension installs a package from a catalog into the cluster and keeps it up to date.",
    status = "ClusterExtensionStatus",
    derive = "Default",
    derive = "PartialEq",
    annotation("olm.operatorframework.io/generator", "experimental"),
    printcolumn = r#"{"name": "Installed Bundle", "type": "string", "jsonPath": ".status.install.bundle.name"}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.install.bundle.version"}"#,
    printcolumn = r#"{"name": "Installed", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Installed')].status"}"#,
    printcolumn = r#"{"name": "Progressing", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Progressing')].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Update", "type": "string", "jsonPath": ".status.upgrade.version", "priority": 1}"#,
    printcolumn = r#"{"name": "Catalog", "type": "string", "jsonPath": ".status.install.catalog", "priority": 1}"#
)]
#[serde(remote = "Self", rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.__namespace__) == has(oldSelf.__namespace__)")
    .message("namespace is immutable: it can neither be added nor removed"))]
pub struct ClusterExtensionSpec {
    /// Namespace of the extension's namespaced objects. It must exist, and cannot be changed later. If absent, the bundle
    /// suggests a namespace, which is created with the extension and deleted with it; see `status.install.namespace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    #[x_kube(
        validation = Rule::new("self == oldSelf").message("namespace is immutable"),
        validation = rules::dns1123_label("namespace must be a valid DNS1123 label")
    )]
    pub namespace: Option<String>,

    /// Service account in `spec.namespace` whose permissions are used to apply and delete the extension's objects. If
    /// absent, or if the controller runs with `--service-account-policy=Ignore`, the controller's own permissions are
    /// used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountReference>,

    /// Source of the extension.
    pub source: SourceConfig,

    /// Checks that guard the installation. If absent, all checks are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<ClusterExtensionInstallConfig>,

    /// Configuration of the extension; the bundle declares its fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ClusterExtensionConfig>,

    /// Minutes after which a rollout is reported as failing to progress. If absent, there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 720))]
    pub progress_deadline_minutes: Option<i32>,

    /// Rules for the deletion of objects. If absent, the controller's flags decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionConfig>,
    /// Approval, pause and windows of rollouts. If absent, new revisions roll out at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutConfig>,
}

impl ClusterExtensionSpec {
    /// Returns `spec.config.inline`; an empty object if `spec.config` has no inline part, and none without `spec.config`.
    #[must_use]
    pub fn inline_config(&self) -> Option<Value> {
        let inline = self.config.as_ref()?.inline.clone();
        Some(Value::Object(inline.unwrap_or_default()))
    }
}

default_when_absent!(ClusterExtensionSpec);

/// A service account by name, in the extension's namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ServiceAccountReference {
    /// Name of the service account. It can be cleared, but not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(
        validation = Rule::new("self == oldSelf").message("name is immutable once set but may be cleared"),
        validation = rules::dns1123_subdomain("name")
    )]
    pub name: Option<String>,
}

/// Source of an extension: one member for each source type.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "has(self.sourceType) && self.sourceType == 'Catalog' ? has(self.catalog) : !has(self.catalog)"
).message("catalog is required when sourceType is Catalog, and forbidden otherwise"))]
pub struct SourceConfig {
    /// Kind of source.
    pub source_type: SourceType,

    /// Package and selection of catalogs; required if `sourceType` is `Catalog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogFilter>,
}

/// Kinds of source.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceType {
    /// Catalogs served in the cluster.
    #[default]
    Catalog,
}

/// Selection of bundles and catalogs for an extension.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CatalogFilter {
    /// Name of the package. It cannot be changed later.
    #[schemars(length(max = 253))]
    #[x_kube(
        validation = Rule::new("self == oldSelf").message("packageName is immutable"),
        validation = rules::dns1123_subdomain("packageName")
    )]
    pub package_name: String,

    /// Version or range of versions (`1.2.3`, `>=1.2.0 <2.0.0`, `~1.4`, `1.x`). If absent, every version is permitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = rules::VERSION_RANGE_LENGTH))]
    #[x_kube(validation = rules::version_range())]
    pub version: Option<String>,

    /// Channels of the package to choose from. If absent or empty, all channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::channels")]
    pub channels: Option<Vec<String>>,

    /// Selector of the catalogs to choose from, by their labels. If absent, all catalogs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::label_selector")]
    pub selector: Option<LabelSelector>,

    /// Policy for upgrades: with `CatalogProvided` the catalog's upgrade edges decide, with `SelfCertified` any version
    /// in the range may follow any other, downgrades included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "CatalogProvided"))]
    pub upgrade_constraint_policy: Option<UpgradeConstraintPolicy>,
}

/// Policies for the versions that may follow the installed one.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpgradeConstraintPolicy {
    /// The catalog's upgrade edges.
    #[default]
    CatalogProvided,
    /// The user.
    SelfCertified,
}

/// Checks of an installation.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.preflight)")
    .message("at least one of [preflight] are required when install is specified"))]
pub struct ClusterExtensionInstallConfig {
    /// Checks before anything is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preflight: Option<PreflightConfig>,
}

/// Checks before anything is written.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.crdUpgradeSafety)")
    .message("at least one of [crdUpgradeSafety] are required when preflight is specified"))]
pub struct PreflightConfig {
    /// Check that an upgrade does not lose data of custom resources.
    pub crd_upgrade_safety: CrdUpgradeSafety,
}

/// Check of changes of custom resource definitions.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CrdUpgradeSafety {
    /// `Strict` refuses unsafe changes; `None` disables the check.
    pub enforcement: CrdUpgradeSafetyEnforcement,

    /// Accepted unsafe changes, one rule at one path each. All others are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub waivers: Option<Vec<CrdUpgradeWaiver>>,

    /// `Check` also validates every stored object against the new schema and refuses an upgrade that would make one
    /// invalid, even if `enforcement` is `None`. `Ignore`, the default, does not read objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_objects: Option<CrdStoredObjects>,
}

/// Ways to treat stored objects when a custom resource definition changes.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdStoredObjects {
    /// Stored objects are not validated.
    #[default]
    Ignore,
    /// Every stored object must be valid in the new schema.
    Check,
}

/// Accepted unsafe change of a custom resource definition.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "self.rule in ['scope', 'storedVersionRemoval', 'servedVersionRemoval'] ? !has(self.path) : has(self.path)"
).message(
    "path is required, but for the rules scope, storedVersionRemoval and servedVersionRemoval, which concern no field"
))]
pub struct CrdUpgradeWaiver {
    /// Name of the custom resource definition.
    #[schemars(length(min = 1, max = 253))]
    pub crd: String,

    /// Name of the rule, as in the message.
    pub rule: CrdUpgradeRule,

    /// Path of the field, as in the message but without the version: `^.spec.size`. A waiver applies to all versions. A
    /// waiver for `existingFieldRemoval` also covers the fields below.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^\^"))]
    pub path: Option<String>,
}

/// A rule of the check of custom resource definitions.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum CrdUpgradeRule {
    /// The scope does not change.
    Scope,
    /// A version in which objects are stored is not removed.
    StoredVersionRemoval,
    /// A version that clients use stays served.
    ServedVersionRemoval,
    /// A field is not removed.
    ExistingFieldRemoval,
    /// A field's type does not change.
    Type,
    /// Fields do not become required.
    Required,
    /// Enum values are not removed.
    Enum,
    /// Defaults do not change.
    Default,
    /// A bound does not become tighter.
    Minimum,
    /// A bound does not become tighter.
    MinLength,
    /// A bound does not become tighter.
    MinItems,
    /// A bound does not become tighter.
    MinProperties,
    /// A bound does not become tighter.
    Maximum,
    /// A bound does not become tighter.
    MaxLength,
    /// A bound does not become tighter.
    MaxItems,
    /// A bound does not become tighter.
    MaxProperties,
    /// A pattern is neither added nor changed.
    Pattern,
    /// Null does not become forbidden.
    Nullable,
    /// The alternatives do not change.
    OneOf,
    /// Other changes do not occur.
    #[default]
    Unhandled,
}

impl CrdUpgradeRule {
    /// Returns the name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::StoredVersionRemoval => "storedVersionRemoval",
            Self::ServedVersionRemoval => "servedVersionRemoval",
            Self::ExistingFieldRemoval => "existingFieldRemoval",
            Self::Type => "type",
            Self::Required => "required",
            Self::Enum => "enum",
            Self::Default => "default",
            Self::Minimum => "minimum",
            Self::MinLength => "minLength",
            Self::MinItems => "minItems",
            Self::MinProperties => "minProperties",
            Self::Maximum => "maximum",
            Self::MaxLength => "maxLength",
            Self::MaxItems => "maxItems",
            Self::MaxProperties => "maxProperties",
            Self::Pattern => "pattern",
            Self::Nullable => "nullable",
            Self::OneOf => "oneOf",
            Self::Unhandled => "unhandled",
        }
    }
}

/// Modes of the check of changed custom resource definitions.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CrdUpgradeSafetyEnforcement {
    /// Changes are not checked.
    None,
    /// Unsafe changes are refused.
    #[default]
    Strict,
}

/// Configuration of an extension: one member per configuration type.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "has(self.configType) && self.configType == 'Inline' ?has(self.inline) : !has(self.inline)"
).message("inline is required when configType is Inline, and forbidden otherwise"))]
pub struct ClusterExtensionConfig {
    /// Type of the configuration.
    pub config_type: ConfigType,

    /// Configuration values; required if `configType` is `Inline`. The bundle's schema defines the fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::inline_config")]
    pub inline: Option<Map<String, Value>>,
}

/// Types of configuration.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConfigType {
    /// Configuration inside the extension.
    #[default]
    Inline,
}

/// Observed state of a ClusterExtension.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterExtensionStatus {
    /// Generation that this status describes; -1 before the first reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Installed, Progressing, Available, the four about deprecation, `UpgradeAvailable`, and for tools Ready,
    /// Reconciling and Stalled. Set by operator-controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::conditions")]
    pub conditions: Option<Vec<Condition>>,

    /// Installed bundle; absent if nothing is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<ClusterExtensionInstallStatus>,

    /// The revision that is installed and those that are rolling out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub active_revisions: Option<Vec<RevisionStatus>>,

    /// Change that waits for its approval, for a window or for the installed operator; absent if none waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_plan: Option<PendingPlan>,

    /// State of the windows of `spec.rollout`; absent without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,

    /// Upgrade of the installed bundle that waits, or that the spec holds back; absent if `UpgradeAvailable` is not true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<AvailableUpgrade>,
}

/// Installed bundle and its origin.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterExtensionInstallStatus {
    /// The bundle that is installed.
    pub bundle: BundleMetadata,

    /// Name of the ClusterCatalog of the bundle, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,

    /// Name of the previous ClusterCatalog, if the last change moved the extension to another one, because the previous
    /// one was deleted, disabled or no longer selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,

    /// Install namespace that was created with the extension, because the spec names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Warning about the installed bundle although the installation succeeded: without a signature policy, image
    /// signatures are not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A bundle by name and version.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BundleMetadata {
    /// Name of the bundle in its catalog.
    // The message names another field; clients may match on it, so it stays.
    #[x_kube(validation = rules::dns1123_subdomain("packageName"))]
    pub name: String,

    /// Version of the bundle.
    #[x_kube(validation = rules::loose_semver())]
    pub version: String,

    /// Release of the bundle; empty if the bundle declares none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    #[x_kube(validation = rules::release())]
    pub release: Option<String>,
}

/// An installed revision, or one that is rolling out.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RevisionStatus {
    /// Name of the ClusterObjectSet.
    pub name: String,

    /// Conditions of the revision during its rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::conditions")]
    pub conditions: Option<Vec<Condition>>,
}
