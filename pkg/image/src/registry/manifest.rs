//! Resolution of a reference to the layers of one image for this machine.

use std::collections::BTreeMap;

use oci_spec::image::{Arch, Descriptor, ImageIndex, ImageManifest, Os};
use serde::Deserialize;
use sha2::{Digest as _, Sha256, Sha512};

use super::{RegistryError, Session};
use crate::{
    limits::Limits,
    reference::{Algorithm, Digest},
};

/// Accepted media types of manifests and indexes.
const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";
/// Media types of configs of container images.
const CONFIGS: [&str; 2] = [
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];

/// Image whose config was read.
#[derive(Debug)]
pub(crate) struct Image {
    /// Digest of its own manifest, which an index may point to.
    pub(crate) digest: Digest,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) layers: Vec<Layer>,
}

/// Layer to transfer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

/// Fields that distinguish an index from a manifest: media types are optional.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    #[serde(default)]
    schema_version: u64,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
}

/// Part of an image config that is used.
#[derive(Deserialize)]
struct Config {
    config: Option<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

impl Session {
    /// Returns the digest of the top-level manifest of a tag.
    pub(crate) async fn digest_of(&self, tag: &str) -> Result<Digest, RegistryError> {
        let bytes = self.manifest_bytes(tag).await?;
        Ok(digest(Algorithm::Sha256, &bytes))
    }

    /// Returns the image with a digest, or the one for this machine from an index with that digest.
    pub(crate) async fn image(&self, wanted: &Digest) -> Result<Image, RegistryError> {
        let limits = self.limits();
        let mut digest = wanted.clone();
        let mut what = format!("manifest {wanted}");
        let mut bytes = self.checked_manifest(wanted).await?;
        let mut kind: Kind = self.parse(&what, &bytes)?;
        if kind.manifests.is_some() {
            let index: ImageIndex = self.parse(&what, &bytes)?;
            digest = self.choose(&what, &index)?;
            what = format!("manifest {digest}");
            bytes = self.checked_manifest(&digest).await?;
            kind = self.parse(&what, &bytes)?;
        }
        if kind.layers.is_none() {
            let kind = match kind.schema_version {
                1 => "a Docker manifest of schema 1",
                _ if kind.manifests.is_some() => "an index within an index",
                _ => "a manifest without layers",
            };
            return Err(self.unsupported(what, kind));
        }
        let manifest: ImageManifest = self.parse(&what, &bytes)?;
        let config_kind = manifest.config().media_type().to_string();
        if !CONFIGS.contains(&config_kind.as_str()) {
            return Err(self.unsupported(what, &config_kind));
        }
        let count = manifest.layers().len();
        if count > limits.layers {
            let (host, limit) = (self.host().to_owned(), limits.layers);
            return Err(RegistryError::TooManyLayers {
                host,
                what,
                count,
                limit,
            });
        }
        let layers = manifest
            .layers()
            .iter()
            .map(|layer| {
                Ok(Layer {
                    digest: self.descriptor_digest(&what, layer)?,
                    size: layer.size(),
                })
            })
            .collect::<Result<_, _>>()?;
        let config = self.descriptor_digest(&what, manifest.config())?;
        Ok(Image {
            digest,
            labels: self.labels(&config, limits).await?,
            layers,
        })
    }

    async fn labels(
        &self,
        config: &Digest,
        limits: &Limits,
    ) -> Result<BTreeMap<String, String>, RegistryError> {
        let what = format!("config {config}");
        let bytes = self
            .read_small(&format!("blobs/{config}"), &what, "*/*", limits.config)
            .await?;
        self.check(&what, config, &bytes)?;
        let parsed: Config = self.parse(&what, &bytes)?;
        Ok(parsed
            .config
            .and_then(|container| container.labels)
            .unwrap_or_default())
    }

    pub(super) async fn manifest_bytes(&self, name: &str) -> Result<Vec<u8>, RegistryError> {
        let what = format!("manifest {name}");
        let limit = self.limits().manifest;
        self.read_small(&format!("manifests/{name}"), &what, ACCEPT, limit)
            .await
    }

    async fn checked_manifest(&self, wanted: &Digest) -> Result<Vec<u8>, RegistryError> {
        let bytes = self.manifest_bytes(&wanted.to_string()).await?;
        self.check(&format!("manifest {wanted}"), wanted, &bytes)?;
        Ok(bytes)
    }

    pub(super) fn check(&self, what: &str, wanted: &Digest, bytes: &[u8]) -> Result<(), RegistryError> {
        let actual = digest(wanted.algorithm(), bytes);
        if actual == *wanted {
            return Ok(());
        }
        Err(RegistryError::Digest {
            host: self.host().to_owned(),
            what: what.to_owned(),
            actual: actual.to_string(),
        })
    }

    fn choose(&self, what: &str, index: &ImageIndex) -> Result<Digest, RegistryError> {
        let architecture = architecture();
        let fits = |descriptor: &&Descriptor| {
            descriptor.platform().as_ref().is_some_and(|platform| {
                *platform.os() == Os::Linux && *platform.architecture() == Arch::from(architecture)
            })
        };
        match index.manifests().iter().find(fits) {
            Some(descriptor) => self.descriptor_digest(what, descriptor),
            None => Err(RegistryError::NoPlatform {
                host: self.host().to_owned(),
                what: what.to_owned(),
                architecture,
            }),
        }
    }

    pub(super) fn descriptor_digest(
        &self,
        what: &str,
        descriptor: &Descriptor,
    ) -> Result<Digest, RegistryError> {
        let text: String = descriptor.digest().to_string();
        text.parse()
            .map_err(|cause: &str| self.malformed(what, cause.into()))
    }

    pub(super) fn parse<'a, T: Deserialize<'a>>(
        &self,
        what: &str,
        bytes: &'a [u8],
    ) -> Result<T, RegistryError> {
        serde_json::from_slice(bytes).map_err(|source| self.malformed(what, source.into()))
    }

    fn malformed(&self, what: &str, source: Box<dyn std::error::Error + Send + Sync>) -> RegistryError {
        RegistryError::Malformed {
            host: self.host().to_owned(),
            what: what.to_owned(),
            source,
        }
    }

    fn unsupported(&self, what: String, kind: &str) -> RegistryError {
        RegistryError::Unsupported {
            host: self.host().to_owned(),
            what,
            kind: kind.to_owned(),
        }
    }
}

fn digest(algorithm: Algorithm, bytes: &[u8]) -> Digest {
    match algorithm {
        Algorithm::Sha256 => Digest::from_hash(algorithm, &Sha256::digest(bytes)),
        Algorithm::Sha512 => Digest::from_hash(algorithm, &Sha512::digest(bytes)),
    }
}

/// Returns the architecture of this machine in OCI's terms.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}
