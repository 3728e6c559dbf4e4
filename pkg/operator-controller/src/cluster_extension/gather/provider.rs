//! Reads which issuer of webhook certificates the cluster offers.

use olm_decide::extension::{CertificateProvider, PermittedProviders};
use olm_runtime::Feature;

use crate::cluster_extension::Context;
use crate::cluster_extension::call::{CallError, call};

/// Returns the issuer that this cluster offers: cert-manager, OpenShift's service CA or operator-controller itself.
pub(crate) async fn provider(context: &Context) -> Result<CertificateProvider, CallError> {
    let groups = call("listing the API groups", context.shared.client.list_api_groups()).await?;
    let permitted = PermittedProviders {
        cert_manager: context.features.enabled(Feature::WebhookProviderCertManager),
        service_ca: context
            .features
            .enabled(Feature::WebhookProviderOpenshiftServiceCa),
    };
    Ok(CertificateProvider::on_cluster(&groups.groups, permitted))
}
