//! Installation manifests with the images of the release: `install.yaml` of `config/default`, and `install-OVERLAY.yaml` of each
//! overlay.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use olm_manifests::{Component, Overlay, image_of, render, replace_image};
use serde_json::Value;

use super::release::Release;
use crate::generate::yaml;

/// Maximum size of all annotations of an object, in bytes. Client-side apply stores the whole object in an annotation.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;
/// Space for the other annotations, in bytes.
const OTHER_ANNOTATIONS: usize = 4 * 1024;

/// Writes the manifests. `digests` has the digests of the images, by component.
pub(super) fn write(
    out: &Path,
    release: &Release,
    digests: &BTreeMap<&'static str, String>,
) -> anyhow::Result<()> {
    let overlays = Overlay::ALL.into_iter().filter(|overlay| !overlay.is_beside());
    let files = overlays.map(|overlay| (format!("install-{}.yaml", overlay.name()), vec![overlay]));
    for (name, overlays) in files.chain([("install.yaml".to_owned(), Vec::new())]) {
        let mut objects = render(&overlays).with_context(|| format!("cannot render {name}"))?;
        use_images(&mut objects, release, digests).with_context(|| format!("cannot write {name}"))?;
        let documents = objects
            .iter()
            .map(document)
            .collect::<anyhow::Result<Vec<String>>>()
            .with_context(|| format!("cannot write {name}"))?;
        fs::write(out.join(name), documents.join("---\n"))?;
    }
    Ok(())
}

/// Replaces the images in the manifests of the repository by those of the release.
fn use_images(
    objects: &mut [Value],
    release: &Release,
    digests: &BTreeMap<&'static str, String>,
) -> anyhow::Result<()> {
    for component in Component::ALL {
        let name = component.name();
        let digest = digests.get(name).with_context(|| format!("no image of {name}"))?;
        let image = format!("{}/{name}:{}@{digest}", release.image_prefix, release.version);
        replace_image(objects, component, &image);
        ensure!(
            image_of(objects, component) == Some(image.as_str()),
            "no Deployment runs {name}"
        );
    }
    Ok(())
}

/// Returns the object as YAML. Fails if it is too large for `kubectl apply` without `--server-side`.
fn document(object: &Value) -> anyhow::Result<String> {
    let size = object.to_string().len();
    ensure!(
        size + OTHER_ANNOTATIONS < ANNOTATIONS_LIMIT,
        "{} {} has {size} bytes, too many for client-side apply",
        object["kind"],
        object["metadata"]["name"]
    );
    yaml(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::document;

    #[test]
    fn large_objects_are_refused() {
        let object = |size: usize| json!({"kind": "A", "metadata": {"name": "b"}, "data": "x".repeat(size)});
        document(&object(200 * 1024)).unwrap();
        let error = document(&object(256 * 1024)).unwrap_err();
        assert!(error.to_string().contains("too many"), "{error}");
    }
}
