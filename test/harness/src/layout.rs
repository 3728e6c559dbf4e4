//! OCI image layout: a directory of blobs that tools such as skopeo and containerd read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::image::{ImageBuilder, descriptor, digest};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A layout that is being written.
#[derive(Debug)]
pub(crate) struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// Writes a blob under its digest.
    pub(crate) fn blob(&self, bytes: &[u8]) -> Result<()> {
        let name = digest(bytes).replace(':', "/");
        self.file(&format!("blobs/{name}"), bytes)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Writes an image with one variant for each architecture into a new folder, and returns the digest of its index. The
/// layout refers to the index by `tag`.
///
/// # Errors
/// A file of the image cannot be read, or the folder cannot be written.
pub fn write_layout(folder: &Path, tag: &str, variants: Vec<ImageBuilder>) -> Result<String> {
    let layout = Layout {
        folder: folder.to_owned(),
    };
    let manifests: Vec<Value> = variants
        .into_iter()
        .map(|image| image.write_blobs(&layout))
        .collect::<Result<_>>()?;
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let index = serde_json::to_vec(&index)?;
    layout.blob(&index)?;
    let mut entry = descriptor(INDEX, &index);
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
    let top = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
    layout.file("index.json", &serde_json::to_vec(&top)?)?;
    layout.file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    Ok(digest(&index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Value {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn every_reference_leads_to_its_blob() {
        let folder = tempfile::tempdir().unwrap();
        let variant = |architecture| {
            ImageBuilder::new()
                .architecture(architecture)
                .file("program", architecture)
        };
        let variants = vec![variant("amd64"), variant("arm64")];
        let written = write_layout(folder.path(), "1.0.0", variants).unwrap();

        let blob = |entry: &Value| {
            let named = entry["digest"].as_str().unwrap();
            let path = folder.path().join("blobs").join(named.replace(':', "/"));
            let bytes = fs::read(&path).unwrap();
            assert_eq!(digest(&bytes), named);
            assert_eq!(entry["size"], bytes.len());
            path
        };
        let top = read(&folder.path().join("index.json"));
        assert_eq!(top["manifests"][0]["digest"], written);
        let index = read(&blob(&top["manifests"][0]));
        let mut architectures = Vec::new();
        for entry in index["manifests"].as_array().unwrap() {
            let manifest = read(&blob(entry));
            blob(&manifest["layers"][0]);
            let config = read(&blob(&manifest["config"]));
            assert_eq!(config["architecture"], entry["platform"]["architecture"]);
            architectures.push(config["architecture"].clone());
        }
        assert_eq!(architectures, ["amd64", "arm64"]);
    }
}
