//! Checks of the cluster before an installation. Pure.

use std::collections::BTreeSet;

use olm_manifests::{NAMESPACE, Overlay};
use olm_status::cluster_upgrade::Minor;

use crate::finding::{Finding, Severity};

/// Oldest supported minor version of Kubernetes: the first with `ValidatingAdmissionPolicy` v1.
pub(crate) const OLDEST: &str = "1.30";

/// Observed state of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    /// Version of the API server, such as v1.36.0.
    pub(crate) version: String,
    /// True on OpenShift.
    pub(crate) openshift: bool,
    /// API versions and kinds of the manifests that the cluster does not serve.
    pub(crate) unserved: Vec<(String, String)>,
    /// Rights that the user lacks, such as `create deployments.apps`.
    pub(crate) denied: Vec<String>,
    /// Rights that the user lacks, but needs only if their own rights do not include those of the controllers.
    pub(crate) doubtful: Vec<String>,
    /// Deployments of catalogd and operator-controller.
    pub(crate) controllers: Vec<Installed>,
    /// True if the webhook of upstream's catalogd exists.
    pub(crate) upstream_webhook: bool,
    /// Existing ones of the overlays' `ConfigMap`s.
    pub(crate) config_maps: BTreeSet<&'static str>,
}

/// Deployment of a controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Installed {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
    /// Field managers that applied it, if `install-controllers` did not.
    pub(crate) foreign_managers: Vec<String>,
}

/// Returns the findings about a cluster on which `overlays` are to be installed.
pub(crate) fn check(observed: &Observed, overlays: &[Overlay], force: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(version(&observed.version));
    findings.extend(
        observed
            .unserved
            .iter()
            .map(|(version, kind)| unserved(version, kind)),
    );
    findings.extend(observed.denied.iter().map(|right| {
        Finding::new(
            Severity::Error,
            "your account",
            format!("it must not {right}"),
            "use an account with the role cluster-admin",
        )
    }));
    findings.extend(observed.doubtful.iter().map(|right| {
        Finding::new(
            Severity::Warning,
            "your account",
            format!("it must not {right}, so it can only grant rights that it has"),
            "use an account with the role cluster-admin if the installation is refused",
        )
    }));
    findings.extend(
        observed
            .controllers
            .iter()
            .filter_map(|found| existing(found, force)),
    );
    if observed.upstream_webhook {
        findings.push(Finding::new(Severity::Error,
            "MutatingWebhookConfiguration catalogd-mutating-webhook-configuration",
            "it belongs to upstream's catalogd; no process would answer it, and no ClusterCatalog could be written",
            "move from upstream as docs/operations.md says; the first step deletes it",
        ));
    }
    if observed.openshift && !overlays.contains(&Overlay::OpenShift) {
        findings.push(Finding::new(
            Severity::Warning,
            "the cluster",
            "it is OpenShift, which has its own certificates and monitoring",
            "consider --overlay openshift",
        ));
    }
    for (name, key) in overlays.iter().filter_map(|overlay| overlay.config_map()) {
        if !observed.config_maps.contains(name) {
            findings.push(Finding::new(
                Severity::Warning,
                format!("ConfigMap {NAMESPACE}/{name}"),
                "it does not exist, and the pods wait for it",
                format!("kubectl -n {NAMESPACE} create configmap {name} --from-file={key}"),
            ));
        }
    }
    findings.sort();
    findings
}

/// Checks the version of the API server.
pub(crate) fn version(version: &str) -> Option<Finding> {
    let unknown = || {
        Finding::new(
            Severity::Warning,
            "the cluster",
            format!("its version {version:?} cannot be read"),
            format!("make sure that it is Kubernetes {OLDEST} or newer"),
        )
    };
    let Some(found) = Minor::of_version(version) else {
        return Some(unknown());
    };
    let oldest = Minor::of_version(OLDEST)?;
    (found < oldest).then(|| {
        Finding::new(
            Severity::Error,
            "the cluster",
            format!("it runs Kubernetes {found}; {OLDEST} is the oldest supported version"),
            format!("upgrade the cluster to {OLDEST} or newer"),
        )
    })
}

