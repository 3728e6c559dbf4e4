//! Rendering of a bundle to plain manifests.

mod api_services;
mod certificates;
mod deployments;
mod issued;
mod names;
mod other_manifests;
mod rbac;
mod services;
mod webhooks;

use std::collections::BTreeSet;

pub(crate) use deployments::CERTIFICATE_VOLUMES;
pub use issued::mask_issued_certificates;
use serde_json::Value;

use crate::config::{self, Config};
use crate::model::WebhookType;
use crate::{Bundle, CertificateRequest, RenderError, RenderOptions, install_namespace, validate};

/// Renders all objects of an installation of `bundle`, in this order: namespace, accounts, permissions, CRDs, other manifests,
/// deployments, webhooks, API services, services, certificates. Equal inputs give equal bytes.
pub fn render(bundle: &Bundle, options: &RenderOptions) -> Result<Vec<Value>, RenderError> {
    validate::supported(bundle, options)?;
    let config = config::read(bundle, options)?;
    let targets = config::targets(bundle, options, &config)?;
    validate::consistent(bundle)?;
    let context = Context {
        bundle,
        options,
        namespace: &options.install_namespace,
        targets,
        config,
    };

    let mut out = Vec::new();
    if options.with_namespace {
        let namespace = install_namespace(bundle, Some(context.namespace))?;
        out.push(namespace.object());
    }
    out.extend(rbac::service_accounts(&context));
    out.extend(rbac::namespaced(&context)?);
    out.extend(rbac::cluster(&context)?);
    out.extend(api_services::bindings(&context));
    out.extend(webhooks::crds(&context)?);
    out.extend(other_manifests::render(&context));
    out.extend(deployments::deployments(&context));
    out.extend(webhooks::configurations(&context, WebhookType::Validating)?);
    out.extend(webhooks::configurations(&context, WebhookType::Mutating)?);
    out.extend(api_services::registrations(&context)?);
    out.extend(services::services(&context)?);
    out.extend(certificates::objects(&context)?);
    Ok(out)
}

/// Returns requests for the certificates that [`Certificates::Own`](crate::Certificates::Own) must hold for `bundle`:
/// one for every deployment that serves webhooks or API services, by name.
pub fn serving_certificates(bundle: &Bundle, install_namespace: &str) -> Vec<CertificateRequest> {
    serving_deployments(bundle)
        .into_iter()
        .map(|name| certificates::request(name, install_namespace))
        .collect()
}

/// Inputs that all generators share.
struct Context<'a> {
    bundle: &'a Bundle,
    options: &'a RenderOptions,
    namespace: &'a str,
    /// The namespaces that the operator watches; a single empty name means all.
    targets: Vec<String>,
    config: Config,
}

impl<'a> Context<'a> {
    fn all_namespaces(&self) -> bool {
        matches!(self.targets.as_slice(), [only] if only.is_empty())
    }

    fn serving_deployments(&self) -> BTreeSet<&'a str> {
        serving_deployments(self.bundle)
    }
}

/// Returns the deployments that the API server calls: they get a Service and a certificate.
fn serving_deployments(bundle: &Bundle) -> BTreeSet<&str> {
    let webhooks = bundle.csv.webhooks.iter().map(|webhook| &webhook.deployment);
    let api_services = bundle.csv.api_services.iter().map(|service| &service.deployment);
    webhooks.chain(api_services).map(String::as_str).collect()
}
