//! APIs that Kubernetes has removed, by the first minor that does not serve them.
//!
//! Source: the deprecated API migration guide, <https://kubernetes.io/docs/reference/using-api/deprecation-guide/>.
//! Each of its sections is one block of the table. The block of 1.16 also has the removals announced in
//! <https://kubernetes.io/blog/2019/07/18/api-deprecations-in-1-16/>. The table leaves out kinds of the same group
//! and version that were never deprecated.

use super::Minor;

/// An API that Kubernetes no longer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// First minor of Kubernetes 1 that does not serve the API.
    pub in_minor: u64,
    /// Group and version.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Replacement version; empty if there is none.
    pub instead: &'static str,
}

const TABLE: &[(u64, &str, &str, &[&str])] = &[
    (
        16,
        "extensions/v1beta1",
        "apps/v1",
        &["DaemonSet", "Deployment", "ReplicaSet"],
    ),
    (
        16,
        "extensions/v1beta1",
        "networking.k8s.io/v1",
        &["NetworkPolicy"],
    ),
    (16, "extensions/v1beta1", "", &["PodSecurityPolicy"]),
    (
        16,
        "apps/v1beta1",
        "apps/v1",
        &["Deployment", "StatefulSet", "ReplicaSet"],
    ),
    (
        16,
        "apps/v1beta2",
        "apps/v1",
        &["DaemonSet", "Deployment", "StatefulSet", "ReplicaSet"],
    ),
    (
        22,
        "admissionregistration.k8s.io/v1beta1",
        "admissionregistration.k8s.io/v1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    ),
    (
        22,
        "apiextensions.k8s.io/v1beta1",
        "apiextensions.k8s.io/v1",
        &["CustomResourceDefinition"],
    ),
    (
        22,
        "apiregistration.k8s.io/v1beta1",
        "apiregistration.k8s.io/v1",
        &["APIService"],
    ),
    (
        22,
        "authentication.k8s.io/v1beta1",
        "authentication.k8s.io/v1",
        &["TokenReview"],
    ),
    (
        22,
        "authorization.k8s.io/v1beta1",
        "authorization.k8s.io/v1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    (
        22,
        "certificates.k8s.io/v1beta1",
        "certificates.k8s.io/v1",
        &["CertificateSigningRequest"],
    ),
    (
        22,
        "coordination.k8s.io/v1beta1",
        "coordination.k8s.io/v1",
        &["Lease"],
    ),
    (22, "extensions/v1beta1", "networking.k8s.io/v1", &["Ingress"]),
    (
        22,
        "networking.k8s.io/v1beta1",
        "networking.k8s.io/v1",
        &["Ingress", "IngressClass"],
    ),
    (
        22,
        "rbac.authorization.k8s.io/v1beta1",
        "rbac.authorization.k8s.io/v1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    (
        22,
        "scheduling.k8s.io/v1beta1",
        "scheduling.k8s.io/v1",
        &["PriorityClass"],
    ),
    (
        22,
        "storage.k8s.io/v1beta1",
        "storage.k8s.io/v1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    (25, "batch/v1beta1", "batch/v1", &["CronJob"]),
    (
        25,
        "discovery.k8s.io/v1beta1",
        "discovery.k8s.io/v1",
        &["EndpointSlice"],
    ),
    (25, "events.k8s.io/v1beta1", "events.k8s.io/v1", &["Event"]),
    (
        25,
        "autoscaling/v2beta1",
        "autoscaling/v2",
        &["HorizontalPodAutoscaler"],
    ),
    (25, "policy/v1beta1", "policy/v1", &["PodDisruptionBudget"]),
    (25, "policy/v1beta1", "", &["PodSecurityPolicy"]),
    (25, "node.k8s.io/v1beta1", "node.k8s.io/v1", &["RuntimeClass"]),
    (
        26,
        "autoscaling/v2beta2",
        "autoscaling/v2",
        &["HorizontalPodAutoscaler"],
    ),
    (
        26,
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "flowcontrol.apiserver.k8s.io/v1",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    (
        27,
        "storage.k8s.io/v1beta1",
        "storage.k8s.io/v1",
        &["CSIStorageCapacity"],
    ),
    (
        29,
        "flowcontrol.apiserver.k8s.io/v1beta2",
        "flowcontrol.apiserver.k8s.io/v1",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    (
        32,
        "flowcontrol.apiserver.k8s.io/v1beta3",
        "flowcontrol.apiserver.k8s.io/v1",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
];

/// Returns the removal of an API that Kubernetes `at` no longer serves; `None` for a served or unknown API.
#[must_use]
pub fn removed(api_version: &str, kind: &str, at: Minor) -> Option<Removed> {
    let row = TABLE
        .iter()
        .find(|(_, version, _, kinds)| *version == api_version && kinds.contains(&kind));
    let (in_minor, api_version, instead, kinds) = row?;
    let kind = kinds.iter().find(|known| **known == kind)?;
    (at.is_kubernetes() && at.minor >= *in_minor).then_some(Removed {
        in_minor: *in_minor,
        api_version,
        kind,
        instead,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minor: u64, api_version: &str, kind: &str) -> Option<&'static str> {
        let minor = Minor { major: 1, minor };
        removed(api_version, kind, minor).map(|removed| removed.instead)
    }

    #[test]
    fn an_api_is_removed_from_its_minor_on() {
        assert_eq!(at(24, "policy/v1beta1", "PodDisruptionBudget"), None);
        assert_eq!(at(25, "policy/v1beta1", "PodDisruptionBudget"), Some("policy/v1"));
        assert_eq!(at(36, "policy/v1beta1", "PodSecurityPolicy"), Some(""));
        assert_eq!(at(36, "policy/v1", "PodDisruptionBudget"), None);
        assert_eq!(at(26, "storage.k8s.io/v1beta1", "CSIStorageCapacity"), None);
        assert_eq!(at(21, "extensions/v1beta1", "Ingress"), None);
        assert_eq!(at(21, "extensions/v1beta1", "Deployment"), Some("apps/v1"));
    }

    #[test]
    fn each_api_is_in_the_table_once() {
        let mut all: Vec<_> = TABLE
            .iter()
            .flat_map(|(_, version, _, kinds)| kinds.iter().map(move |kind| (version, kind)))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
