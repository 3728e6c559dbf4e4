//! An own certificate in a Secret that all replicas share.
//!
//! Who finds the Secret missing or its certificate due makes a new one and writes it with the
//! resource version it read; who loses that race adopts the winner's. `ca.crt` holds the new
//! authority and the former one, so that a client that read it earlier or later than a replica
//! keeps working through the change.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PostParams};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
};
use rustls_pki_types::{ServerName, UnixTime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    TlsError, issue,
    resolver::{Live, certificates, certified_key},
};

/// The Secret in the system namespace that catalogd keeps its own certificate in.
pub const CATALOGD_OWN_CERT: &str = "catalogd-service-own-cert";
/// The same for operator-controller, which serves metrics with it.
pub const OPERATOR_CONTROLLER_OWN_CERT: &str = "operator-controller-service-own-cert";

/// How long a certificate is valid.
const VALIDITY: Duration = Duration::from_hours(365 * 24);
/// A certificate with less than this left is replaced.
const RENEW_BEFORE: Duration = Duration::from_hours(120 * 24);
/// How often the Secret is looked at.
const POLL: Duration = Duration::from_mins(1);
/// How long one call to the API server may take.
const CALL: Duration = Duration::from_secs(15);
/// Races lost in a row before giving up for now.
const TRIES: usize = 8;

/// Which certificate is kept where.
#[derive(Clone, Debug)]
pub struct OwnCertificate {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// DNS names and addresses the certificate is for; the first is its common name.
    pub names: Vec<String>,
    /// Labels put on the Secret when it is made.
    pub labels: BTreeMap<String, String>,
}

