//! Image builder: real gzip layers, a config and a manifest, pushed over the registry's HTTP API.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::GzEncoder;
use oci_client::secrets::RegistryAuth;
use oci_client::{Reference, RegistryOperation};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::layout::Layout;
use crate::registry::Registry;

const DEFAULT_ARCHITECTURE: &str = "amd64";

/// Media types of manifest and layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// OCI image manifest v1.
    #[default]
    Oci,
    /// Docker image manifest, schema 2.
    Docker,
}

impl Format {
    fn manifest(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.manifest.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.v2+json",
        }
    }

    fn config(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.config.v1+json",
            Self::Docker => "application/vnd.docker.container.image.v1+json",
        }
    }

    fn layer(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Docker => "application/vnd.docker.image.rootfs.diff.tar.gzip",
        }
    }

    fn index(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.index.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.list.v2+json",
        }
    }
}

/// A layer as pushed: its gzipped tar, and the digest of the uncompressed tar.
#[derive(Clone, Debug)]
struct Layer {
    compressed: Vec<u8>,
    plain_digest: String,
}

/// Source of a layer.
#[derive(Clone, Debug)]
enum Content {
    Files {
        files: BTreeMap<String, Vec<u8>>,
        dirs: Vec<(PathBuf, String)>,
        modes: Modes,
    },
    Raw(Layer),
}

/// Entries of a layer other than plain files.
#[derive(Clone, Debug, Default)]
struct Modes {
    executable: BTreeSet<String>,
    /// Empty directories with write permission for all users.
    writable: BTreeSet<String>,
}

impl Content {
    fn layer(self) -> Result<Layer> {
        match self {
            Self::Raw(layer) => Ok(layer),
            Self::Files { files, dirs, modes } => {
                let mut all = BTreeMap::new();
                for (source, target) in dirs {
                    add_dir(&mut all, &source, &target)?;
                }
                all.extend(files);
                layer(&all, &modes)
            }
        }
    }
}

/// Builder of one image. Files go into one layer until [`ImageBuilder::new_layer`] starts the next.
#[derive(Clone, Debug, Default)]
pub struct ImageBuilder {
    format: Format,
    labels: BTreeMap<String, String>,
    contents: Vec<Content>,
    files: BTreeMap<String, Vec<u8>>,
    dirs: Vec<(PathBuf, String)>,
    modes: Modes,
    run: Map<String, Value>,
    as_index: bool,
    architecture: Option<&'static str>,
    auth: Option<(String, String)>,
}

/// Blobs of an image.
struct Assembled {
    layers: Vec<Layer>,
    config: Vec<u8>,
    manifest: Vec<u8>,
}

