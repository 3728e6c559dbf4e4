//! Serving certificates of webhooks and API services, and the trust of their clients.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Context, names};
use crate::{CertificateRequest, Certificates, RenderError};

/// Object that trusts a certificate or requests one.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Target {
    Crd,
    Configuration,
    ApiService,
    Service,
}

/// Returns the name of the Secret and of the cert-manager `Certificate` of a deployment that the API server calls.
pub(super) fn secret_name(deployment: &str) -> String {
    names::join(&names::service_name(deployment), "cert")
}

/// Annotation of pods whose certificate the controller issues: fingerprint of the certificate. A new certificate
/// replaces the pods, because not every server reads its files again.
pub(super) const FINGERPRINT: &str = "olm.operatorframework.io/serving-certificate";

/// Returns the start of the certificate's SHA-256; none if the controller does not issue it.
pub(super) fn fingerprint(context: &Context<'_>, deployment: &str) -> Option<String> {
    let Certificates::Own(own) = &context.options.certificates else {
        return None;
    };
    let served = context.serving_deployments().contains(deployment);
    let certificate = own.get(&secret_name(deployment)).filter(|_| served)?;
    Some(digest_start(certificate.cert_pem.as_bytes()))
}

/// Returns the fingerprint of a certificate chain: the start of its SHA-256.
pub(super) fn digest_start(chain: &[u8]) -> String {
    let mut hash = HEXLOWER.encode(&Sha256::digest(chain));
    hash.truncate(16);
    hash
}

/// Returns the request for the certificate of a deployment.
pub(super) fn request(deployment: &str, namespace: &str) -> CertificateRequest {
    let service = names::service_name(deployment);
    let host = format!("{service}.{namespace}");
    CertificateRequest {
        secret_name: secret_name(deployment),
        service_name: service,
        dns_names: vec![
            host.clone(),
            format!("{host}.svc"),
            format!("{host}.svc.cluster.local"),
        ],
    }
}

/// Makes `object` trust the certificate of `deployment`, or request it.
pub(super) fn inject(
    context: &Context<'_>,
    deployment: &str,
    object: &mut Value,
    target: Target,
) -> Result<(), RenderError> {
    let secret = secret_name(deployment);
    match (&context.options.certificates, target) {
        (Certificates::CertManager, Target::Crd | Target::Configuration | Target::ApiService) => {
            let from = format!("{}/{secret}", context.namespace);
            annotate(object, "cert-manager.io/inject-ca-from", &from);
        }
        (Certificates::ServiceCa, Target::Crd | Target::Configuration | Target::ApiService) => {
            annotate(object, "service.beta.openshift.io/inject-cabundle", "true");
        }
        (Certificates::ServiceCa, Target::Service) => {
            annotate(
                object,
                "service.beta.openshift.io/serving-cert-secret-name",
                &secret,
            );
        }
        (Certificates::Own(own), Target::Crd | Target::Configuration | Target::ApiService) => {
            let certificate = own
                .get(&secret)
                .ok_or(RenderError::MissingCertificate { secret_name: secret })?;
            let bundle = Value::from(STANDARD.encode(&certificate.ca_pem));
            let pointer = match target {
                Target::Crd => "/spec/conversion/webhook/clientConfig",
                Target::ApiService => "/spec",
                Target::Configuration | Target::Service => "/webhooks/0/clientConfig",
            };
            if let Some(config) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
                config.insert("caBundle".to_owned(), bundle);
            }
        }
        (Certificates::None, _) | (Certificates::CertManager | Certificates::Own(_), Target::Service) => {}
    }
    Ok(())
}

fn annotate(object: &mut Value, key: &str, text: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), text.into());
    }
}

/// Renders the objects that issue or hold the certificates.
pub(super) fn objects(context: &Context<'_>) -> Result<Vec<Value>, RenderError> {
    let mut out = Vec::new();
    for deployment in context.serving_deployments() {
        let request = request(deployment, context.namespace);
        let metadata = json!({"name": request.secret_name, "namespace": context.namespace});
        match &context.options.certificates {
            Certificates::None | Certificates::ServiceCa => {}
            Certificates::CertManager => {
                let issuer = names::join(&request.secret_name, "selfsigned-issuer");
                out.push(json!({
                    "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
                    "metadata": {"name": issuer, "namespace": context.namespace},
                    "spec": {"selfSigned": {}}, "status": {},
                }));
                out.push(json!({
                    "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata,
                    "spec": {
                        "commonName": request.dns_names.first(), "dnsNames": request.dns_names,
                        "duration": "17520h0m0s", "renewBefore": "24h0m0s", "usages": ["server auth"],
                        "issuerRef": {"name": issuer}, "secretName": request.secret_name,
                    },
                    "status": {},
                }));
            }
            Certificates::Own(own) => {
                let Some(certificate) = own.get(&request.secret_name) else {
                    return Err(RenderError::MissingCertificate {
                        secret_name: request.secret_name,
                    });
                };
                let mut data = json!({
                    "ca.crt": STANDARD.encode(&certificate.ca_pem),
                    "tls.crt": STANDARD.encode(&certificate.cert_pem),
                    "tls.key": STANDARD.encode(&certificate.key_pem),
                });
                if let (Some(data), Some(next)) = (data.as_object_mut(), &certificate.next) {
                    data.insert("next.crt".to_owned(), STANDARD.encode(&next.cert_pem).into());
                    data.insert("next.key".to_owned(), STANDARD.encode(&next.key_pem).into());
                }
                out.push(json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls",
                    "data": data,
                }));
            }
        }
    }
    Ok(out)
}