/// The PEM texts of a Secret.
struct Stored {
    ca: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Stored {
    fn of(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let get = |key: &str| data.get(key).map(|bytes| bytes.0.clone());
        Some(Self {
            ca: get("ca.crt")?,
            certificate: get("tls.crt")?,
            key: get("tls.key")?,
        })
    }

    /// Whether it serves all `names` with an authority of its own, still at the time `at`.
    fn good(&self, names: &[String], at: SystemTime) -> bool {
        let Ok(since_epoch) = at.duration_since(SystemTime::UNIX_EPOCH) else {
            return false;
        };
        let (Ok(authorities), Ok(chain)) = (certificates(&self.ca), certificates(&self.certificate)) else {
            return false;
        };
        let Some((leaf, intermediates)) = chain.split_first() else {
            return false;
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()
        else {
            return false;
        };
        certified_key(&self.certificate, &self.key).is_ok()
            && names.iter().all(|name| {
                ServerName::try_from(name.as_str()).is_ok_and(|name| {
                    let at = UnixTime::since_unix_epoch(since_epoch);
                    verifier
                        .verify_server_cert(leaf, intermediates, &name, &[], at)
                        .is_ok()
                })
            })
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

    fn unsettled(&self) -> TlsError {
        TlsError::Unsettled {
            namespace: self.namespace.clone(),
            name: self.secret.clone(),
        }
    }

    /// The Secret's certificate when it is good; else a new one, written or lost to another
    /// replica that then has the word.
    async fn settle(&self, api: &Api<Secret>, now: SystemTime) -> Result<Stored, TlsError> {
        for _ in 0..TRIES {
            let found = timeout(CALL, api.get_opt(&self.secret))
                .await
                .map_err(|_| self.unsettled())?
                .map_err(self.failed("read"))?;
            let stored = found.as_ref().and_then(Stored::of);
            if let Some(stored) = stored
                && stored.good(&self.names, now + RENEW_BEFORE)
            {
                return Ok(stored);
            }
            let former = found.as_ref().and_then(Stored::of).map(|stored| stored.ca);
            let (secret, made) = self.renewed(found, former.as_deref(), now)?;
            let params = PostParams::default();
            let write = async {
                if secret.metadata.resource_version.is_some() {
                    api.replace(&self.secret, &params, &secret).await
                } else {
                    api.create(&params, &secret).await
                }
            };
            match timeout(CALL, write).await.map_err(|_| self.unsettled())? {
                Ok(_) => {
                    tracing::info!(secret = self.secret, "own serving certificate made");
                    return Ok(made);
                }
                // Another replica was first, or the Secret went away in between: look again.
                Err(kube::Error::Api(status))
                    if status.is_conflict() || status.is_already_exists() || status.is_not_found() => {}
                Err(error) => return Err(self.failed("written")(error)),
            }
        }
        Err(self.unsettled())
    }

    fn renewed(
        &self,
        found: Option<Secret>,
        former_ca: Option<&[u8]>,
        now: SystemTime,
    ) -> Result<(Secret, Stored), TlsError> {
        let common_name = self.names.first().map_or(self.secret.as_str(), String::as_str);
        let issued = issue(common_name, &self.names, now, VALIDITY)?;
        let mut ca = issued.ca_pem.into_bytes();
        // Only the newest of the former ones: the list does not grow.
        if let Some(former) = former_ca.and_then(first_certificate) {
            ca.extend_from_slice(former.as_bytes());
        }
        let stored = Stored {
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

/// The first certificate of a PEM text, as text.
fn first_certificate(pem: &[u8]) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(pem).ok()?;
    certificates(pem).ok()?;
    let end = text.find(END)?;
    text.get(..end + END.len()).map(|first| format!("{first}\n"))
}

pub(super) async fn serve(
    client: Client,
    own: OwnCertificate,
    shutdown: CancellationToken,
) -> Result<Arc<Live>, TlsError> {
    let api: Api<Secret> = Api::namespaced(client, &own.namespace);
    let stored = own.settle(&api, SystemTime::now()).await?;
    let live = Arc::new(Live::new(certified_key(&stored.certificate, &stored.key)?));
    tokio::spawn(keep(api, own, stored.certificate, live.clone(), shutdown));
    Ok(live)
}

async fn keep(
    api: Api<Secret>,
    own: OwnCertificate,
    mut serving: Vec<u8>,
    live: Arc<Live>,
    shutdown: CancellationToken,
) {
    loop {
        let jitter = Duration::from_millis(rand::random_range(0..10_000));
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(POLL + jitter) => {}
        }
        let settled = own.settle(&api, SystemTime::now()).await.and_then(|stored| {
            let key = certified_key(&stored.certificate, &stored.key)?;
            Ok((stored, key))
        });
        match settled {
            Ok((stored, key)) if stored.certificate != serving => {
                live.swap(key);
                serving = stored.certificate;
                tracing::info!(secret = own.secret, "own serving certificate replaced");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(
                error = %crate::telemetry::chain(&error),
                "the former serving certificate stays"
            ),
        }
    }
}

/// The authorities, PEM, that vouch for catalogd's own certificate; `None` when catalogd has not
/// made one (yet).
///
/// # Errors
/// The Secret cannot be read.
pub async fn own_ca(client: &Client, namespace: &str) -> Result<Option<String>, TlsError> {
    let own = OwnCertificate {
        namespace: namespace.to_owned(),
        secret: CATALOGD_OWN_CERT.to_owned(),
        names: Vec::new(),
        labels: BTreeMap::new(),
    };
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = timeout(CALL, api.get_opt(CATALOGD_OWN_CERT))
        .await
        .map_err(|_| own.unsettled())?
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
    fn a_made_certificate_is_good_until_it_is_due() {
        let (own, now) = (own(), SystemTime::now());
        let (secret, stored) = own.renewed(None, None, now).unwrap();
        assert!(Stored::of(&secret).unwrap().good(&own.names, now + RENEW_BEFORE));
        assert!(stored.good(&own.names, now + VALIDITY - Duration::from_mins(1)));
        assert!(!stored.good(&own.names, now + VALIDITY + Duration::from_mins(1)));
        assert!(!stored.good(&["other.svc".to_owned()], now));
    }

    #[test]
    fn renewal_keeps_one_former_authority() {
        let (own, now) = (own(), SystemTime::now());
        let (_, first) = own.renewed(None, None, now).unwrap();
        let (secret, second) = own.renewed(None, Some(&first.ca), now).unwrap();
        assert_eq!(certificates(&second.ca).unwrap().len(), 2);
        let (secret, third) = own.renewed(Some(secret), Some(&second.ca), now).unwrap();
        assert_eq!(certificates(&third.ca).unwrap().len(), 2);
        // A client that knows only the newest list trusts the former replica's certificate too.
        let former = Stored {
            ca: third.ca.clone(),
            ..second
        };
        assert!(former.good(&own.names, now));
        assert!(Stored::of(&secret).unwrap().good(&own.names, now));
    }

    #[test]
    fn a_mismatched_or_broken_secret_is_not_good() {
        let (own, now) = (own(), SystemTime::now());
        let (_, a) = own.renewed(None, None, now).unwrap();
        let (_, b) = own.renewed(None, None, now).unwrap();
        assert!(
            !Stored {
                ca: b.ca.clone(),
                certificate: a.certificate.clone(),
                key: a.key.clone()
            }
            .good(&own.names, now)
        );
        assert!(
            !Stored {
                ca: a.ca.clone(),
                certificate: a.certificate.clone(),
                key: b.key
            }
            .good(&own.names, now)
        );
        assert!(
            !Stored {
                ca: b"x".to_vec(),
                certificate: a.certificate,
                key: a.key
            }
            .good(&own.names, now)
        );
    }
}
