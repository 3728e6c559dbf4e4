//! Signatures as cosign attaches them: an image of its own, tagged by the digest that is signed.

use oci_spec::image::ImageManifest;

use super::RegistryError;
use super::Session;
use crate::reference::Digest;

/// The kind of a signed statement.
const PAYLOAD_KIND: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation that holds the signature of a statement.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// More are not looked at.
const COUNT: usize = 32;
/// Larger statements are refused.
const PAYLOAD_BYTES: u64 = 256 * 1024;

/// A statement and its signature, of which nothing is verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// The statement, JSON.
    pub(crate) payload: Vec<u8>,
    /// The signature, base64.
    pub(crate) signature: String,
}

impl Session {
    /// The signatures of a digest; none when nothing is attached.
    pub(crate) async fn attached(&self, digest: &Digest) -> Result<Vec<Attached>, RegistryError> {
        let tag = format!("{}.sig", digest.to_string().replace(':', "-"));
        let bytes = match self.manifest_bytes(&tag).await {
            Ok(bytes) => bytes,
            Err(RegistryError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let manifest: ImageManifest = self.parse(&format!("manifest {tag}"), &bytes)?;
        let mut found = Vec::new();
        for layer in manifest.layers().iter().take(COUNT) {
            let annotations = layer.annotations().as_ref();
            let signature = annotations.and_then(|annotations| annotations.get(SIGNATURE));
            let Some(signature) = signature.filter(|_| layer.media_type().to_string() == PAYLOAD_KIND) else {
                continue;
            };
            let what = format!("signature {}", layer.digest());
            let blob = self.descriptor_digest(&what, layer)?;
            let payload = self
                .small(&format!("blobs/{blob}"), &what, "*/*", PAYLOAD_BYTES)
                .await?;
            self.check(&what, &blob, &payload)?;
            found.push(Attached {
                payload,
                signature: signature.clone(),
            });
        }
        Ok(found)
    }
}
