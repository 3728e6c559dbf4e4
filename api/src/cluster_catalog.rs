//! ClusterCatalog: a catalog image that is unpacked and served in the cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{parts, reference, rules};

/// Desired state of a ClusterCatalog.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "olm.operatorframework.io",
    version = "v1",
    kind = "ClusterCatalog",
    plural = "clustercatalogs",
    singular = "clustercatalog",
    doc = "ClusterCatalog makes the content of a catalog image available to the cluster.",
    status = "ClusterCatalogStatus",
    derive = "Default",
    derive = "PartialEq",
    annotation("olm.operatorframework.io/generator", "experimental"),
    printcolumn = r#"{"name": "LastUnpacked", "type": "date", "jsonPath": ".status.lastUnpacked"}"#,
    printcolumn = r#"{"name": "Serving", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Serving\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCatalogSpec {
    /// Source of the catalog.
    pub source: CatalogSource,

    /// Priority among catalogs that offer the same package: the higher number wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2_147_483_648_i64, max = 2_147_483_647), extend("default" = 0))]
    pub priority: Option<i32>,

    /// Availability of the content: `Available` serves it, `Unavailable` keeps the catalog without serving it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Available"))]
    pub availability_mode: Option<AvailabilityMode>,
}

/// Availability of a catalog's content.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AvailabilityMode {
    /// The content is not served.
    Unavailable,
    /// The content is served.
    #[default]
    Available,
}

/// Source of a catalog: one member for each source type.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::catalog_source_union())]
pub struct CatalogSource {
    /// Kind of source.
    #[serde(rename = "type")]
    pub type_: CatalogSourceType,

    /// The catalog image; required if `type` is `Image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
}

/// Kinds of catalog source.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CatalogSourceType {
    /// A container image.
    #[default]
    Image,
}

/// A catalog image.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "self.ref.find('(@.*:)') != \"\" ? !has(self.pollIntervalMinutes) : true"
).message("cannot specify pollIntervalMinutes while using digest-based image"))]
pub struct ImageSource {
    /// Reference of the image, with its registry, by tag or by digest.
    #[serde(rename = "ref")]
    #[schemars(schema_with = "reference::by_tag_or_digest")]
    pub ref_: String,

    /// Minutes between checks of the registry for new content of a tag. If absent, the registry is checked only when
    /// this object changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::poll_interval")]
    pub poll_interval_minutes: Option<i64>,
}

/// Observed state of a ClusterCatalog.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCatalogStatus {
    /// Generation that this status describes; -1 before the first reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Serving, Progressing, and for tools Ready, Reconciling and Stalled. Set by catalogd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::conditions")]
    pub conditions: Option<Vec<Condition>>,

    /// Source that the served content was unpacked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_source: Option<ResolvedCatalogSource>,

    /// URLs of the served content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<ClusterCatalogUrls>,

    /// Time at which the content was last unpacked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::timestamp")]
    pub last_unpacked: Option<Time>,

    /// Checks of the registry: the last one, its result, and the time of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<CatalogPoll>,
}

/// Checks of the registry for new content of a catalog.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct CatalogPoll {
    /// Reference of the image: that of the spec, or what the annotation `olm.catalogImageTemplate` gives for the cluster's version.
    #[schemars(length(max = 1000))]
    pub image: String,

    /// Time of the last check.
    #[schemars(schema_with = "parts::timestamp")]
    pub last_time: Time,

    /// Result of the last check.
    pub result: CatalogPollResult,

    /// Time of the next check. Absent if the registry is checked only when the catalog changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parts::timestamp")]
    pub next_time: Option<Time>,
}

/// Results of a check of the registry.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CatalogPollResult {
    /// The image has the same digest as the stored content.
    #[default]
    Unchanged,
    /// New content was stored.
    Stored,
    /// The check, the pull or the storage failed; Progressing has the cause.
    Failed,
}

/// Source that served content was unpacked from.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::catalog_source_union())]
pub struct ResolvedCatalogSource {
    /// Kind of source.
    #[serde(rename = "type")]
    pub type_: CatalogSourceType,

    /// The image, by digest.
    pub image: ResolvedImageSource,
}

/// An image by digest.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedImageSource {
    /// Reference of the image, by digest.
    #[serde(rename = "ref")]
    #[schemars(schema_with = "reference::by_digest")]
    pub ref_: String,
}

/// Addresses of served content.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCatalogUrls {
    /// Address in the cluster that the paths of the content API are relative to, such as `/api/v1/all`.
    #[schemars(length(max = 525))]
    #[x_kube(
        validation = Rule::new("isURL(self)").message("must be a valid URL"),
        validation = Rule::new(
            "isURL(self) ? (url(self).getScheme() == \"http\" || url(self).getScheme() == \"https\") : true"
        ).message("scheme must be either http or https")
    )]
    pub base: String,
}
