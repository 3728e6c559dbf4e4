//! Signatures as cosign attaches them: a separate image, tagged by the signed digest.

use oci_spec::image::{Descriptor, ImageManifest};

use super::RegistryError;
use super::Session;
use crate::reference::Digest;

/// Media type of a signed statement.
const PAYLOAD_KIND: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Annotation with the signature of a statement.
const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// Maximum number of signatures; older ones are ignored.
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
        for (layer, signature) in newest(manifest.layers()) {
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

/// Returns the layers that hold signed statements with their signatures, newest first: cosign appends.
fn newest(layers: &[Descriptor]) -> impl Iterator<Item = (&Descriptor, &String)> {
    let signed = layers.iter().rev().filter_map(|layer| {
        let signature = layer.annotations().as_ref()?.get(SIGNATURE_ANNOTATION)?;
        (layer.media_type().to_string() == PAYLOAD_KIND).then_some((layer, signature))
    });
    signed.take(MAX_SIGNATURES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_signatures_count() {
        let layer = |kind: &str, signature: usize| {
            let digest = format!("sha256:{signature:064}");
            let annotations = json!({SIGNATURE_ANNOTATION: signature.to_string()});
            json!({"mediaType": kind, "digest": digest, "size": 1, "annotations": annotations})
        };
        let mut layers: Vec<_> = (0..MAX_SIGNATURES + 8)
            .map(|at| layer(PAYLOAD_KIND, at))
            .collect();
        layers.extend((100..200).map(|at| layer("application/octet-stream", at)));
        let layers: Vec<Descriptor> = serde_json::from_value(layers.into()).unwrap();
        let found: Vec<usize> = newest(&layers)
            .map(|(_, signature)| signature.parse().unwrap())
            .collect();
        assert_eq!(found, (8..MAX_SIGNATURES + 8).rev().collect::<Vec<_>>());
    }
}
