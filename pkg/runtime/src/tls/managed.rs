//! Self-managed certificate in a Secret that all replicas share.
//!
//! A replica that finds the Secret missing or its certificate due for renewal issues a new one, and writes it with
//! the resource version it read; a replica that loses this race adopts the winner's. `ca.crt` holds the new
//! authority and the former one, so that clients and replicas that read different versions still trust each other
//! during the change.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PostParams};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    TlsError, issue,
    resolver::{CertificateResolver, certificates, certified_key},
    trust::is_trusted,
};

/// Secret in the system namespace with catalogd's self-managed certificate. The manifests create it empty, because catalogd has no right to
/// create Secrets.
pub const CATALOGD_OWN_CERT: &str = "catalogd-service-own-cert";
/// Secret in the system namespace with operator-controller's self-managed certificate, for its metrics.
pub const OPERATOR_CONTROLLER_OWN_CERT: &str = "operator-controller-service-own-cert";
/// Secret in the system namespace with the self-managed certificate of the web pages. The manifests create it empty, too.
pub const UI_OWN_CERT: &str = "olmv1-ui-own-cert";

/// Validity of a certificate.
const VALIDITY: Duration = Duration::from_hours(365 * 24);
/// Remaining validity below which a certificate is renewed.
const RENEW_BEFORE: Duration = Duration::from_hours(120 * 24);
/// Interval of checks of the Secret.
const POLL: Duration = Duration::from_mins(1);
/// Timeout for a call to the API server.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of lost races in a row.
const MAX_ATTEMPTS: usize = 8;

/// Settings of a self-managed certificate.
#[derive(Clone, Debug)]
pub struct OwnCertificate {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// DNS names and addresses of the certificate; the first one is its common name.
    pub names: Vec<String>,
    /// Labels of the Secret at its creation.
    pub labels: BTreeMap<String, String>,
}

/// Certificate, its key and its authority as PEM texts, read from the Secret.
struct StoredCertificate {
    ca: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl StoredCertificate {
    fn of(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let get = |key: &str| data.get(key).map(|bytes| bytes.0.clone());
        Some(Self {
            ca: get("ca.crt")?,
            certificate: get("tls.crt")?,
            key: get("tls.key")?,
        })
    }

    /// Returns true if the certificate is valid for all `names`, and not due for renewal.
    ///
    /// Both times count: a replica whose clock was ahead writes a certificate that is not valid yet. Replicas still
    /// agree, because the clock furthest behind decides, and its certificate is valid for the other replicas, too.
    fn is_current(&self, names: &[String], now: SystemTime) -> bool {
        self.is_valid(names, now) && self.is_valid(names, now + RENEW_BEFORE)
    }

    /// Returns true if the certificate is valid for all `names` at the time `at`, by its own authority.
    fn is_valid(&self, names: &[String], at: SystemTime) -> bool {
        certified_key(&self.certificate, &self.key).is_ok()
            && is_trusted(&self.ca, &self.certificate, names, at)
    }
}

impl OwnCertificate {
    fn failed(&self, action: &'static str) -> impl Fn(kube::Error) -> TlsError {
        let (namespace, name) = (self.namespace.clone(), self.secret.clone());
        move |source| TlsError::Secret {
            namespace: namespace.clone(),
            name: name.clone(),
            action,
            source: Box::new(source),
        }
    }

    fn timed_out(&self) -> TlsError {
        TlsError::SecretTimeout {
            namespace: self.namespace.clone(),
            name: self.secret.clone(),
        }
    }

