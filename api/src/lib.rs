//! The `olm.operatorframework.io/v1` kinds: schema, validation rules, condition types and reasons.
//!
//! One CRD channel with every field. The Rust types are the source of the CRDs under `config/crd`
//! (`cargo xtask generate`); what the derives cannot say is added in [`schema`], in one place.
//! Optional fields are `Option`, also where the API server fills in a default: an object that came
//! from elsewhere (a test, a recorded manifest) may lack it.

#![expect(
    unreachable_pub,
    reason = "KubeSchema repeats each struct, with its visibility, inside a function"
)]

mod cluster_catalog;
mod cluster_extension;
mod cluster_object_set;
pub mod condition;
pub mod keys;
mod probe;
pub mod schema;

pub use cluster_catalog::{
    AvailabilityMode, CatalogSource, CatalogSourceType, ClusterCatalog, ClusterCatalogSpec,
    ClusterCatalogStatus, ClusterCatalogUrls, ImageSource, ResolvedCatalogSource, ResolvedImageSource,
};
pub use cluster_extension::{
    BundleMetadata, CatalogFilter, ClusterExtension, ClusterExtensionConfig, ClusterExtensionInstallConfig,
    ClusterExtensionInstallStatus, ClusterExtensionSpec, ClusterExtensionStatus, ConfigType,
    CrdUpgradeSafety, CrdUpgradeSafetyEnforcement, PreflightConfig, RevisionStatus, ServiceAccountReference,
    SourceConfig, SourceType, UpgradeConstraintPolicy,
};
pub use cluster_object_set::{
    ClusterObjectSet, ClusterObjectSetObject, ClusterObjectSetPhase, ClusterObjectSetSpec,
    ClusterObjectSetStatus, CollisionProtection, LifecycleState, ObjectSourceRef, ObservedPhase,
};
pub use probe::{
    Assertion, AssertionType, ConditionEqual, ConditionStatus, FieldValue, FieldsEqual, GroupKind,
    ObjectSelector, ProgressionProbe, SelectorType,
};
pub use schema::crds;

/// The API group of all kinds.
pub const GROUP: &str = "olm.operatorframework.io";
/// The only version of the group.
pub const VERSION: &str = "v1";
