//! Serving certificates of bundles' webhooks, issued by operator-controller if the cluster has no other issuer.
//!
//! Keys are stored in the bundle's own Secret object and nowhere else. The next revision reads them from there, so an upgrade keeps the
//! certificates that clients trust.
//!
//! A new revision renews the certificates once a year, and the API server accepts the webhook at every moment: each Secret holds the
//! present certificate and the next one, and the CAs of both are trusted from the beginning. A renewal promotes the next certificate
//! and prepares another. The CA of the former certificate stays trusted until the following renewal, for pods that still serve it.
//! Pods carry a fingerprint of their certificate, so a renewal restarts them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use olm_api::keys;
use olm_api::names::Segment;
use olm_bundle::{CertificateRequest, NextCertificate, OwnCertificate};
use olm_decide::extension::Revision;
use olm_runtime::tls::{Issued, TlsError, is_trusted, issue};
use thiserror::Error;

use crate::cluster_extension::call::{CallError, call};

const DAY: Duration = Duration::from_hours(24);
/// Default lifetime of certificates.
const LIFETIME: Lifetime = Lifetime {
    valid: DAY.saturating_mul(1095),
    renew: DAY.saturating_mul(365),
};

/// Lifetime of certificates.
#[derive(Clone, Copy, Debug)]
struct Lifetime {
    /// Validity: a certificate waits for one renewal and is used until the next, and both may be late.
    valid: Duration,
    /// Interval between renewals.
    renew: Duration,
}

impl Lifetime {
    /// Returns the validity that is left when a certificate is due for renewal, which was prepared one interval before its use.
    fn spare(self) -> Duration {
        self.valid.saturating_sub(self.renew * 2)
    }
}

/// Failure to read or issue certificates.
#[derive(Debug, Error)]
pub(crate) enum CertificateError {
    /// The present certificates cannot be read.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A new certificate cannot be issued.
    #[error("making the webhook certificate for Secret \"{secret}\"")]
    Make {
        /// Secret of the certificate.
        secret: String,
        /// Cause.
        #[source]
        source: Box<TlsError>,
    },
}

/// Certificates to render into the Secrets and webhooks of one revision.
pub(crate) struct Certificates {
    /// Certificates by name of the Secret.
    pub by_secret: BTreeMap<String, OwnCertificate>,
    /// Time of the next renewal.
    pub renewal: Timestamp,
}

/// Returns the certificates for `requests`: the present ones until their renewal is due, then the prepared ones.
pub(crate) async fn obtain(
    client: &Client,
    extension: &str,
    namespace: &str,
    requests: &[CertificateRequest],
    newest: Option<&Revision>,
    now: Timestamp,
) -> Result<Certificates, CertificateError> {
    let due = newest
        .and_then(|revision| revision.renewal.as_deref())
        .and_then(|due| due.parse::<Timestamp>().ok());
    let kept = kept(client, extension, namespace, requests).await?;
    provide(requests, &kept, due, now, LIFETIME)
}

/// Reads the certificates of this extension from the cluster.
async fn kept(
    client: &Client,
    extension: &str,
    namespace: &str,
    requests: &[CertificateRequest],
) -> Result<BTreeMap<String, OwnCertificate>, CertificateError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut found = BTreeMap::new();
    for request in requests {
        // No Secret can have an invalid name; the check of the rendered objects refuses it.
        let Ok(name) = Segment::new(&request.secret_name) else {
            continue;
        };
        let what = format!("reading Secret {namespace}/{}", request.secret_name);
        let secret = match call(what, api.get_opt(&name)).await {
            // The check of rights, which needs the rendered objects, reports the missing right.
            Err(error) if error.is_forbidden() => None,
            answer => answer?,
        };
        if let Some(certificate) = secret.as_ref().and_then(|secret| certificate(secret, extension)) {
            found.insert(request.secret_name.clone(), certificate);
        }
    }
    Ok(found)
}

