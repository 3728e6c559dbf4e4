//! Which gates there are: their names, whose they are, how settled, and what holds when nobody says anything.

/// A behaviour that can be switched.
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
    /// Catalogs are chosen between as upstream does; see docs/deviations.md. Ours alone.
    UpstreamCatalogSelection,
    /// Changes of CRDs are refused as upstream does; see docs/deviations.md. Ours alone.
    UpstreamCrdUpgradeSafety,
}

/// Whose command line a gate belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The catalog content service.
    Catalogd,
    /// The extension manager.
    OperatorController,
}

impl Binary {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Catalogd => "catalogd",
            Self::OperatorController => "operator-controller",
        }
    }
}

/// How settled a behaviour is, as Kubernetes names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// May change or go.
    Alpha,
    /// Here to stay.
    Ga,
}

/// What is known of a gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// The behaviour.
    pub feature: Feature,
    /// The name on the command line, upstream's.
    pub name: &'static str,
    /// Whose it is.
    pub binary: Binary,
    /// Upstream's stage.
    pub stage: Stage,
    /// What holds when nobody says anything.
    pub default: bool,
    /// The behaviour is part of this product and always on: the gate is taken, and `false` changes nothing.
    pub fixed: bool,
}

/// Gates of earlier versions of operator-controller: taken, without effect, because manifests rendered for them are around.
pub(super) const RETIRED: [&str; 3] = ["PreflightPermissions", "SyntheticPermissions", "HelmChartSupport"];

/// Every gate. Where the default is not upstream's, docs/deviations.md says so.
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
    alpha(Feature::BoxcutterRuntime, "BoxcutterRuntime").fixed(),
    alpha(Feature::DeploymentConfig, "DeploymentConfig").on(),
    alpha(Feature::BundleReleaseSupport, "BundleReleaseSupport"),
    alpha(Feature::ApiV1MetasHandler, "APIV1MetasHandler")
        .catalogd()
        .fixed(),
    alpha(Feature::GraphQlCatalogQueries, "GraphQLCatalogQueries").catalogd(),
    alpha(Feature::UpstreamCatalogSelection, "UpstreamCatalogSelection"),
    alpha(Feature::UpstreamCrdUpgradeSafety, "UpstreamCRDUpgradeSafety"),
];

/// A gate of operator-controller that is off.
const fn alpha(feature: Feature, name: &'static str) -> Gate {
    Gate {
        feature,
        name,
        binary: Binary::OperatorController,
        stage: Stage::Alpha,
        default: false,
        fixed: false,
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

    const fn fixed(mut self) -> Self {
        self.fixed = true;
        self.on()
    }

    const fn catalogd(mut self) -> Self {
        self.binary = Binary::Catalogd;
        self
    }

    /// The gate of a behaviour.
    pub(super) fn of(feature: Feature) -> Option<&'static Self> {
        GATES.iter().find(|gate| gate.feature == feature)
    }
}
