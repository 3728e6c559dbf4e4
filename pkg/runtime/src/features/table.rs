//! Feature gates: name, binary, stage, default.

/// A switchable feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Accept bundles that do not support watching all namespaces.
    SingleOwnNamespaceInstallSupport,
    /// Webhook certificates come from cert-manager.
    WebhookProviderCertManager,
    /// Webhook certificates come from `OpenShift`'s service CA.
    WebhookProviderOpenshiftServiceCa,
    /// Revisions are `ClusterObjectSet` objects.
    BoxcutterRuntime,
    /// `spec.config.inline.deploymentConfig` is honoured.
    DeploymentConfig,
    /// Bundles may carry an explicit release.
    BundleReleaseSupport,
    /// catalogd answers `/api/v1/metas`.
    ApiV1MetasHandler,
    /// catalogd answers `/api/v1/graphql`.
    GraphQlCatalogQueries,
    /// Catalogs are selected as upstream does; see docs/deviations.md. Not a gate of upstream.
    UpstreamCatalogSelection,
    /// Changes of CRDs are refused as upstream does; see docs/deviations.md. Not a gate of upstream.
    UpstreamCrdUpgradeSafety,
}

/// Binary that a gate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The catalog content service.
    Catalogd,
    /// The extension manager.
    OperatorController,
}

impl Binary {
    /// Returns the name of the executable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd",
            Self::OperatorController => "operator-controller",
        }
    }
}

/// Feature stage, as in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The feature may change or be removed.
    Alpha,
    /// The feature is stable.
    Ga,
}

/// Properties of a feature gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// Feature.
    pub feature: Feature,
    /// Name on the command line, upstream's.
    pub name: &'static str,
    /// Binary that the gate belongs to.
    pub binary: Binary,
    /// Upstream's stage.
    pub stage: Stage,
    /// Default value.
    pub default: bool,
    /// The feature is always enabled: the gate is accepted, and `false` has no effect.
    pub locked: bool,
}

/// Gates of earlier versions of operator-controller: accepted without effect, because existing manifests set them.
pub(super) const RETIRED: [&str; 3] = ["PreflightPermissions", "SyntheticPermissions", "HelmChartSupport"];

/// Feature gates. docs/deviations.md lists the defaults that differ from upstream's.
pub const GATES: [Gate; 10] = [
    alpha(
        Feature::SingleOwnNamespaceInstallSupport,
        "SingleOwnNamespaceInstallSupport",
    )
    .on(),
    alpha(Feature::WebhookProviderCertManager, "WebhookProviderCertManager").ga(),
    alpha(
        Feature::WebhookProviderOpenshiftServiceCa,
        "WebhookProviderOpenshiftServiceCA",
    )
    .ga(),
    alpha(Feature::BoxcutterRuntime, "BoxcutterRuntime").locked(),
    alpha(Feature::DeploymentConfig, "DeploymentConfig").on(),
    alpha(Feature::BundleReleaseSupport, "BundleReleaseSupport"),
    alpha(Feature::ApiV1MetasHandler, "APIV1MetasHandler")
        .catalogd()
        .locked(),
    alpha(Feature::GraphQlCatalogQueries, "GraphQLCatalogQueries")
        .catalogd()
        .on(),
    alpha(Feature::UpstreamCatalogSelection, "UpstreamCatalogSelection"),
    alpha(Feature::UpstreamCrdUpgradeSafety, "UpstreamCRDUpgradeSafety"),
];

/// Returns an alpha gate of operator-controller that is off.
const fn alpha(feature: Feature, name: &'static str) -> Gate {
    Gate {
        feature,
        name,
        binary: Binary::OperatorController,
        stage: Stage::Alpha,
        default: false,
        locked: false,
    }
}

impl Gate {
    const fn on(mut self) -> Self {
        self.default = true;
        self
    }

    const fn ga(mut self) -> Self {
        self.stage = Stage::Ga;
        self.on()
    }

    const fn locked(mut self) -> Self {
        self.locked = true;
        self.on()
    }

    const fn catalogd(mut self) -> Self {
        self.binary = Binary::Catalogd;
        self
    }

    /// Returns the gate of a feature.
    pub(super) fn for_feature(feature: Feature) -> Option<&'static Self> {
        GATES.iter().find(|gate| gate.feature == feature)
    }
}
