//! Issues a serving certificate with a certificate authority of its own.
//!
//! The authority's key is never stored, so that it cannot sign a second certificate; a renewal creates a new
//! authority.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::TlsError;

/// Tolerance for clocks that are behind: certificates are valid from this much earlier.
const CLOCK_SKEW: Duration = Duration::from_hours(1);

/// A serving certificate with its certificate authority; all PEM.
#[derive(Clone)]
pub struct Issued {
    /// Certificate of the authority.
    pub ca_pem: String,
    /// Serving certificate.
    pub certificate_pem: String,
    /// Private key of the serving certificate, PKCS#8.
    pub key_pem: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued")
            .field("ca_pem", &self.ca_pem)
            .finish_non_exhaustive()
    }
}

/// Issues a serving certificate for these DNS names or addresses, valid from `now` on.
///
/// # Errors
/// A name is no DNS name, or the system provides no randomness.
pub fn issue(
    common_name: &str,
    names: &[String],
    now: SystemTime,
    validity: Duration,
) -> Result<Issued, TlsError> {
    let params = |names: Vec<String>, common_name: String| {
        let mut params = CertificateParams::new(names)?;
        params.not_before = (now - CLOCK_SKEW).into();
        params.not_after = (now + validity).into();
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params
            .distinguished_name
            .push(DnType::OrganizationName, "operator-framework.io");
        Ok::<_, rcgen::Error>(params)
    };
    let issue = || {
        let mut ca = params(Vec::new(), format!("{common_name} authority"))?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let mut leaf = params(names.to_vec(), common_name.to_owned())?;
        leaf.is_ca = IsCa::ExplicitNoCa;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &ca)?;
        Ok(Issued {
            ca_pem: ca.pem(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    };
    issue().map_err(TlsError::Issue)
}
