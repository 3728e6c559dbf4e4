//! Renders a bundle into the objects of a revision.

use std::collections::HashSet;

use jiff::Timestamp;
use olm_api::{keys, names};
use olm_bundle::{Certificates, RenderOptions};
use olm_decide::extension::identity::config;
use olm_decide::extension::{CertificateProvider, History};
use olm_runtime::Feature;
use olm_text::object::ObjectId;
use serde_json::Value;

use super::bundle::Pulled;
use super::image::Located;
use super::{certificates, provider};
use crate::cluster_extension::account;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Objects of a revision that does not exist yet.
pub(crate) struct Rendered<'a> {
    /// The bundle and its image.
    pub located: Located<'a>,
    /// Install namespace.
    pub namespace: String,
    /// True if the Namespace is one of the objects, because the spec names none.
    pub has_namespace: bool,
    /// The objects, one of each identity.
    pub objects: Vec<Value>,
    /// Namespaces that the configuration selected by labels.
    pub namespaces: Option<Vec<String>>,
    /// Properties of the bundle's own metadata, as a JSON list.
    pub properties: Option<String>,
    /// Object that the bundle names for its condition `Upgradeable`.
    pub upgradeable_condition: Option<String>,
    /// Issuer of the webhooks' certificates.
    pub provider: CertificateProvider,
    /// Time at which certificates of operator-controller are due for renewal.
    pub renewal: Option<Timestamp>,
}

/// Renders the bundle for the spec and for the namespaces that it selects. Webhook certificates of the newest revision are read from the cluster and used again.
pub(crate) async fn render<'a>(
    pass: &Pass<'_>,
    pulled: Pulled<'a>,
    history: &History,
    namespaces: Option<Vec<String>>,
) -> Result<Rendered<'a>, Failure> {
    let Pulled { located, bundle } = pulled;
    let context = pass.context;
    let given = pass.extension.spec.namespace.as_deref();
    let chosen = given.or_else(|| history.chosen_namespace());
    let namespace = match chosen {
        Some(namespace) => namespace.to_owned(),
        None => {
            olm_bundle::install_namespace(&bundle, None)
                .map_err(Failure::Render)?
                .name
        }
    };
    let mut options = RenderOptions::new(namespace.clone());
    options.with_namespace = given.is_none();
    options.config = config(pass.extension);
    options.selected_namespaces.clone_from(&namespaces);
    options.single_own_namespace = context
        .features
        .enabled(Feature::SingleOwnNamespaceInstallSupport);
    options.deployment_config = context.features.enabled(Feature::DeploymentConfig);
    let requests = olm_bundle::serving_certificates(&bundle, &namespace);
    let provider = match located.provider {
        _ if requests.is_empty() => CertificateProvider::None,
        // The newest revision has no webhooks, but this bundle has.
        CertificateProvider::None => provider::provider(context).await?,
        assumed => assumed,
    };
    let mut renewal = None;
    options.certificates = match provider {
        CertificateProvider::None => Certificates::None,
        CertificateProvider::CertManager => Certificates::CertManager,
        CertificateProvider::ServiceCa => Certificates::ServiceCa,
        CertificateProvider::Own => {
            let reader = account::reader(context, pass.extension)?;
            let newest = history.newest();
            let own =
                certificates::obtain(&reader, &pass.name, &namespace, &requests, newest, pass.now).await?;
            renewal = Some(own.renewal);
            Certificates::Own(own.by_secret)
        }
    };
    let objects = distinct(olm_bundle::render(&bundle, &options).map_err(Failure::Render)?);
    names::check_all(objects.iter())?;
    Ok(Rendered {
        located,
        namespace,
        has_namespace: options.with_namespace,
        objects,
        namespaces,
        properties: bundle.properties_annotation(),
        upgradeable_condition: bundle
            .annotation(keys::UPGRADEABLE_CONDITION_ANNOTATION)
            .map(str::to_owned),
        provider,
        renewal,
    })
}

/// Keeps the last object of each identity: a bundle may contain a Service with the name of its webhooks' Service, and a revision
/// cannot hold both.
fn distinct(objects: Vec<Value>) -> Vec<Value> {
    let identity = |object: &Value| {
        let ObjectId {
            group,
            kind,
            namespace,
            name,
            ..
        } = ObjectId::of(object);
        [group, kind, namespace, name].map(ToOwned::to_owned)
    };
    let mut seen = HashSet::new();
    let mut kept: Vec<Value> = objects
        .into_iter()
        .rev()
        .filter(|object| seen.insert(identity(object)))
        .collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::distinct;

    #[test]
    fn the_later_of_two_services_of_one_name_is_kept() {
        let service = |port: u16| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "a", "name": "webhook"}, "spec": port});
        let other =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "b", "name": "webhook"}});
        assert_eq!(
            distinct(vec![service(1), other.clone(), service(2)]),
            vec![other, service(2)]
        );
    }
}