    /// Returns the Secret's certificate if it is current, else a new one that is written to the Secret. If another
    /// replica writes first, its certificate wins.
    async fn ensure(&self, api: &Api<Secret>, now: SystemTime) -> Result<StoredCertificate, TlsError> {
        for _ in 0..MAX_ATTEMPTS {
            let found = timeout(CALL_TIMEOUT, api.get_opt(&self.secret))
                .await
                .map_err(|_| self.timed_out())?
                .map_err(self.failed("read"))?;
            let stored = found.as_ref().and_then(StoredCertificate::of);
            if let Some(stored) = stored
                && stored.is_current(&self.names, now)
            {
                return Ok(stored);
            }
            let former = found
                .as_ref()
                .and_then(StoredCertificate::of)
                .map(|stored| stored.ca);
            let (secret, issued) = self.renewed(found, former.as_deref(), now)?;
            let params = PostParams::default();
            let is_new = secret.metadata.resource_version.is_none();
            let write = async {
                if is_new {
                    api.create(&params, &secret).await
                } else {
                    api.replace(&self.secret, &params, &secret).await
                }
            };
            match timeout(CALL_TIMEOUT, write).await.map_err(|_| self.timed_out())? {
                Ok(_) => {
                    tracing::info!(secret = self.secret, "self-managed serving certificate issued");
                    return Ok(issued);
                }
                // Another replica was first, or the Secret was deleted in between: read again.
                Err(kube::Error::Api(status))
                    if status.is_conflict() || status.is_already_exists() || status.is_not_found() => {}
                Err(kube::Error::Api(status)) if is_new && status.is_forbidden() => {
                    return Err(TlsError::SecretMissing {
                        namespace: self.namespace.clone(),
                        name: self.secret.clone(),
                    });
                }
                Err(error) => return Err(self.failed("written")(error)),
            }
        }
        Err(self.timed_out())
    }

    fn renewed(
        &self,
        found: Option<Secret>,
        former_ca: Option<&[u8]>,
        now: SystemTime,
    ) -> Result<(Secret, StoredCertificate), TlsError> {
        let common_name = self.names.first().map_or(self.secret.as_str(), String::as_str);
        let issued = issue(common_name, &self.names, now, VALIDITY)?;
        let mut ca = issued.ca_pem.into_bytes();
        // Only the newest former authority: the list does not grow.
        if let Some(former) = former_ca.and_then(first_certificate) {
            ca.extend_from_slice(former.as_bytes());
        }
        let stored = StoredCertificate {
            ca,
            certificate: issued.certificate_pem.into_bytes(),
            key: issued.key_pem.into_bytes(),
        };
        let mut secret = found.unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(self.secret.clone()),
                namespace: Some(self.namespace.clone()),
                labels: Some(self.labels.clone()),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            ..Secret::default()
        });
        let data = secret.data.get_or_insert_default();
        data.insert("ca.crt".to_owned(), ByteString(stored.ca.clone()));
        data.insert("tls.crt".to_owned(), ByteString(stored.certificate.clone()));
        data.insert("tls.key".to_owned(), ByteString(stored.key.clone()));
        Ok((secret, stored))
    }
}

/// Returns the first certificate of a PEM text, as text.
fn first_certificate(pem: &[u8]) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(pem).ok()?;
    certificates(pem).ok()?;
    let end = text.find(END)?;
    text.get(..end + END.len()).map(|first| format!("{first}\n"))
}

pub(super) async fn load_and_renew(
    client: Client,
    own: OwnCertificate,
    shutdown: CancellationToken,
) -> Result<Arc<CertificateResolver>, TlsError> {
    let api: Api<Secret> = Api::namespaced(client, &own.namespace);
    let stored = own.ensure(&api, SystemTime::now()).await?;
    let resolver = Arc::new(CertificateResolver::new(certified_key(
        &stored.certificate,
        &stored.key,
    )?));
    tokio::spawn(renew_periodically(
        api,
        own,
        stored.certificate,
        resolver.clone(),
        shutdown,
    ));
    Ok(resolver)
}

async fn renew_periodically(
    api: Api<Secret>,
    own: OwnCertificate,
    mut serving: Vec<u8>,
    resolver: Arc<CertificateResolver>,
    shutdown: CancellationToken,
) {
    loop {
        let jitter = Duration::from_millis(rand::random_range(0..10_000));
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(POLL + jitter) => {}
        }
        let ensured = own.ensure(&api, SystemTime::now()).await.and_then(|stored| {
            let key = certified_key(&stored.certificate, &stored.key)?;
            Ok((stored, key))
        });
        match ensured {
            Ok((stored, key)) if stored.certificate != serving => {
                resolver.swap(key);
                serving = stored.certificate;
                tracing::info!(secret = own.secret, "self-managed serving certificate replaced");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(
                error = %olm_text::chain(&error),
                "the former serving certificate stays in use"
            ),
        }
    }
}

