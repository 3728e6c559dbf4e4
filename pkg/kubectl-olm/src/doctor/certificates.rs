//! Certificates and their days left.

use k8s_openapi::jiff::Timestamp;
use olm_manifests::NAMESPACE;
use x509_parser::pem::Pem;

use super::Certificate;
use crate::finding::{Finding, Severity};

const DAY: i64 = 86_400;
/// Days before the end at which a certificate of another issuer should have been renewed.
const FOREIGN_DAYS: i64 = 14;
/// Days before the end at which a controller should have renewed its own certificate; it renews 120 days before the end.
const OWN_DAYS: i64 = 100;

/// Checks every certificate of every Secret.
pub(crate) fn check(certificates: &[Certificate], now: Timestamp) -> Vec<Finding> {
    certificates
        .iter()
        .filter_map(|certificate| one(certificate, now))
        .collect()
}

fn one(certificate: &Certificate, now: Timestamp) -> Option<Finding> {
    let object = format!("Secret {NAMESPACE}/{}", certificate.secret);
    let renew = if certificate.own {
        format!(
            "kubectl -n {NAMESPACE} delete secret {}: the controller issues a new certificate within 70 seconds; if not, see \
             its log",
            certificate.secret
        )
    } else {
        "see the issuer of the certificate: cert-manager's Certificate, or OpenShift's service-ca".to_owned()
    };
    let Some(pem) = &certificate.pem else {
        let cause = "it does not exist, so the controller cannot serve HTTPS";
        let next = if certificate.own {
            "the controller creates it; see its log".to_owned()
        } else {
            renew
        };
        return Some(Finding::new(Severity::Error, object, cause, next));
    };
    let Some(end) = earliest_end(pem) else {
        return Some(Finding::new(
            Severity::Error,
            object,
            "it holds no readable certificate",
            renew,
        ));
    };
    let days = (end - now.as_second()).div_euclid(DAY);
    let least = if certificate.own { OWN_DAYS } else { FOREIGN_DAYS };
    if days < 0 {
        Some(Finding::new(
            Severity::Error,
            object,
            format!("its certificate expired {} days ago", -days),
            renew,
        ))
    } else if days < least {
        let cause = format!("its certificate expires in {days} days and was not renewed in time");
        Some(Finding::new(Severity::Warning, object, cause, renew))
    } else {
        None
    }
}

/// Returns the second at which the first of the certificates expires; none if one of them cannot be read.
fn earliest_end(pem: &[u8]) -> Option<i64> {
    let mut earliest: Option<i64> = None;
    for block in Pem::iter_from_buffer(pem) {
        let block = block.ok()?;
        let certificate = block.parse_x509().ok()?;
        let end = certificate.validity().not_after.timestamp();
        earliest = Some(earliest.map_or(end, |before| before.min(end)));
    }
    earliest
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn after(days: u64, own: bool) -> Option<(Severity, String)> {
        let validity = Duration::from_hours(365 * 24);
        let issued = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let issued_pem = olm_runtime::tls::issue("test", &["test".to_owned()], issued, validity).unwrap();
        let certificate = Certificate {
            secret: "certificate".to_owned(),
            own,
            pem: Some(issued_pem.certificate_pem.into_bytes()),
        };
        let now = 1_700_000_000 + i64::try_from(days).unwrap() * DAY;
        one(&certificate, Timestamp::from_second(now).unwrap())
            .map(|finding| (finding.severity, finding.cause))
    }

    #[test]
    fn days_left() {
        let soon = |days| {
            let cause = format!("its certificate expires in {days} days and was not renewed in time");
            Some((Severity::Warning, cause))
        };
        assert_eq!(after(0, true), None);
        assert_eq!(after(300, true), soon(65));
        assert_eq!(after(300, false), None);
        assert_eq!(after(360, false), soon(5));
        let expired = Some((Severity::Error, "its certificate expired 5 days ago".to_owned()));
        assert_eq!(after(370, false), expired);
    }

    #[test]
    fn absent_and_unreadable() {
        let finding = |pem: Option<&[u8]>| {
            let certificate = Certificate {
                pem: pem.map(<[u8]>::to_vec),
                ..Certificate::default()
            };
            one(&certificate, Timestamp::UNIX_EPOCH).map(|finding| finding.severity)
        };
        assert_eq!(finding(None), Some(Severity::Error));
        assert_eq!(finding(Some(b"nothing")), Some(Severity::Error));
    }
}