/// Keeps, renews or issues each certificate.
fn provide(
    requests: &[CertificateRequest],
    kept: &BTreeMap<String, OwnCertificate>,
    due: Option<Timestamp>,
    now: Timestamp,
    lifetime: Lifetime,
) -> Result<Certificates, CertificateError> {
    let in_time = due.filter(|due| *due > now);
    let lasting = due.is_none_or(|due| lasts(due, now, lifetime));
    let mut by_secret = BTreeMap::new();
    for request in requests {
        let certificate = match (kept.get(&request.secret_name), in_time) {
            (Some(certificate), Some(due)) if serves_until(request, certificate, due, now, lifetime) => {
                certificate.clone()
            }
            (Some(certificate), None) if lasting => renew(request, certificate, now, lifetime)?,
            // Too late, or the renewal that set the time of the next one was never applied, or others changed the Secret.
            (Some(certificate), _) => replace(request, certificate, now, lifetime)?,
            (None, _) => make(request, now, lifetime)?,
        };
        by_secret.insert(request.secret_name.clone(), certificate);
    }
    let renewal = match in_time {
        Some(due) if !kept.is_empty() => due,
        // Only the end of the calendar is out of range.
        _ => now.checked_add(lifetime.renew).unwrap_or(Timestamp::MAX),
    };
    Ok(Certificates { by_secret, renewal })
}

/// Returns true if the certificate is good now and well beyond its renewal at `due`, which can be late.
fn serves_until(
    request: &CertificateRequest,
    certificate: &OwnCertificate,
    due: Timestamp,
    now: Timestamp,
    lifetime: Lifetime,
) -> bool {
    let good = |at: Timestamp| {
        let (ca, served) = (certificate.ca_pem.as_bytes(), certificate.cert_pem.as_bytes());
        is_trusted(ca, served, &request.dns_names, at.into())
    };
    let late = due.checked_add(lifetime.spare() / 2);
    good(now) && late.is_ok_and(good)
}

/// Returns true if a prepared certificate whose renewal was `due` is valid until the renewal after this one. A former revision, or a
/// cluster that was off for long, can be years late.
fn lasts(due: Timestamp, now: Timestamp, lifetime: Lifetime) -> bool {
    due.checked_add(lifetime.spare())
        .is_ok_and(|latest| now <= latest)
}

/// Issues certificates in place of old ones; the CA that pods still serve stays trusted.
fn replace(
    request: &CertificateRequest,
    old: &OwnCertificate,
    now: Timestamp,
    lifetime: Lifetime,
) -> Result<OwnCertificate, CertificateError> {
    let mut made = make(request, now, lifetime)?;
    let served = authorities(&old.ca_pem);
    made.ca_pem.extend(served.first().map(String::as_str));
    Ok(made)
}

/// Promotes the next certificate and prepares another.
fn renew(
    request: &CertificateRequest,
    old: &OwnCertificate,
    now: Timestamp,
    lifetime: Lifetime,
) -> Result<OwnCertificate, CertificateError> {
    let authorities = authorities(&old.ca_pem);
    let (Some(next), Some(previous), Some(coming)) = (&old.next, authorities.first(), authorities.get(1))
    else {
        // Former versions prepared no next certificate.
        return replace(request, old, now, lifetime);
    };
    let after = signed(request, now, lifetime)?;
    Ok(OwnCertificate {
        ca_pem: [coming, &after.ca_pem, previous].map(String::as_str).concat(),
        cert_pem: next.cert_pem.clone(),
        key_pem: next.key_pem.clone(),
        next: Some(NextCertificate {
            cert_pem: after.certificate_pem,
            key_pem: after.key_pem,
        }),
    })
}

/// Splits concatenated PEM certificates; each keeps its line end.
fn authorities(pem: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let parts = pem.split_inclusive(END).filter(|part| part.contains(END));
    parts.map(|part| format!("{}\n", part.trim())).collect()
}