/// Returns the authorities (PEM) of catalogd's self-managed certificate; `None` if it does not exist (yet).
///
/// # Errors
/// The Secret is unreadable.
pub async fn own_ca(client: &Client, namespace: &str) -> Result<Option<String>, TlsError> {
    let own = OwnCertificate {
        namespace: namespace.to_owned(),
        secret: CATALOGD_OWN_CERT.to_owned(),
        names: Vec::new(),
        labels: BTreeMap::new(),
    };
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = timeout(CALL_TIMEOUT, api.get_opt(CATALOGD_OWN_CERT))
        .await
        .map_err(|_| own.timed_out())?
        .map_err(own.failed("read"))?;
    Ok(secret
        .and_then(|secret| secret.data?.remove("ca.crt"))
        .and_then(|bytes| String::from_utf8(bytes.0).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> OwnCertificate {
        OwnCertificate {
            namespace: "olmv1-system".to_owned(),
            secret: CATALOGD_OWN_CERT.to_owned(),
            names: vec![
                "catalogd-service.olmv1-system.svc".to_owned(),
                "localhost".to_owned(),
            ],
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn an_issued_certificate_is_valid_until_it_expires() {
        let (own, now) = (own(), SystemTime::now());
        let (secret, stored) = own.renewed(None, None, now).unwrap();
        assert!(
            StoredCertificate::of(&secret)
                .unwrap()
                .is_valid(&own.names, now + RENEW_BEFORE)
        );
        assert!(stored.is_valid(&own.names, now + VALIDITY - Duration::from_mins(1)));
        assert!(!stored.is_valid(&own.names, now + VALIDITY + Duration::from_mins(1)));
        assert!(!stored.is_valid(&["other.svc".to_owned()], now));
    }

    #[test]
    fn a_certificate_from_a_clock_that_was_ahead_is_replaced() {
        let (own, now) = (own(), SystemTime::now());
        let issued = |at| own.renewed(None, None, at).unwrap().1;
        let ahead = issued(now + Duration::from_hours(3 * 24));
        assert!(ahead.is_valid(&own.names, now + RENEW_BEFORE));
        assert!(!ahead.is_current(&own.names, now));
        // Replicas whose clocks differ a little keep each other's certificates.
        assert!(issued(now + Duration::from_mins(5)).is_current(&own.names, now));
        assert!(issued(now - Duration::from_mins(5)).is_current(&own.names, now));
        // The replica whose clock is ahead keeps the replacement.
        assert!(issued(now).is_current(&own.names, now + Duration::from_hours(3 * 24)));
    }

    #[test]
    fn renewal_keeps_one_former_authority() {
        let (own, now) = (own(), SystemTime::now());
        let (_, first) = own.renewed(None, None, now).unwrap();
        let (secret, second) = own.renewed(None, Some(&first.ca), now).unwrap();
        assert_eq!(certificates(&second.ca).unwrap().len(), 2);
        let (secret, third) = own.renewed(Some(secret), Some(&second.ca), now).unwrap();
        assert_eq!(certificates(&third.ca).unwrap().len(), 2);
        // A client with only the newest list also trusts the former replica's certificate.
        let former = StoredCertificate {
            ca: third.ca.clone(),
            ..second
        };
        assert!(former.is_valid(&own.names, now));
        assert!(StoredCertificate::of(&secret).unwrap().is_valid(&own.names, now));
    }

    #[test]
    fn a_mismatched_or_broken_secret_is_invalid() {
        let (own, now) = (own(), SystemTime::now());
        let (_, a) = own.renewed(None, None, now).unwrap();
        let (_, b) = own.renewed(None, None, now).unwrap();
        assert!(
            !StoredCertificate {
                ca: b.ca.clone(),
                certificate: a.certificate.clone(),
                key: a.key.clone()
            }
            .is_valid(&own.names, now)
        );
        assert!(
            !StoredCertificate {
                ca: a.ca.clone(),
                certificate: a.certificate.clone(),
                key: b.key
            }
            .is_valid(&own.names, now)
        );
        assert!(
            !StoredCertificate {
                ca: b"x".to_vec(),
                certificate: a.certificate,
                key: a.key
            }
            .is_valid(&own.names, now)
        );
    }
}
