//! Kinds that the API server serves.

use std::sync::LazyLock;

use crate::types::{Type, builtin};

/// Resource of a version of a group.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub namespaced: bool,
    /// True if status is a subresource.
    pub status: bool,
    pub traits: Traits,
    pub fields: Type,
}

/// Differences between kinds in writes.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of a kind's storage"
)]
pub(crate) struct Traits {
    /// An update of an object that does not exist creates it.
    pub create_on_update: bool,
    /// An update needs no resource version.
    pub unconditional: bool,
    /// The API server counts generations.
    pub generation: bool,
    /// The answer to a deletion is the deleted object.
    pub returns_deleted: bool,
    /// The object is not stored: a review.
    pub review: bool,
    /// The kind is defined by a CRD.
    pub custom: bool,
}

impl Resource {
    /// Returns `PLURAL.GROUP`, or the plural of the core group.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns `GROUP/VERSION`, or the version of the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns true for a built-in kind of this group and kind.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        !self.traits.custom && self.group == group && self.kind == kind
    }
}

const CREATES: u8 = 1;
const UNCONDITIONAL: u8 = 2;
const GENERATION: u8 = 4;
const RETURNS: u8 = 8;
const REVIEW: u8 = 16;
const STATUS: u8 = 32;
const NAMESPACED: u8 = 64;

/// Group, version, kind, plural, short names, properties.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u8,
);

const ROWS: &[Row] = &[
    (
        "",
        "v1",
        "ConfigMap",
        "configmaps",
        "cm",
        NAMESPACED | UNCONDITIONAL,
    ),
    (
        "",
        "v1",
        "Event",
        "events",
        "ev",
        NAMESPACED | UNCONDITIONAL | CREATES,
    ),
    (
        "",
        "v1",
        "Namespace",
        "namespaces",
        "ns",
        UNCONDITIONAL | STATUS | RETURNS,
    ),
    (
        "",
        "v1",
        "Pod",
        "pods",
        "po",
        NAMESPACED | UNCONDITIONAL | STATUS | GENERATION | RETURNS,
    ),
    ("", "v1", "Secret", "secrets", "", NAMESPACED | UNCONDITIONAL),
    (
        "",
        "v1",
        "Service",
        "services",
        "svc",
        NAMESPACED | UNCONDITIONAL | STATUS | RETURNS | CREATES,
    ),
    (
        "",
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        "sa",
        NAMESPACED | UNCONDITIONAL | RETURNS,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "",
        GENERATION,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "",
        GENERATION,
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd,crds",
        STATUS | GENERATION | RETURNS,
    ),
    (
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        "apiservices",
        "",
        STATUS,
    ),
    (
        "apps",
        "v1",
        "Deployment",
        "deployments",
        "deploy",
        NAMESPACED | STATUS | UNCONDITIONAL | GENERATION,
    ),
    (
        "authentication.k8s.io",
        "v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
        "",
        REVIEW,
    ),
    (
        "authorization.k8s.io",
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "",
        REVIEW | NAMESPACED,
    ),
    (
        "authorization.k8s.io",
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "",
        REVIEW,
    ),
    (
        "authorization.k8s.io",
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "",
        REVIEW,
    ),
    (
        "authorization.k8s.io",
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        "",
        REVIEW,
    ),
    (
        "authentication.k8s.io",
        "v1",
        "TokenReview",
        "tokenreviews",
        "",
        REVIEW,
    ),
    (
        "coordination.k8s.io",
        "v1",
        "Lease",
        "leases",
        "",
        NAMESPACED | CREATES,
    ),
    (
        "events.k8s.io",
        "v1",
        "Event",
        "events",
        "ev",
        NAMESPACED | UNCONDITIONAL | CREATES,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRole",
        "clusterroles",
        "",
        UNCONDITIONAL | CREATES,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "",
        UNCONDITIONAL | CREATES,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        "roles",
        "",
        NAMESPACED | UNCONDITIONAL | CREATES,
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        "",
        NAMESPACED | UNCONDITIONAL | CREATES,
    ),
];

static BUILTIN: LazyLock<Vec<Resource>> = LazyLock::new(|| ROWS.iter().map(resource).collect());

/// Returns the built-in kinds.
pub(crate) fn builtin_resources() -> &'static [Resource] {
    &BUILTIN
}

/// Returns the resource of a CRD.
pub(crate) fn crd_resource() -> &'static Resource {
    by_kind("CustomResourceDefinition")
}

/// Returns the resource of namespaces.
pub(crate) fn namespace_resource() -> &'static Resource {
    by_kind("Namespace")
}

fn by_kind(kind: &str) -> &'static Resource {
    // Every kind that is asked for is in the table.
    BUILTIN
        .iter()
        .find(|resource| resource.kind == kind)
        .unwrap_or(&BUILTIN[0])
}

fn resource(row: &Row) -> Resource {
    let (group, version, kind, plural, short, flags) = *row;
    let has = |flag: u8| flags & flag != 0;
    Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        short_names: short
            .split(',')
            .filter(|name| !name.is_empty())
            .map(Into::into)
            .collect(),
        namespaced: has(NAMESPACED),
        status: has(STATUS),
        traits: Traits {
            create_on_update: has(CREATES),
            unconditional: has(UNCONDITIONAL),
            generation: has(GENERATION),
            returns_deleted: has(RETURNS),
            review: has(REVIEW),
            custom: false,
        },
        fields: builtin().kind(group, version, kind),
    }
}
