//! Feature gates of operator-controller, by which commands foretell its decisions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use olm_bundle::crd_safety::Rules;
use olm_decide::extension::{CertificateProvider, PermittedProviders};
use olm_resolve::{CatalogInput, Selection};
use olm_runtime::{Binary, Feature, FeatureGates};
use olm_text::object::metadata_name;
use serde_json::Value;

use crate::cli::RequestArgs;
use crate::cli::bundle::Issuer;
use crate::commands::bundle::Permitted;
use crate::installed::found;

/// Name of operator-controller's Deployment.
pub(crate) const DEPLOYMENT: &str = "operator-controller-controller-manager";
/// Name of operator-controller's container.
const CONTAINER: &str = "manager";
/// Flag with gates; it may be repeated.
const FLAG: &str = "--feature-gates";

/// Feature gates by which a command foretells what operator-controller decides.
#[derive(Clone, Debug)]
pub(crate) struct Gates {
    features: FeatureGates,
    /// Reason why the gates of the running operator-controller are unknown; none if they are known, or if there is no cluster.
    unread: Option<String>,
}

impl Gates {
    /// Returns the gates of the shipped manifests, `config/default`.
    pub(crate) fn shipped() -> Self {
        // The embedded manifests compose; a test renders them.
        let objects = olm_manifests::render(&[]).unwrap_or_default();
        let deployment = objects
            .iter()
            .find(|object| object["kind"] == "Deployment" && metadata_name(object) == DEPLOYMENT);
        deployment.map_or_else(
            || Self {
                features: FeatureGates::default(),
                unread: None,
            },
            Self::of_deployment,
        )
    }

    /// Returns the gates of the shipped manifests, because those of the cluster cannot be read for a `reason`.
    pub(crate) fn assumed(reason: String) -> Self {
        Self {
            unread: Some(reason),
            ..Self::shipped()
        }
    }

    /// Reads the gates of a Deployment of operator-controller. A gate that it does not set has the default of the program.
    pub(crate) fn of_deployment(deployment: &Value) -> Self {
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
        let containers = containers.map(Vec::as_slice).unwrap_or_default();
        let named = containers.iter().find(|container| container["name"] == CONTAINER);
        let mut words = named
            .or(containers.first())
            .into_iter()
            .flat_map(|container| [&container["command"], &container["args"]])
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str);
        let mut given: Vec<FeatureGates> = Vec::new();
        while let Some(word) = words.next() {
            let value = match word.strip_prefix(FLAG) {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            // A gate of a newer controller is unknown here; the others count.
            let entries = value.into_iter().flat_map(|value| value.split(','));
            given.extend(entries.filter_map(|entry| entry.parse().ok()));
        }
        Self {
            features: FeatureGates::merged(&given),
            unread: None,
        }
    }

    /// Returns the gates as the flags of a request change them.
    pub(crate) fn with(mut self, args: &RequestArgs) -> Self {
        if let Some(on) = args.release_support {
            self.features = self.features.with(Feature::BundleReleaseSupport, on);
            self.unread = None;
        }
        if args.upstream_catalog_selection {
            self.features = self.features.with(Feature::UpstreamCatalogSelection, true);
        }
        self
    }

    /// Returns true if a bundle's release is apart from its version.
    pub(crate) fn release_support(&self) -> bool {
        self.features.enabled(Feature::BundleReleaseSupport)
    }

    /// Returns the rule for the choice between catalogs.
    pub(crate) fn selection(&self) -> Selection {
        if self.features.enabled(Feature::UpstreamCatalogSelection) {
            Selection::Upstream
        } else {
            Selection::Ours
        }
    }

    /// Returns the rules for changes of CRDs.
    pub(crate) fn crd_rules(&self) -> Rules {
        if self.features.enabled(Feature::UpstreamCrdUpgradeSafety) {
            Rules::Upstream
        } else {
            Rules::Ours
        }
    }

    /// Returns the parts of bundles and configurations that are installed.
    pub(crate) fn permitted(&self) -> Permitted {
        Permitted {
            single_own_namespace: self.features.enabled(Feature::SingleOwnNamespaceInstallSupport),
            deployment_config: self.features.enabled(Feature::DeploymentConfig),
        }
    }

    /// Returns the issuer of webhook certificates on a cluster that serves these API groups.
    pub(crate) fn issuer(&self, groups: &[APIGroup]) -> Issuer {
        let permitted = PermittedProviders {
            cert_manager: self.features.enabled(Feature::WebhookProviderCertManager),
            service_ca: self.features.enabled(Feature::WebhookProviderOpenshiftServiceCa),
        };
        match CertificateProvider::on_cluster(groups, permitted) {
            CertificateProvider::None => Issuer::None,
            CertificateProvider::CertManager => Issuer::CertManager,
            CertificateProvider::ServiceCa => Issuer::ServiceCa,
            CertificateProvider::Own => Issuer::Own,
        }
    }

