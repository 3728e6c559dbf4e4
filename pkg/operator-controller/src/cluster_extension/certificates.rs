//! Serving certificates for bundles' webhooks, made here when the cluster has nobody else to make them.
//!
//! Key material lands in the bundle's own Secret object and nowhere else; it is taken over from there by the next revision, so
//! that an upgrade does not change what clients trust.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use olm_api::keys;
use olm_bundle::{CertificateRequest, OwnCertificate};
use olm_runtime::tls::{TlsError, issue};
use thiserror::Error;

use super::call::{CallError, call};
use super::model::Revision;

const DAY: Duration = Duration::from_hours(24);
/// How long a certificate is valid.
const VALID: Duration = DAY.saturating_mul(730);
/// When it is renewed: well before it ends, as renewing takes a rollout.
const RENEW: Duration = DAY.saturating_mul(487);

/// Certificates that cannot be had.
#[derive(Debug, Error)]
pub(crate) enum CertificateError {
    /// The kept ones cannot be read.
    #[error(transparent)]
    Call(#[from] CallError),
    /// New ones cannot be made.
    #[error("making the webhook certificate for Secret \"{secret}\"")]
    Make {
        /// The Secret it would be kept in.
        secret: String,
        /// What went wrong.
        #[source]
        source: Box<TlsError>,
    },
}

/// Certificates for one rendering.
pub(crate) struct Certificates {
    /// By the name of the Secret.
    pub by_secret: BTreeMap<String, OwnCertificate>,
    /// When they are to be renewed.
    pub renewal: Timestamp,
}

/// The certificates asked for by `requests`: those in use while they are young enough, else new ones.
pub(crate) async fn obtain(
    client: &Client,
    extension: &str,
    namespace: &str,
    requests: &[CertificateRequest],
    newest: Option<&Revision>,
    now: Timestamp,
) -> Result<Certificates, CertificateError> {
    let in_use = newest
        .and_then(|revision| revision.renewal.as_deref())
        .and_then(|due| due.parse::<Timestamp>().ok())
        .filter(|due| *due > now);
    if let Some(renewal) = in_use
        && let Some(by_secret) = kept(client, extension, namespace, requests).await?
    {
        return Ok(Certificates { by_secret, renewal });
    }
    let mut by_secret = BTreeMap::new();
    for request in requests {
        by_secret.insert(request.secret_name.clone(), make(request, now)?);
    }
    // Out of range only at the very end of time.
    let renewal = now.checked_add(RENEW).unwrap_or(Timestamp::MAX);
    Ok(Certificates { by_secret, renewal })
}

/// What the cluster holds for all of `requests`; nothing when any of them is missing or is not this extension's.
async fn kept(
    client: &Client,
    extension: &str,
    namespace: &str,
    requests: &[CertificateRequest],
) -> Result<Option<BTreeMap<String, OwnCertificate>>, CertificateError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut found = BTreeMap::new();
    for request in requests {
        let what = format!("reading Secret {namespace}/{}", request.secret_name);
        let secret = call(what, api.get_opt(&request.secret_name)).await?;
        let Some(certificate) = secret.as_ref().and_then(|secret| certificate(secret, extension)) else {
            return Ok(None);
        };
        found.insert(request.secret_name.clone(), certificate);
    }
    Ok(Some(found))
}

fn certificate(secret: &Secret, extension: &str) -> Option<OwnCertificate> {
    // Somebody else's Secret of that name is no source of trust.
    if secret.labels().get(keys::OWNER_NAME_LABEL).map(String::as_str) != Some(extension) {
        return None;
    }
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(OwnCertificate {
        ca_pem: text("ca.crt")?,
        cert_pem: text("tls.crt")?,
        key_pem: text("tls.key")?,
    })
}

fn make(request: &CertificateRequest, now: Timestamp) -> Result<OwnCertificate, CertificateError> {
    let issued = issue(&request.service_name, &request.dns_names, now.into(), VALID).map_err(|source| {
        CertificateError::Make {
            secret: request.secret_name.clone(),
            source: Box::new(source),
        }
    })?;
    Ok(OwnCertificate {
        ca_pem: issued.ca_pem,
        cert_pem: issued.certificate_pem,
        key_pem: issued.key_pem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CertificateRequest {
        CertificateRequest {
            secret_name: "s".into(),
            service_name: "svc".into(),
            dns_names: vec!["svc.ns".into(), "svc.ns.svc".into()],
        }
    }

    #[test]
    fn the_leaf_is_signed_by_the_ca_and_good_for_the_service() {
        let now: Timestamp = "2026-02-03T04:05:06Z".parse().unwrap();
        let made = make(&request(), now).unwrap();
        assert!(made.ca_pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(made.key_pem.contains("PRIVATE KEY"));
        let ca = pem(&made.ca_pem);
        let leaf = pem(&made.cert_pem);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(ca).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .unwrap();
        let at = |text: &str| {
            let seconds = text.parse::<Timestamp>().unwrap().as_second();
            let since = Duration::from_secs(seconds.unsigned_abs());
            rustls::pki_types::UnixTime::since_unix_epoch(since)
        };
        let verify = |name: &'static str, time: &str| {
            use rustls::client::danger::ServerCertVerifier as _;
            let name = rustls::pki_types::ServerName::try_from(name).unwrap();
            verifier.verify_server_cert(&leaf, &[], &name, &[], at(time))
        };
        verify("svc.ns.svc", "2026-02-03T04:00:00Z").unwrap();
        verify("svc.ns", "2027-06-01T00:00:00Z").unwrap();
        verify("other.ns.svc", "2026-02-03T05:00:00Z").unwrap_err();
        verify("svc.ns.svc", "2028-03-03T00:00:00Z").unwrap_err();
    }

    fn pem(text: &str) -> rustls::pki_types::CertificateDer<'static> {
        use rustls::pki_types::pem::PemObject as _;
        rustls::pki_types::CertificateDer::from_pem_slice(text.as_bytes()).unwrap()
    }
}
