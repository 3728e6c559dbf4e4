//! Model of a bundle for rendering: the CSV's relevant fields, and unchanged manifests.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// A parsed registry+v1 bundle.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub(crate) package: String,
    pub(crate) csv: Csv,
    /// CRDs in the order of their files, shaped like `apiextensions.k8s.io/v1`.
    pub(crate) crds: Vec<Value>,
    /// Other objects of `manifests`, unchanged.
    pub(crate) other_manifests: Vec<Value>,
}

impl Bundle {
    /// Returns the name of the `ClusterServiceVersion`, which is the name of the bundle in a catalog.
    pub fn csv_name(&self) -> &str {
        &self.csv.name
    }

    /// Returns `spec.version` of the CSV as a semantic version; empty if the CSV has none.
    pub fn version(&self) -> &str {
        &self.csv.version
    }

    /// Returns `spec.minKubeVersion` of the CSV, the lowest version of Kubernetes that the bundle supports, as written.
    pub fn min_kube_version(&self) -> Option<&str> {
        self.csv.min_kube_version.as_deref()
    }

    /// Returns the package of the bundle; empty if its annotations name none.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Returns the CSV's `olm.properties` annotation, with the entries of `metadata/properties.yaml` appended:
    /// a JSON list of `{"type","value"}`.
    pub fn properties_annotation(&self) -> Option<String> {
        self.csv.annotations.get(PROPERTIES_ANNOTATION).cloned()
    }

    /// Returns an annotation of the CSV.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.csv.annotations.get(key).map(String::as_str)
    }

    /// Returns the install modes that the bundle supports, in a fixed order.
    pub fn install_modes(&self) -> Vec<InstallMode> {
        InstallMode::ALL
            .into_iter()
            .filter(|mode| self.supports(*mode))
            .collect()
    }

    /// Returns true if `mode` is supported. If a mode is listed twice, any `true` counts.
    pub fn supports(&self, mode: InstallMode) -> bool {
        self.csv
            .install_modes
            .iter()
            .any(|(name, on)| *on && name == mode.as_str())
    }

    /// Returns true if the bundle serves webhooks of any type.
    pub fn has_webhooks(&self) -> bool {
        !self.csv.webhooks.is_empty()
    }

    /// Returns true if deployments of the bundle serve groups and versions of the Kubernetes API.
    pub fn has_api_services(&self) -> bool {
        !self.csv.api_services.is_empty()
    }
}

/// Annotation of a CSV that holds its properties.
pub(crate) const PROPERTIES_ANNOTATION: &str = "olm.properties";

/// Install mode: the namespaces that an operator can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallMode {
    /// The operator watches all namespaces.
    AllNamespaces,
    /// The operator watches the namespaces of `watchNamespaces`.
    MultiNamespace,
    /// The operator watches its own namespace.
    OwnNamespace,
    /// The operator watches one namespace other than its own.
    SingleNamespace,
}

impl InstallMode {
    /// The modes, in the order in which messages name them.
    pub const ALL: [Self; 4] = [
        Self::AllNamespaces,
        Self::MultiNamespace,
        Self::OwnNamespace,
        Self::SingleNamespace,
    ];

    /// The name in a CSV.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllNamespaces => "AllNamespaces",
            Self::MultiNamespace => "MultiNamespace",
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
        }
    }
}

impl fmt::Display for InstallMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The fields of a CSV that rendering uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Csv {
    pub name: String,
    pub annotations: BTreeMap<String, String>,
    pub version: String,
    /// `spec.minKubeVersion`; `None` if it is absent or empty.
    pub min_kube_version: Option<String>,
    /// Names as text: real bundles have unknown ones, which have no effect.
    pub install_modes: Vec<(String, bool)>,
    pub owned_crds: Vec<String>,
    /// `spec.apiservicedefinitions.owned`.
    pub api_services: Vec<ApiService>,
    pub deployments: Vec<StrategyDeployment>,
    pub permissions: Vec<Permission>,
    pub cluster_permissions: Vec<Permission>,
    pub webhooks: Vec<Webhook>,
}

/// A deployment of the install strategy.
#[derive(Clone, Debug)]
pub(crate) struct StrategyDeployment {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// A complete `apps/v1` `DeploymentSpec`.
    pub spec: Value,
}

/// Rights of a service account.
#[derive(Clone, Debug)]
pub(crate) struct Permission {
    pub service_account: String,
    /// `None` if the field is absent, which leads to another object name than an empty list.
    pub rules: Option<Vec<Rule>>,
}

/// RBAC rule; absent and empty lists are equal, except for the verbs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub verbs: Option<Vec<String>>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Returns every list but the verbs by its key, in the order in which Go writes them.
    pub(crate) fn lists(&self) -> [(&'static str, &[String]); 4] {
        [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ]
    }
}

/// A kind of the Kubernetes API that a deployment of the bundle serves, behind the API server's aggregation layer.
#[derive(Clone, Debug)]
pub(crate) struct ApiService {
    pub group: String,
    pub version: String,
    pub deployment: String,
    /// Port of the container; 0 or less means the default.
    pub container_port: i64,
}

impl ApiService {
    /// Returns the name of the `APIService` object, which all kinds of a group and version share.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    /// Returns the port of the Service and of the container.
    pub(crate) fn port(&self) -> i64 {
        service_port(self.container_port)
    }
}

/// Returns the port of a Service for the `containerPort` of a webhook or an API service: that of HTTPS if it names none.
pub(crate) fn service_port(container_port: i64) -> i64 {
    if container_port > 0 { container_port } else { 443 }
}

/// The three kinds of webhook a CSV can define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WebhookType {
    Conversion,
    Mutating,
    Validating,
}

impl WebhookType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Conversion => "ConversionWebhook",
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Validating => "ValidatingAdmissionWebhook",
        }
    }
}

/// A webhook definition.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    /// `None` for an unknown type: such a definition still needs certificates but renders nothing else.
    pub kind: Option<WebhookType>,
    pub type_name: String,
    pub generate_name: String,
    pub deployment: String,
    pub container_port: i64,
    pub target_port: Option<Value>,
    pub path: Option<String>,
    pub conversion_crds: Vec<String>,
    pub admission_review_versions: Option<Vec<String>>,
    pub rules: Vec<WebhookRule>,
    /// The fields copied unchanged into the configuration: failurePolicy, matchPolicy,
    /// objectSelector, sideEffects, timeoutSeconds, reinvocationPolicy.
    pub copied: serde_json::Map<String, Value>,
}

/// Requests for which an admission webhook is called; `value` is the rule as it is written.
#[derive(Clone, Debug)]
pub(crate) struct WebhookRule {
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub value: Value,
}
