//! Certificates of one run: a CA and what it signed. They live for ten years and matter to nobody.

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
    /// Makes a new one, with its own key.
    ///
    /// # Errors
    /// When the key cannot be made.
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

    /// The CA's certificate, PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server's certificate for these host names and addresses.
    ///
    /// # Errors
    /// When a name is no valid one.
    pub fn server(&self, names: &[&str]) -> Result<Pair> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let common_name = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names).context("cannot describe the server's certificate")?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A client's certificate: the API server takes the common name for the user, the organization for the group.
    ///
    /// # Errors
    /// When it cannot be signed.
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

/// A key pair for signing service account tokens: the private key and the public key, both PEM.
///
/// # Errors
/// When the key cannot be made.
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate().context("cannot make the key of the service account tokens")?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
