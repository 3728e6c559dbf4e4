//! Order of the phases, and the phase of each kind.

const CORE: &str = "";
const RBAC: &str = "rbac.authorization.k8s.io";
const OPENSHIFT_CONSOLE: &str = "console.openshift.io";

/// Names and kinds of the phases in the order of their application; `deploy` also has every unlisted kind.
const PHASES: &[(&str, &[(&str, &str)])] = &[
    ("namespaces", &[(CORE, "Namespace")]),
    (
        "policies",
        &[
            ("networking.k8s.io", "NetworkPolicy"),
            ("policy", "PodDisruptionBudget"),
            ("scheduling.k8s.io", "PriorityClass"),
        ],
    ),
    ("identity", &[(CORE, "ServiceAccount")]),
    ("configuration", &[(CORE, "Secret"), (CORE, "ConfigMap")]),
    (
        "storage",
        &[
            (CORE, "PersistentVolume"),
            (CORE, "PersistentVolumeClaim"),
            ("storage.k8s.io", "StorageClass"),
        ],
    ),
    ("crds", &[("apiextensions.k8s.io", "CustomResourceDefinition")]),
    ("roles", &[(RBAC, "ClusterRole"), (RBAC, "Role")]),
    ("bindings", &[(RBAC, "ClusterRoleBinding"), (RBAC, "RoleBinding")]),
    (
        "infrastructure",
        &[
            (CORE, "Service"),
            ("cert-manager.io", "Issuer"),
            ("cert-manager.io", "Certificate"),
        ],
    ),
    (DEPLOY, &[("apps", "Deployment")]),
    ("scaling", &[("autoscaling.k8s.io", "VerticalPodAutoscaler")]),
    (
        "publish",
        &[
            ("apiregistration.k8s.io", "APIService"),
            ("monitoring.coreos.com", "PrometheusRule"),
            ("monitoring.coreos.com", "ServiceMonitor"),
            ("monitoring.coreos.com", "PodMonitor"),
            ("networking.k8s.io", "Ingress"),
            ("route.openshift.io", "Route"),
            (OPENSHIFT_CONSOLE, "ConsoleYAMLSample"),
            (OPENSHIFT_CONSOLE, "ConsoleQuickStart"),
            (OPENSHIFT_CONSOLE, "ConsoleCLIDownload"),
            (OPENSHIFT_CONSOLE, "ConsoleLink"),
            (OPENSHIFT_CONSOLE, "ConsolePlugin"),
        ],
    ),
    (
        "admission",
        &[
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ],
    ),
];

const DEPLOY: &str = "deploy";

/// Returns the index of the phase of a kind.
pub(super) fn phase_of(group: &str, kind: &str) -> usize {
    let listed = PHASES
        .iter()
        .position(|(_, kinds)| kinds.contains(&(group, kind)));
    listed
        .or_else(|| PHASES.iter().position(|(name, _)| *name == DEPLOY))
        .unwrap_or_default()
}

/// Returns the name of the phase at an index of [`phase_of`].
pub(super) fn name_of(index: usize) -> &'static str {
    PHASES.get(index).map_or(DEPLOY, |(name, _)| name)
}