impl ImageBuilder {
    /// Returns an empty OCI image.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the media types.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sets a label of the image's config.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Adds a file to the current layer, at a path relative to the image's root. It overrides a file with the same
    /// path in an added directory.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<str>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files
            .insert(path.as_ref().trim_start_matches('/').to_owned(), bytes.into());
        self
    }

    /// Adds an executable file to the current layer.
    #[must_use]
    pub fn executable(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.modes
            .executable
            .insert(path.trim_start_matches('/').to_owned());
        self.file(path, bytes)
    }

    /// Adds an empty directory with write permission for all users, like `/tmp`, to the current layer.
    #[must_use]
    pub fn writable_dir(mut self, path: &str) -> Self {
        self.modes.writable.insert(path.trim_matches('/').to_owned());
        self
    }

    /// Sets a key of the image's runtime config, such as `Entrypoint` or `User`.
    #[must_use]
    pub fn run_with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.run.insert(key.to_owned(), value.into());
        self
    }

    /// Adds all files below a local directory to the current layer, at the image's root. They are read at the push.
    #[must_use]
    pub fn dir(self, source: impl Into<PathBuf>) -> Self {
        self.dir_at(source, "")
    }

    /// Variant of [`ImageBuilder::dir`] below the image's directory `target`.
    #[must_use]
    pub fn dir_at(mut self, source: impl Into<PathBuf>, target: &str) -> Self {
        self.dirs
            .push((source.into(), target.trim_matches('/').to_owned()));
        self
    }

    /// Ends the current layer; further files go into the next one.
    #[must_use]
    pub fn new_layer(mut self) -> Self {
        let (files, dirs) = (std::mem::take(&mut self.files), std::mem::take(&mut self.dirs));
        let modes = std::mem::take(&mut self.modes);
        self.contents.push(Content::Files { files, dirs, modes });
        self
    }

    /// Adds a finished layer: a gzipped tar, unchecked, even if hostile or broken.
    #[must_use]
    pub fn raw_layer(mut self, compressed: Vec<u8>, plain_digest: impl Into<String>) -> Self {
        self.contents.push(Content::Raw(Layer {
            compressed,
            plain_digest: plain_digest.into(),
        }));
        self
    }

    /// Pushes an index for linux/amd64 and linux/arm64 that both refer to the image, and tags the index.
    #[must_use]
    pub fn as_index(mut self) -> Self {
        self.as_index = true;
        self
    }

    /// Sets the architecture; amd64 by default.
    #[must_use]
    pub fn architecture(mut self, architecture: &'static str) -> Self {
        self.architecture = Some(architecture);
        self
    }

    /// Sets basic auth for the push.
    #[must_use]
    pub fn auth(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.auth = Some((user.into(), password.into()));
        self
    }

    /// Pushes to `name` (`namespace/repository:tag`) at the registry and returns the digest of the tag:
    /// `sha256:...`.
    ///
    /// # Errors
    /// A file is unreadable or the registry refuses the image.
    pub async fn push(self, registry: &Registry, name: &str) -> Result<String> {
        let image = format!("{}/{name}", registry.host())
            .parse()
            .with_context(|| format!("{name:?} is no name of an image"))?;
        self.push_with(&registry.client(), &image).await
    }

    /// Variant of [`ImageBuilder::push`] for any registry that `client` reaches.
    ///
    /// # Errors
    /// A file is unreadable or the registry refuses the image.
    pub async fn push_with(mut self, client: &oci_client::Client, image: &Reference) -> Result<String> {
        let Assembled {
            layers,
            config,
            manifest,
        } = self.assemble()?;
        let auth = match &self.auth {
            Some((user, password)) => RegistryAuth::Basic(user.clone(), password.clone()),
            None => RegistryAuth::Anonymous,
        };
        client
            .auth(image, &auth, RegistryOperation::Push)
            .await
            .with_context(|| format!("the registry does not let us push {image}"))?;
        for blob in layers.iter().map(|layer| &layer.compressed).chain([&config]) {
            client
                .push_blob(image, blob.clone(), &digest(blob))
                .await
                .with_context(|| format!("cannot push a blob of {image}"))?;
        }
        let mut top = manifest;
        let mut media_type = self.format.manifest();
        if self.as_index {
            let by_digest = Reference::with_digest(
                image.registry().to_owned(),
                image.repository().to_owned(),
                digest(&top),
            );
            push_manifest(client, &by_digest, &top, media_type).await?;
            top = self.index(&top)?;
            media_type = self.format.index();
        }
        push_manifest(client, image, &top, media_type).await?;
        Ok(digest(&top))
    }

    /// Builds the layers and documents.
    fn assemble(&mut self) -> Result<Assembled> {
        if !self.files.is_empty()
            || !self.dirs.is_empty()
            || !self.modes.writable.is_empty()
            || self.contents.is_empty()
        {
            *self = std::mem::take(self).new_layer();
        }
        let layers = std::mem::take(&mut self.contents).into_iter().map(Content::layer);
        let layers = layers.collect::<Result<Vec<Layer>>>()?;
        let (config, manifest) = self.documents(&layers)?;
        Ok(Assembled {
            layers,
            config,
            manifest,
        })
    }

    /// Writes the blobs of an OCI image into a layout and returns the descriptor of the image's manifest.
    pub(crate) fn write_blobs(mut self, layout: &Layout) -> Result<Value> {
        let architecture = self.architecture.unwrap_or(DEFAULT_ARCHITECTURE);
        let image = self.assemble()?;
        for layer in &image.layers {
            layout.blob(&layer.compressed)?;
        }
        layout.blob(&image.config)?;
        layout.blob(&image.manifest)?;
        let mut entry = descriptor(self.format.manifest(), &image.manifest);
        entry["platform"] = json!({"os": "linux", "architecture": architecture});
        Ok(entry)
    }

    /// Returns config and manifest.
    fn documents(&self, layers: &[Layer]) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut run = self.run.clone();
        run.insert("Labels".to_owned(), json!(self.labels));
        let config = serde_json::to_vec(&json!({
            "architecture": self.architecture.unwrap_or(DEFAULT_ARCHITECTURE),
            "os": "linux",
            "config": run,
            "rootfs": {
                "type": "layers",
                "diff_ids": layers.iter().map(|layer| &layer.plain_digest).collect::<Vec<_>>(),
            },
            "history": layers.iter().map(|_| json!({"created_by": "olm-harness"})).collect::<Vec<_>>(),
        }))
        .context("cannot write the image's config")?;
        let descriptors = layers
            .iter()
            .map(|layer| descriptor(self.format.layer(), &layer.compressed));
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": self.format.manifest(),
            "config": descriptor(self.format.config(), &config),
            "layers": descriptors.collect::<Vec<_>>(),
        }))
        .context("cannot write the image's manifest")?;
        Ok((config, manifest))
    }

    fn index(&self, manifest: &[u8]) -> Result<Vec<u8>> {
        let manifests: Vec<Value> = ["amd64", "arm64"]
            .into_iter()
            .map(|architecture| {
                let mut entry = descriptor(self.format.manifest(), manifest);
                if let Value::Object(map) = &mut entry {
                    map.insert(
                        "platform".to_owned(),
                        json!({"os": "linux", "architecture": architecture}),
                    );
                }
                entry
            })
            .collect();
        let index = json!({"schemaVersion": 2, "mediaType": self.format.index(), "manifests": manifests});
        serde_json::to_vec(&index).context("cannot write the image's index")
    }
}

