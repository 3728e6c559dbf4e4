//! Overlays of `config/overlays` and `config/optional`.

/// A change of `config/default`. The order of the variants is the order of their application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Overlay {
    /// Three replicas of each controller.
    HighAvailability,
    /// Certificates from cert-manager.
    CertManager,
    /// Certificates from OpenShift's service-ca.
    OpenShift,
    /// operator-controller without the rights of a cluster administrator.
    LeastPrivilege,
    /// `spec.serviceAccount` of extensions has no effect.
    IgnoreServiceAccounts,
    /// catalogd requires a token from readers.
    PrivateCatalogs,
    /// Images from a registry inside the cluster.
    InternalRegistry,
    /// Mirrors of registries, from a `ConfigMap`.
    Mirrors,
    /// Monitors, alerts and a dashboard.
    Prometheus,
    /// Web pages for readers with tokens.
    Ui,
    /// Admission policy: only operator-controller writes ClusterObjectSets.
    ProtectRevisions,
    /// Admission policy: every ClusterExtension names a service account.
    RequireServiceAccount,
    /// Admission policy that labels ClusterCatalogs with their names.
    MetadataNamePolicy,
    /// Policy of [`Overlay::MetadataNamePolicy`] in the API version of Kubernetes 1.34 and 1.35.
    MetadataNamePolicyV1beta1,
}

impl Overlay {
    /// All overlays, in the order of their application.
    pub const ALL: [Self; 14] = [
        Self::HighAvailability,
        Self::CertManager,
        Self::OpenShift,
        Self::LeastPrivilege,
        Self::IgnoreServiceAccounts,
        Self::PrivateCatalogs,
        Self::InternalRegistry,
        Self::Mirrors,
        Self::Prometheus,
        Self::Ui,
        Self::ProtectRevisions,
        Self::RequireServiceAccount,
        Self::MetadataNamePolicy,
        Self::MetadataNamePolicyV1beta1,
    ];

    /// Returns the folder below `config/`.
    pub fn folder(self) -> &'static str {
        match self {
            Self::HighAvailability => "overlays/high-availability",
            Self::CertManager => "overlays/cert-manager",
            Self::OpenShift => "overlays/openshift",
            Self::LeastPrivilege => "overlays/least-privilege",
            Self::IgnoreServiceAccounts => "overlays/ignore-service-accounts",
            Self::PrivateCatalogs => "overlays/private-catalogs",
            Self::InternalRegistry => "overlays/internal-registry",
            Self::Mirrors => "overlays/mirrors",
            Self::Prometheus => "optional/prometheus",
            Self::Ui => "optional/ui",
            Self::ProtectRevisions => "optional/protect-revisions",
            Self::RequireServiceAccount => "optional/require-service-account",
            Self::MetadataNamePolicy => "optional/metadata-name-policy",
            Self::MetadataNamePolicyV1beta1 => "optional/metadata-name-policy-v1beta1",
        }
    }

    /// Returns the folder below `config/` that is applied when all of `chosen` are.
    pub(crate) fn folder_with(self, chosen: &[Self]) -> &'static str {
        match self {
            // A monitor names exactly one source of authorities, so it depends on the source of certificates. The overlay of
            // OpenShift contains its own monitors.
            Self::Prometheus if chosen.contains(&Self::CertManager) => "optional/prometheus-cert-manager",
            _ => self.folder(),
        }
    }

    /// Returns true if the folder does not contain `config/default` and is applied beside it.
    pub fn is_beside(self) -> bool {
        self.folder().starts_with("optional/")
    }

    /// Returns the `ConfigMap` that the pods wait for, and the key that they read.
    pub fn config_map(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::InternalRegistry => Some(("internal-registry-ca", "ca.crt")),
            Self::Mirrors => Some(("registries-conf", "registries.conf")),
            _ => None,
        }
    }

    /// Returns the name of the folder, which is the overlay's name for users.
    pub fn name(self) -> &'static str {
        let folder = self.folder();
        folder.split_once('/').map_or(folder, |(_, name)| name)
    }
}

/// Pairs that contradict each other: two sources of certificates, two policies for service accounts, two versions of a
/// policy.
const EXCLUSIVE: [(Overlay, Overlay); 4] = [
    (Overlay::CertManager, Overlay::OpenShift),
    (Overlay::LeastPrivilege, Overlay::IgnoreServiceAccounts),
    (Overlay::IgnoreServiceAccounts, Overlay::RequireServiceAccount),
    (Overlay::MetadataNamePolicy, Overlay::MetadataNamePolicyV1beta1),
];

/// Returns the first two of `chosen` that exclude each other.
pub fn exclusive(chosen: &[Overlay]) -> Option<(Overlay, Overlay)> {
    EXCLUSIVE
        .into_iter()
        .find(|(one, other)| chosen.contains(one) && chosen.contains(other))
}
