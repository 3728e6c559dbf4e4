//! Reads which issuer of webhook certificates the cluster offers.

use olm_decide::extension::CertificateProvider;
use olm_runtime::Feature;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};

/// Returns the issuer that this cluster offers: cert-manager, OpenShift's service CA or operator-controller itself.
pub(crate) async fn provider(context: &Context) -> Result<CertificateProvider, CallError> {
    let groups = call("listing the API groups", context.shared.client.list_api_groups()).await?;
    let serves = |name: &str, version: Option<&str>| {
        groups.groups.iter().any(|group| {
            group.name == name
                && version.is_none_or(|version| group.versions.iter().any(|v| v.version == version))
        })
    };
    let on = |feature| context.features.enabled(feature);
    Ok(
        if on(Feature::WebhookProviderCertManager) && serves("cert-manager.io", Some("v1")) {
            CertificateProvider::CertManager
        } else if on(Feature::WebhookProviderOpenshiftServiceCa) && serves("config.openshift.io", None) {
            CertificateProvider::ServiceCa
        } else {
            CertificateProvider::Own
        },
    )
}