/// Builds a bundle image from a directory with `manifests` and `metadata`: files and labels as `opm` creates them.
///
/// # Errors
/// A file is unreadable, or `metadata/annotations.yaml` is missing.
pub fn bundle_image_from_dir(dir: &Path) -> Result<ImageBuilder> {
    let path = dir.join("metadata").join("annotations.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let annotations: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", path.display()))?;
    let mut builder = ImageBuilder::new();
    for (key, value) in annotations
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), ToOwned::to_owned);
        builder = builder.label(key, value);
    }
    Ok(builder
        .dir_at(dir.join("manifests"), "manifests")
        .dir_at(dir.join("metadata"), "metadata"))
}

/// Builds a catalog image from a directory of file-based catalogs.
pub fn catalog_image_from_dir(dir: &Path) -> ImageBuilder {
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .dir_at(dir, "configs")
}

async fn push_manifest(
    client: &oci_client::Client,
    image: &Reference,
    body: &[u8],
    media_type: &str,
) -> Result<()> {
    let header = media_type.parse().context("a media type is no header")?;
    client
        .push_manifest_raw(image, body.to_vec(), header)
        .await
        .with_context(|| format!("cannot push the manifest of {image}"))?;
    Ok(())
}

pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

fn layer(files: &BTreeMap<String, Vec<u8>>, modes: &Modes) -> Result<Layer> {
    let plain = tar_of(files, modes).context("cannot make a layer")?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&plain).context("cannot compress a layer")?;
    let compressed = gzip.finish().context("cannot compress a layer")?;
    Ok(Layer {
        compressed,
        plain_digest: digest(&plain),
    })
}

/// Builds a reproducible tar of the files and their directories.
fn tar_of(files: &BTreeMap<String, Vec<u8>>, modes: &Modes) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut known = BTreeSet::new();
    for path in &modes.writable {
        let mut header = header(0, 0o1777);
        header.set_entry_type(tar::EntryType::Directory);
        archive.append_data(&mut header, format!("{path}/"), std::io::empty())?;
    }
    for (path, bytes) in files {
        for (at, _) in path.match_indices('/') {
            let directory = path.get(..=at).unwrap_or_default();
            if known.insert(directory) {
                let mut header = header(0, 0o755);
                header.set_entry_type(tar::EntryType::Directory);
                archive.append_data(&mut header, directory, std::io::empty())?;
            }
        }
        let mode = if modes.executable.contains(path) {
            0o755
        } else {
            0o644
        };
        let mut header = header(bytes.len() as u64, mode);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, path, bytes.as_slice())?;
    }
    archive.into_inner()
}

fn header(size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

fn add_dir(files: &mut BTreeMap<String, Vec<u8>>, source: &Path, target: &str) -> Result<()> {
    let entries = fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", source.display()))?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            bail!("{} is no UTF-8", path.display())
        };
        let inside = if target.is_empty() {
            name
        } else {
            format!("{target}/{name}")
        };
        // Follows symbolic links: the image gets their targets.
        let meta = fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if meta.is_dir() {
            add_dir(files, &path, &inside)?;
        } else {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(inside, bytes);
        }
    }
    Ok(())
}