fn unserved(version: &str, kind: &str) -> Finding {
    let next = match version.split_once('/').map_or("", |(group, _)| group) {
        "cert-manager.io" => "install cert-manager first, or leave out --overlay cert-manager".to_owned(),
        "monitoring.coreos.com" => {
            "install the Prometheus operator first, or leave out the overlay with monitors".to_owned()
        }
        _ => "upgrade the cluster, or leave out the overlay with this kind".to_owned(),
    };
    Finding::new(
        Severity::Error,
        format!("{kind} ({version})"),
        "the cluster does not serve this kind",
        next,
    )
}

fn existing(found: &Installed, force: bool) -> Option<Finding> {
    let object = format!("Deployment {}/{}", found.namespace, found.name);
    if found.namespace != NAMESPACE {
        return Some(Finding::new(
            Severity::Error,
            object,
            format!(
                "another installation runs outside of namespace {NAMESPACE}; two would act on the same extensions"
            ),
            "remove the other installation first",
        ));
    }
    if found.foreign_managers.is_empty() || force {
        return None;
    }
    Some(Finding::new(
        Severity::Error,
        object,
        format!("it was applied by {}", found.foreign_managers.join(", ")),
        "add --force-conflicts to take it over; docs/operations.md says what else a move from upstream takes",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::has_error;

    fn good() -> Observed {
        Observed {
            version: "v1.36.3".to_owned(),
            ..Observed::default()
        }
    }

    fn objects(observed: &Observed, overlays: &[Overlay], force: bool) -> Vec<(Severity, String)> {
        let findings = check(observed, overlays, force);
        findings
            .into_iter()
            .map(|finding| (finding.severity, finding.object))
            .collect()
    }

    #[test]
    fn a_plain_cluster_has_no_findings() {
        assert_eq!(check(&good(), &[Overlay::LeastPrivilege], false), []);
    }

    #[test]
    fn old_and_unreadable_versions() {
        assert_eq!(version("v1.30.0"), None);
        assert_eq!(
            version("v1.29.9+k3s1").map(|finding| finding.severity),
            Some(Severity::Error)
        );
        assert_eq!(
            version("what").map(|finding| finding.severity),
            Some(Severity::Warning)
        );
    }

    #[test]
    fn a_missing_operator_is_named() {
        let observed = Observed {
            unserved: vec![("cert-manager.io/v1".to_owned(), "Certificate".to_owned())],
            ..good()
        };
        let findings = check(&observed, &[Overlay::CertManager], false);
        assert!(
            has_error(&findings) && findings[0].next.starts_with("install cert-manager"),
            "{findings:?}"
        );
    }

    #[test]
    fn other_installations() {
        let installed = |namespace: &str, managers: &[&str]| Observed {
            controllers: vec![Installed {
                namespace: namespace.to_owned(),
                name: "catalogd-controller-manager".to_owned(),
                foreign_managers: managers.iter().map(ToString::to_string).collect(),
            }],
            ..good()
        };
        let error = |namespace: &str| {
            vec![(
                Severity::Error,
                format!("Deployment {namespace}/catalogd-controller-manager"),
            )]
        };
        assert_eq!(objects(&installed(NAMESPACE, &[]), &[], false), []);
        assert_eq!(
            objects(&installed(NAMESPACE, &["kubectl"]), &[], false),
            error(NAMESPACE)
        );
        assert_eq!(objects(&installed(NAMESPACE, &["kubectl"]), &[], true), []);
        assert_eq!(objects(&installed("olm", &["kubectl"]), &[], true), error("olm"));
        let upstream = Observed {
            upstream_webhook: true,
            ..good()
        };
        assert!(has_error(&check(&upstream, &[], true)));
    }

    #[test]
    fn rights_openshift_and_the_registry() {
        let observed = Observed {
            openshift: true,
            denied: vec!["create deployments.apps".to_owned()],
            doubtful: vec!["escalate clusterroles".to_owned()],
            ..good()
        };
        let severities: Vec<Severity> = check(&observed, &[Overlay::InternalRegistry], false)
            .iter()
            .map(|finding| finding.severity)
            .collect();
        assert_eq!(
            severities,
            [
                Severity::Error,
                Severity::Warning,
                Severity::Warning,
                Severity::Warning
            ]
        );
    }
}