    /// Returns a sentence if the gates are assumed.
    pub(crate) fn assumption(&self) -> Option<String> {
        let reason = self.unread.as_deref()?;
        let gates = self.features.display(Binary::OperatorController);
        Some(format!(
            "the feature gates of operator-controller are unknown ({reason}), so those of the shipped manifests are assumed: {gates}"
        ))
    }

    /// Returns a sentence if the gates are assumed and a bundle of these catalogs has a release, which a gate concerns.
    pub(crate) fn assumption_on_releases(&self, catalogs: &[CatalogInput]) -> Option<String> {
        let mut bundles = found(catalogs).flat_map(|(_, content)| &content.bundles);
        let is_released = bundles.any(|bundle| {
            let version = bundle.version_release(true);
            version.is_ok_and(|version| version.release.is_some())
        });
        self.assumption().filter(|_| is_released)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(args: &Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [
            {"name": "proxy", "args": ["--feature-gates=BundleReleaseSupport=true"]},
            {"name": "manager", "command": ["/operator-controller"], "args": args},
        ]}}}})
    }

    fn groups(names: &[&str]) -> Vec<APIGroup> {
        let group = |name: &&str| json!({"name": name, "versions": [{"version": "v1", "groupVersion": format!("{name}/v1")}]});
        let groups: Vec<Value> = names.iter().map(group).collect();
        serde_json::from_value(groups.into()).unwrap()
    }

    #[test]
    fn the_gates_of_the_container_count() {
        let gates = |args: Value| Gates::of_deployment(&deployment(&args));
        assert!(!gates(json!(["--leader-elect"])).release_support());
        assert!(gates(json!(["--feature-gates=BundleReleaseSupport=true"])).release_support());
        assert!(
            gates(json!([
                "--feature-gates",
                "FutureGate=true,BundleReleaseSupport=true"
            ]))
            .release_support()
        );
        let later = gates(json!([
            "--feature-gates=BundleReleaseSupport=true,UpstreamCatalogSelection=true",
            "--feature-gates=BundleReleaseSupport=false",
        ]));
        assert!(!later.release_support());
        assert_eq!(later.selection(), Selection::Upstream);
        assert_eq!(later.assumption(), None);
    }

    #[test]
    fn the_shipped_manifests_separate_releases_and_issue_certificates() {
        let shipped = Gates::shipped();
        assert!(shipped.release_support());
        let present = groups(&["cert-manager.io", "config.openshift.io"]);
        assert_eq!(shipped.issuer(&present), Issuer::Own);
        let said = Gates::assumed("it is gone".to_owned()).assumption().unwrap();
        assert!(
            said.contains("(it is gone)") && said.contains("BundleReleaseSupport=true"),
            "{said}"
        );
    }

    #[test]
    fn an_issuer_of_the_cluster_needs_its_gate() {
        let all = groups(&["cert-manager.io", "config.openshift.io"]);
        for (args, expected) in [
            ("--feature-gates=AllAlpha=false", Issuer::CertManager),
            (
                "--feature-gates=WebhookProviderCertManager=false",
                Issuer::ServiceCa,
            ),
        ] {
            let gates = Gates::of_deployment(&deployment(&json!([args])));
            assert_eq!(gates.issuer(&all), expected, "{args}");
            assert_eq!(gates.issuer(&groups(&["apps"])), Issuer::Own, "{args}");
        }
    }

    #[test]
    fn checks_of_bundles_follow_their_gates() {
        let gates = |args: &str| Gates::of_deployment(&deployment(&json!([args])));
        for shown in [Gates::shipped(), gates("--leader-elect")] {
            assert_eq!(shown.permitted(), Permitted::default());
            assert_eq!(shown.crd_rules(), Rules::Ours);
        }
        let without = gates(
            "--feature-gates=DeploymentConfig=false,SingleOwnNamespaceInstallSupport=false,UpstreamCRDUpgradeSafety=true",
        );
        let nothing = Permitted {
            single_own_namespace: false,
            deployment_config: false,
        };
        assert_eq!(without.permitted(), nothing);
        assert_eq!(without.crd_rules(), Rules::Upstream);
    }

    #[test]
    fn a_flag_of_the_request_wins() {
        let args = RequestArgs {
            release_support: Some(false),
            ..RequestArgs::default()
        };
        let gates = Gates::assumed("it is gone".to_owned()).with(&args);
        assert!(!gates.release_support());
        assert_eq!(gates.assumption(), None);
    }
}
