//! Tested operators, with versions and configuration.

/// Test plan of one operator.
pub(crate) struct Plan {
    /// Package in the catalog.
    pub(crate) package: &'static str,
    /// Versions; each one after the first is an edge of the catalog's graph.
    pub(crate) versions: &'static [&'static str],
    /// Install mode.
    pub(crate) watch: Watch,
    /// Disables CRD upgrade safety: upstream refuses one of the upgrades as well.
    pub(crate) unsafe_crds: bool,
}

/// Install mode of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// AllNamespaces, without configuration.
    All,
    /// The install namespace.
    Own,
    /// Another namespace.
    Single,
}

const fn plan(package: &'static str, versions: &'static [&'static str], watch: Watch) -> Plan {
    Plan {
        package,
        versions,
        watch,
        unsafe_crds: false,
    }
}

/// Returns a plan for a graph whose CRDs lose fields, which the strict check refuses.
const fn unsafe_crds(package: &'static str, versions: &'static [&'static str]) -> Plan {
    Plan {
        package,
        versions,
        watch: Watch::All,
        unsafe_crds: true,
    }
}

/// Operators with up to three consecutive versions each, then other shapes: install modes, several deployments,
/// webhooks.
pub(crate) const PLANS: [Plan; 16] = [
    unsafe_crds("argocd-operator", &["0.16.0", "0.17.0", "0.18.0"]),
    plan(
        "rabbitmq-cluster-operator",
        &["2.22.1", "2.22.2", "2.22.3"],
        Watch::All,
    ),
    unsafe_crds("strimzi-kafka-operator", &["1.0.1", "1.1.0", "1.2.0"]),
    plan("cert-utils-operator", &["1.3.12"], Watch::All),
    plan("external-secrets-operator", &["0.11.0"], Watch::All),
    plan("grafana-operator", &["5.24.0"], Watch::All),
    plan("opentelemetry-operator", &["0.158.0"], Watch::All),
    plan("prometheus-exporter-operator", &["0.7.0"], Watch::Single),
    plan("shipwright-operator", &["0.15.2"], Watch::All),
    plan("tempo-operator", &["0.22.0"], Watch::All),
    plan("konveyor-operator", &["0.1.1"], Watch::Own),
    plan("percona-xtradb-cluster-operator", &["1.9.0"], Watch::Single),
    plan("patterns-operator", &["0.0.73"], Watch::Own),
    plan("node-maintenance-operator", &["0.12.1"], Watch::All),
    plan("service-binding-operator", &["0.10.0"], Watch::All),
    plan("ack-rds-controller", &["1.4.11"], Watch::Own),
];