fn certificate(secret: &Secret, extension: &str) -> Option<OwnCertificate> {
    // A Secret of another owner is not trusted.
    if secret.labels().get(keys::OWNER_NAME_LABEL).map(String::as_str) != Some(extension) {
        return None;
    }
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(OwnCertificate {
        ca_pem: text("ca.crt")?,
        cert_pem: text("tls.crt")?,
        key_pem: text("tls.key")?,
        next: text("next.crt")
            .zip(text("next.key"))
            .map(|(cert_pem, key_pem)| NextCertificate { cert_pem, key_pem }),
    })
}

fn signed(
    request: &CertificateRequest,
    now: Timestamp,
    lifetime: Lifetime,
) -> Result<Issued, CertificateError> {
    issue(
        &request.service_name,
        &request.dns_names,
        now.into(),
        lifetime.valid,
    )
    .map_err(|source| CertificateError::Make {
        secret: request.secret_name.clone(),
        source: Box::new(source),
    })
}

/// Issues a certificate and its successor, each with its own CA.
fn make(
    request: &CertificateRequest,
    now: Timestamp,
    lifetime: Lifetime,
) -> Result<OwnCertificate, CertificateError> {
    let first = signed(request, now, lifetime)?;
    let next = signed(request, now, lifetime)?;
    // Split and joined again, so that order and line ends are those that a renewal expects.
    let trusted = [first.ca_pem, next.ca_pem].map(|pem| authorities(&pem).concat());
    Ok(OwnCertificate {
        ca_pem: trusted.concat(),
        cert_pem: first.certificate_pem,
        key_pem: first.key_pem,
        next: Some(NextCertificate {
            cert_pem: next.certificate_pem,
            key_pem: next.key_pem,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Lifetime = Lifetime {
        valid: Duration::from_mins(30),
        renew: Duration::from_mins(10),
    };

    fn requests() -> Vec<CertificateRequest> {
        vec![CertificateRequest {
            secret_name: "s".into(),
            service_name: "svc".into(),
            dns_names: vec!["svc.ns".into(), "svc.ns.svc".into()],
        }]
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn trusts(ca_pem: &str, cert_pem: &str, name: &str, time: Timestamp) -> bool {
        is_trusted(
            ca_pem.as_bytes(),
            cert_pem.as_bytes(),
            &[name.to_owned()],
            time.into(),
        )
    }

    #[test]
    fn the_leaf_is_signed_by_the_ca_and_good_for_the_service() {
        let now = at("2026-02-03T04:05:06Z");
        let made = make(&requests()[0], now, LIFETIME).unwrap();
        assert!(made.key_pem.contains("PRIVATE KEY"));
        let is_good = |name, time| trusts(&made.ca_pem, &made.cert_pem, name, at(time));
        assert!(is_good("svc.ns.svc", "2026-02-03T04:00:00Z"));
        assert!(is_good("svc.ns", "2028-06-01T00:00:00Z"));
        assert!(!is_good("other.ns.svc", "2026-02-03T05:00:00Z"));
        assert!(!is_good("svc.ns.svc", "2029-03-03T00:00:00Z"));
    }

    #[test]
    fn renewals_leave_no_moment_without_trust() {
        let mut now = at("2026-02-03T04:05:06Z");
        let mut before = provide(&requests(), &BTreeMap::new(), None, now, SHORT).unwrap();
        for _ in 0..4 {
            let still = now.checked_add(Duration::from_mins(9)).unwrap();
            let kept = provide(&requests(), &before.by_secret, Some(before.renewal), still, SHORT).unwrap();
            assert!(kept.by_secret == before.by_secret && kept.renewal == before.renewal);

            now = before.renewal;
            let after = provide(&requests(), &before.by_secret, Some(before.renewal), now, SHORT).unwrap();
            let (old, new) = (&before.by_secret["s"], &after.by_secret["s"]);
            assert!(old.cert_pem != new.cert_pem && old.key_pem != new.key_pem && after.renewal > now);
            for (ca, leaf) in [(old, new), (new, old), (new, new)] {
                assert!(trusts(&ca.ca_pem, &leaf.cert_pem, "svc.ns.svc", now));
            }
            // Until the next renewal, and well beyond.
            let late = after.renewal.checked_add(Duration::from_mins(9)).unwrap();
            assert!(trusts(&new.ca_pem, &new.cert_pem, "svc.ns.svc", late));
            assert_eq!(authorities(&new.ca_pem).len(), 3);
            before = after;
        }
    }

    #[test]
    fn a_renewal_that_is_years_late_promotes_no_certificate_that_expires() {
        let start = at("2026-02-03T04:05:06Z");
        let first = provide(&requests(), &BTreeMap::new(), None, start, SHORT).unwrap();
        let (old, due) = (&first.by_secret["s"], first.renewal);
        for (late, promoted) in [(10, true), (11, false), (19, false), (60, false)] {
            let now = due.checked_add(Duration::from_mins(late)).unwrap();
            let after = provide(&requests(), &first.by_secret, Some(due), now, SHORT).unwrap();
            let new = &after.by_secret["s"];
            let next = old.next.as_ref().map(|next| next.cert_pem.as_str());
            assert_eq!(next == Some(new.cert_pem.as_str()), promoted, "{late}");
            let until = after.renewal.checked_sub(Duration::from_secs(1)).unwrap();
            assert!(trusts(&new.ca_pem, &new.cert_pem, "svc.ns.svc", now), "{late}");
            assert!(trusts(&new.ca_pem, &new.cert_pem, "svc.ns.svc", until), "{late}");
            assert!(
                late > 19 || trusts(&new.ca_pem, &old.cert_pem, "svc.ns.svc", now),
                "{late}"
            );
        }
    }

    #[test]
    fn certificates_without_a_next_one_are_renewed_too() {
        let now = at("2026-02-03T04:05:06Z");
        let mut old = make(&requests()[0], now, SHORT).unwrap();
        old.ca_pem = authorities(&old.ca_pem)[0].clone();
        old.next = None;
        let kept = BTreeMap::from([("s".to_owned(), old.clone())]);
        let new = &provide(&requests(), &kept, None, now, SHORT).unwrap().by_secret["s"];
        assert!(new.next.is_some() && trusts(&new.ca_pem, &old.cert_pem, "svc.ns", now));
        assert!(trusts(&new.ca_pem, &new.cert_pem, "svc.ns", now));
    }

    #[test]
    fn one_more_deployment_changes_nothing_for_the_others() {
        let now = at("2026-02-03T04:05:06Z");
        let first = provide(&requests(), &BTreeMap::new(), None, now, SHORT).unwrap();
        let mut more = requests();
        more.push(CertificateRequest {
            secret_name: "t".into(),
            ..more[0].clone()
        });
        let both = provide(&more, &first.by_secret, Some(first.renewal), now, SHORT).unwrap();
        assert!(both.by_secret["s"] == first.by_secret["s"] && both.by_secret.contains_key("t"));
        assert_eq!(both.renewal, first.renewal);
    }

    #[test]
    fn a_renewal_that_was_never_applied_is_made_up_for() {
        let start = at("2026-02-03T04:05:06Z");
        let first = provide(&requests(), &BTreeMap::new(), None, start, SHORT).unwrap();
        let used = provide(
            &requests(),
            &first.by_secret,
            Some(first.renewal),
            first.renewal,
            SHORT,
        )
        .unwrap();
        // The revision after that has another time of renewal, and its Secrets were never applied.
        let lost = provide(
            &requests(),
            &used.by_secret,
            Some(used.renewal),
            used.renewal,
            SHORT,
        )
        .unwrap();
        let now = used.renewal.checked_add(Duration::from_mins(1)).unwrap();
        let made_up = provide(&requests(), &used.by_secret, Some(lost.renewal), now, SHORT).unwrap();
        let (old, new) = (&used.by_secret["s"], &made_up.by_secret["s"]);
        assert!(old.cert_pem != new.cert_pem && trusts(&new.ca_pem, &old.cert_pem, "svc.ns.svc", now));
        let late = made_up.renewal.checked_add(Duration::from_mins(5)).unwrap();
        assert!(trusts(&new.ca_pem, &new.cert_pem, "svc.ns.svc", late));
    }
}
