//! Certificate resolver for rustls, called at each handshake.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::TlsError;

/// Holder of the current certificate.
#[derive(Debug)]
pub(super) struct CertificateResolver(RwLock<Arc<CertifiedKey>>);

impl CertificateResolver {
    pub(super) fn new(key: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(key)))
    }

    /// Replaces the certificate from the next handshake on.
    pub(super) fn swap(&self, key: CertifiedKey) {
        *self.0.write() = Arc::new(key);
    }
}

#[cfg(test)]
impl CertificateResolver {
    /// Returns the first certificate of the current chain.
    pub(super) fn current(&self) -> Vec<u8> {
        self.0.read().cert[0].to_vec()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

/// Parses a chain and its key from PEM and checks that they match.
pub(super) fn certified_key(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(certificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem {
        what: "private key",
        source,
    })?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::aws_lc_rs::default_provider())
        .map_err(TlsError::Unusable)
}

/// Parses all certificates of a PEM text.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem {
            what: "certificate",
            source,
        })
}
