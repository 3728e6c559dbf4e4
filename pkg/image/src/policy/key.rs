//! Public keys and their signatures: ECDSA on P-256 over SHA-256, cosign's default.

use std::fmt;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls_pki_types::{SubjectPublicKeyInfoDer, pem::PemObject as _};
use serde::{Serialize, Serializer};

use super::{
    Statement,
    identity::{self, SignedIdentity},
};
use crate::{
    reference::{Digest, Reference},
    registry::Signature,
};

/// DER prefix of every uncompressed P-256 key: the algorithm `id-ecPublicKey` with the curve `prime256v1` (RFC 5480),
/// and the header of the bit string.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Size of the point: a byte for its form and two coordinates.
const POINT: usize = 65;

/// Public key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Parses a key from PEM (`BEGIN PUBLIC KEY`).
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, &'static str> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| "it is no PEM public key")?;
        match der.strip_prefix(&P256) {
            Some(point) if point.len() == POINT => Ok(Self(point.to_vec())),
            _ => Err("it is no ECDSA key on the curve P-256, the one kind that is supported"),
        }
    }

    /// Verifies a signature (ASN.1 in base64) of the message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature.trim()) else {
            return false;
        };
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.0)
            .verify(message, &signature)
            .is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

/// Requirement for a signature: by any of the keys, for the right name.
#[derive(Debug, Serialize)]
pub(super) struct SigstoreKeys {
    pub(super) keys: Vec<PublicKey>,
    pub(super) identity: SignedIdentity,
}

impl SigstoreKeys {
    /// Checks that a signature is by one of these keys for this image. The statement is not parsed before the signature
    /// is verified.
    pub(super) fn accepts(
        &self,
        requested: &Reference,
        digests: &[&Digest],
        signature: &Signature,
    ) -> Result<(), String> {
        let signed = |key: &PublicKey| key.verifies(&signature.payload, &signature.signature);
        if !self.keys.iter().any(signed) {
            return Err("a signature is by none of the trusted keys".to_owned());
        }
        let statement = Statement::parse(&signature.payload)?;
        if !identity::digest_fits(statement.digest(), digests) {
            return Err("a signature is for other content".to_owned());
        }
        if !self.identity.accepts(requested, statement.reference()) {
            return Err(format!(
                "a signature is for the name {:?}, not for {requested}",
                statement.reference()
            ));
        }
        Ok(())
    }
}
