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

mod absent;
mod cluster_catalog;
#[allow(
    dead_code,
    reason = "KubeSchema repeats each field in a struct that is only described; the lint comes and goes"
)]
mod cluster_extension;
#[allow(
    dead_code,
    reason = "KubeSchema repeats each field in a struct that is only described; the lint comes and goes"
)]
mod cluster_object_set;
pub mod condition;
mod deletion;
pub mod event;
pub mod keys;
pub mod names;
mod probe;
pub mod rollback;
#[allow(
    dead_code,
    reason = "KubeSchema repeats each field in a struct that is only described; the lint comes and goes"
)]
mod rollout;
pub mod schema;
mod texts;
mod upgrade;

pub use cluster_catalog::{
    AvailabilityMode, CatalogPoll, CatalogPollResult, CatalogSource, CatalogSourceType, ClusterCatalog,
    ClusterCatalogSpec, ClusterCatalogStatus, ClusterCatalogUrls, ImageSource, ResolvedCatalogSource,
    ResolvedImageSource,
};
pub use cluster_extension::{
    BundleMetadata, CatalogFilter, ClusterExtension, ClusterExtensionConfig, ClusterExtensionInstallConfig,
    ClusterExtensionInstallStatus, ClusterExtensionSpec, ClusterExtensionStatus, ConfigType,
    CrdStoredObjects, CrdUpgradeRule, CrdUpgradeSafety, CrdUpgradeSafetyEnforcement, CrdUpgradeWaiver,
    PreflightConfig, RevisionStatus, ServiceAccountReference, SourceConfig, SourceType,
    UpgradeConstraintPolicy,
};
pub use cluster_object_set::{
    ClusterObjectSet, ClusterObjectSetObject, ClusterObjectSetPhase, ClusterObjectSetSpec,
    ClusterObjectSetStatus, CollisionProtection, LifecycleState, ObjectSourceRef, ObservedPhase,
};
pub use deletion::{CustomResourcePolicy, DeletionConfig, UnknownPolicy};
pub use probe::{
    Assertion, AssertionType, CelExpression, ConditionEqual, ConditionStatus, FieldValue, FieldsEqual,
    GroupKind, ObjectSelector, ProgressionProbe, SelectorType,
};
pub use rollout::{
    ApprovalCause, ApprovalTrigger, AutomaticUpgrades, FailurePolicy, JointPlanMember, PendingObjects,
    PendingPlan, RolloutApproval, RolloutConfig, RolloutStatus, RolloutWindow, WindowState,
};
pub use schema::crds;
pub use upgrade::AvailableUpgrade;

/// The API group of all kinds.
pub const GROUP: &str = "olm.operatorframework.io";
/// The only version of the group.
pub const VERSION: &str = "v1";
/// `apiVersion` of all kinds.
pub const API_VERSION: &str = "olm.operatorframework.io/v1";

#[cfg(test)]
mod tests {
    use super::{ClusterExtension, ClusterObjectSet, crds};
    use serde_json::json;

    /// Upstream's columns of `kubectl get` come first and in their order, and after them only those that are named as ours.
    #[test]
    fn upstreams_columns_are_printed_in_their_order() {
        let wanted: [(&str, &[&str], &[&str]); 3] = [
            ("clustercatalogs", &["LastUnpacked", "Serving", "Age"], &[]),
            (
                "clusterextensions",
                &["Installed Bundle", "Version", "Installed", "Progressing", "Age"],
                &["Ready", "Update", "Catalog"],
            ),
            ("clusterobjectsets", &["Available", "Progressing", "Age"], &[]),
        ];
        for (plural, upstream, ours) in wanted {
            let all = crds();
            let crd = all.iter().find(|crd| crd.spec.names.plural == plural).unwrap();
            let columns = crd.spec.versions[0].additional_printer_columns.as_ref().unwrap();
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names.split_at(upstream.len()), (upstream, ours), "{plural}");
            let wide = columns.iter().filter(|column| column.priority == Some(1));
            assert!(
                wide.map(|column| column.name.as_str())
                    .eq(ours.iter().skip(1).copied()),
                "{plural}"
            );
            for column in columns.iter().filter(|column| column.name == "Ready") {
                assert_eq!(column.json_path, ".status.conditions[?(@.type=='Ready')].status");
            }
        }
    }

    #[test]
    fn an_absent_spec_reads_as_the_default() {
        let empty = json!({"apiVersion": "olm.operatorframework.io/v1", "metadata": {"name": "x"}});
        let extension: ClusterExtension = serde_json::from_value(empty.clone()).unwrap();
        assert_eq!(extension.spec.source.catalog, None);
        let revision: ClusterObjectSet = serde_json::from_value(empty).unwrap();
        assert_eq!(revision.spec.phases, None);
    }

    #[test]
    fn a_spec_reads_back_as_it_was_written() {
        let given = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "x"},
            "spec": {"namespace": "n", "progressDeadlineMinutes": 10,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "p", "channels": ["a"]}},
                "config": {"configType": "Inline", "inline": {"watchNamespace": "w"}}},
        });
        let extension: ClusterExtension = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(serde_json::to_value(&extension).unwrap(), given);
        let wrong = json!({"metadata": {}, "spec": {"namespace": 1}});
        assert!(serde_json::from_value::<ClusterExtension>(wrong).is_err());
    }
}
