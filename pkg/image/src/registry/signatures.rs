//! Signatures as cosign attaches them: a separate image, tagged by the signed digest.

use oci_spec::image::ImageManifest;

use super::RegistryError;
use super::Session;
use crate::reference::Digest;

/// Media type of a signed statement.
const PAYLOAD_KIND: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Annotation with the signature of a statement.
const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// Maximum number of signatures; further ones are ignored.
const MAX_SIGNATURES: usize = 32;
/// Maximum size of a statement, in bytes.
const MAX_PAYLOAD_BYTES: u64 = 256 * 1024;

/// Statement and its signature, not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Statement, JSON.
    pub(crate) payload: Vec<u8>,
    /// Signature, base64.
    pub(crate) signature: String,
}

impl Session {
    /// Returns the signatures of a digest, if any are attached.
    pub(crate) async fn signatures(&self, digest: &Digest) -> Result<Vec<Signature>, RegistryError> {
        let tag = format!("{}.sig", digest.to_string().replace(':', "-"));
        let bytes = match self.manifest_bytes(&tag).await {
            Ok(bytes) => bytes,
            Err(RegistryError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let manifest: ImageManifest = self.parse(&format!("manifest {tag}"), &bytes)?;
        let mut found = Vec::new();
        for layer in manifest.layers().iter().take(MAX_SIGNATURES) {
            let annotations = layer.annotations().as_ref();
            let signature = annotations.and_then(|annotations| annotations.get(SIGNATURE_ANNOTATION));
            let Some(signature) = signature.filter(|_| layer.media_type().to_string() == PAYLOAD_KIND) else {
                continue;
            };
            let what = format!("signature {}", layer.digest());
            let blob = self.descriptor_digest(&what, layer)?;
            let payload = self
                .read_small(&format!("blobs/{blob}"), &what, "*/*", MAX_PAYLOAD_BYTES)
                .await?;
            self.check(&what, &blob, &payload)?;
            found.push(Signature {
                payload,
                signature: signature.clone(),
            });
        }
        Ok(found)
    }
}
