//! Kinds of the objects in scenarios.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};

/// A kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(
    /// Group; empty for the core group.
    pub &'static str,
    /// Version.
    pub &'static str,
    /// Kind.
    pub &'static str,
    /// Plural.
    pub &'static str,
    /// True for a namespaced kind.
    pub bool,
);

/// ClusterExtension.
pub const EXTENSION: Kind = Kind(
    "olm.operatorframework.io",
    "v1",
    "ClusterExtension",
    "clusterextensions",
    false,
);
/// ClusterCatalog.
pub const CATALOG: Kind = Kind(
    "olm.operatorframework.io",
    "v1",
    "ClusterCatalog",
    "clustercatalogs",
    false,
);
/// ClusterObjectSet.
pub const REVISION: Kind = Kind(
    "olm.operatorframework.io",
    "v1",
    "ClusterObjectSet",
    "clusterobjectsets",
    false,
);
/// CustomResourceDefinition.
pub const CRD: Kind = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    false,
);
/// `ClusterRole`.
pub const CLUSTER_ROLE: Kind = Kind(
    "rbac.authorization.k8s.io",
    "v1",
    "ClusterRole",
    "clusterroles",
    false,
);
/// `ClusterRoleBinding`.
pub const CLUSTER_ROLE_BINDING: Kind = Kind(
    "rbac.authorization.k8s.io",
    "v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
    false,
);
/// Namespace.
pub const NAMESPACE: Kind = Kind("", "v1", "Namespace", "namespaces", false);
/// `ConfigMap`.
pub const CONFIG_MAP: Kind = Kind("", "v1", "ConfigMap", "configmaps", true);
/// Secret.
pub const SECRET: Kind = Kind("", "v1", "Secret", "secrets", true);
/// `ServiceAccount`.
pub const SERVICE_ACCOUNT: Kind = Kind("", "v1", "ServiceAccount", "serviceaccounts", true);
/// Deployment.
pub const DEPLOYMENT: Kind = Kind("apps", "v1", "Deployment", "deployments", true);
/// Event, in the API group that controllers use.
pub const EVENT: Kind = Kind("events.k8s.io", "v1", "Event", "events", true);

/// All kinds above.
pub const ALL: [Kind; 12] = [
    EXTENSION,
    CATALOG,
    REVISION,
    CRD,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    DEPLOYMENT,
    EVENT,
];

impl Kind {
    /// Returns the resource for requests of the client.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        let Self(group, version, kind, plural, _) = self;
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// Returns the API of the kind; `namespace` matters only for a namespaced kind.
    #[must_use]
    pub fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.4 {
            Api::namespaced_with(client.clone(), namespace, &self.resource())
        } else {
            Api::all_with(client.clone(), &self.resource())
        }
    }

    /// Returns the API of all objects of the kind, in all namespaces.
    #[must_use]
    pub fn all(self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }

    /// Returns the name of the kind, such as `Deployment`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.2
    }

    /// Returns the `apiVersion` of the kind.
    #[must_use]
    pub fn api_version(self) -> String {
        self.resource().api_version
    }
}
