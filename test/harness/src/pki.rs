//! Certificates of one run: a CA and certificates that it signed, valid for ten years.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// # Errors
    /// The key cannot be generated.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).context("cannot describe the CA")?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().context("cannot make the CA's key")?;
        let issuer = CertifiedIssuer::self_signed(params, key).context("cannot sign the CA's certificate")?;
        Ok(Self { issuer })
    }

    /// Returns the CA's certificate, PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a server certificate for these host names and addresses.
    ///
    /// # Errors
    /// A name is invalid.
    pub fn server(&self, names: &[&str]) -> Result<Pair> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let common_name = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names).context("cannot describe the server's certificate")?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// Issues a client certificate: the API server maps the common name to the user, the organization to the group.
    ///
    /// # Errors
    /// The certificate cannot be signed.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        let mut params =
            CertificateParams::new(Vec::new()).context("cannot describe the client's certificate")?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("cannot sign a certificate")?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// Generates a key pair for service account tokens: the private and the public key, both PEM.
///
/// # Errors
/// The key cannot be generated.
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate().context("cannot make the key of the service account tokens")?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
