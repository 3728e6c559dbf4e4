//! Rendering of a bundle to plain manifests.

mod certificates;
mod deployments;
mod issued;
mod names;
mod other_manifests;
mod rbac;
mod webhooks;

use std::collections::BTreeSet;

pub(crate) use deployments::CERTIFICATE_VOLUMES;
pub use issued::mask_issued_certificates;
use serde_json::Value;

use crate::config::{self, Config};
use crate::model::WebhookType;
use crate::{Bundle, CertificateRequest, RenderError, RenderOptions, validate};

/// Renders all objects of an installation of `bundle`, in this order: accounts, permissions, CRDs, other manifests,
/// deployments, webhooks, services, certificates. Equal inputs give equal bytes.
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

    let mut out = rbac::service_accounts(&context);
    out.extend(rbac::namespaced(&context));
    out.extend(rbac::cluster(&context));
    out.extend(webhooks::crds(&context)?);
    out.extend(other_manifests::render(&context));
    out.extend(deployments::deployments(&context));
    out.extend(webhooks::configurations(&context, WebhookType::Validating)?);
    out.extend(webhooks::configurations(&context, WebhookType::Mutating)?);
    out.extend(webhooks::services(&context)?);
    out.extend(certificates::objects(&context)?);
    Ok(out)
}

/// Returns requests for the certificates that [`Certificates::Own`](crate::Certificates::Own) must hold for `bundle`:
/// one for every deployment that serves webhooks, by name.
pub fn webhook_certificates(bundle: &Bundle, install_namespace: &str) -> Vec<CertificateRequest> {
    webhook_deployments(bundle)
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

    fn webhook_deployments(&self) -> BTreeSet<&'a str> {
        webhook_deployments(self.bundle)
    }
}

fn webhook_deployments(bundle: &Bundle) -> BTreeSet<&str> {
    bundle
        .csv
        .webhooks
        .iter()
        .map(|webhook| webhook.deployment.as_str())
        .collect()
}
