//! The files of `config/`, as they were when the program was built.

/// Embeds files of `config/` with their paths.
macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../config/", $path)))),*]
    };
}

/// Paths below `config/` and contents. `config/samples` is no part of an installation.
const FILES: &[(&str, &str)] = embedded![
    "crd/kustomization.yaml",
    "crd/olm.operatorframework.io_clustercatalogs.yaml",
    "crd/olm.operatorframework.io_clusterextensions.yaml",
    "crd/olm.operatorframework.io_clusterobjectsets.yaml",
    "default/kustomization.yaml",
    "manager/catalogd.yaml",
    "manager/kustomization.yaml",
    "manager/namespace.yaml",
    "manager/network-policies.yaml",
    "manager/operator-controller.yaml",
    "optional/metadata-name-policy-v1beta1/kustomization.yaml",
    "optional/metadata-name-policy/kustomization.yaml",
    "optional/metadata-name-policy/policy.yaml",
    "optional/prometheus-cert-manager/kustomization.yaml",
    "optional/prometheus/alerts.yaml",
    "optional/prometheus/dashboard.json",
    "optional/prometheus/kustomization.yaml",
    "optional/prometheus/monitors.yaml",
    "optional/prometheus/rbac.yaml",
    "optional/protect-revisions/kustomization.yaml",
    "optional/protect-revisions/policy.yaml",
    "optional/require-service-account/kustomization.yaml",
    "optional/require-service-account/policy.yaml",
    "optional/ui/deployment.yaml",
    "optional/ui/kustomization.yaml",
    "optional/ui/network-policy.yaml",
    "optional/ui/rbac.yaml",
    "optional/ui/reader.yaml",
    "overlays/cert-manager/catalogd.yaml",
    "overlays/cert-manager/certificates.yaml",
    "overlays/cert-manager/kustomization.yaml",
    "overlays/cert-manager/operator-controller.yaml",
    "overlays/high-availability/kustomization.yaml",
    "overlays/ignore-service-accounts/kustomization.yaml",
    "overlays/ignore-service-accounts/warning.yaml",
    "overlays/internal-registry/https.yaml",
    "overlays/internal-registry/kustomization.yaml",
    "overlays/internal-registry/plain-http.yaml",
    "overlays/least-privilege/kustomization.yaml",
    "overlays/least-privilege/rbac.yaml",
    "overlays/mirrors/kustomization.yaml",
    "overlays/mirrors/mirrors.yaml",
    "overlays/openshift/authorities.yaml",
    "overlays/openshift/catalogd.yaml",
    "overlays/openshift/kustomization.yaml",
    "overlays/openshift/operator-controller.yaml",
    "overlays/private-catalogs/catalogd.yaml",
    "overlays/private-catalogs/kustomization.yaml",
    "overlays/private-catalogs/operator-controller.yaml",
    "rbac/catalogd.yaml",
    "rbac/kustomization.yaml",
    "rbac/operator-controller.yaml",
];

/// Returns the content of a file of `config/`.
pub(crate) fn file(path: &str) -> Option<&'static str> {
    let found = FILES.iter().find(|(name, _)| *name == path);
    found.map(|(_, content)| *content)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::FILES;

    #[expect(clippy::disallowed_methods, reason = "the test compares with the folder")]
    fn list(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                list(&path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_file_is_embedded() {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
        let mut found = Vec::new();
        list(&config, &mut found);
        let mut names: Vec<String> = found
            .iter()
            .map(|path| path.strip_prefix(&config).unwrap().to_str().unwrap().to_owned())
            .filter(|name| !name.starts_with("samples/"))
            .collect();
        names.sort();
        let embedded: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(embedded, names);
    }
}
