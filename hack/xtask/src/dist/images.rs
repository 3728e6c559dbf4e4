//! Images of the controllers and of the web pages, each as a tar archive of an OCI layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use olm_manifests::Component;

use super::archive::{read_folder, tar};
use super::binaries::Binaries;
use super::release::Release;
use crate::shell::{cargo, output};

/// Writes the images. Returns the digest of each image index, by component.
pub(super) fn write(
    out: &Path,
    release: &Release,
    binaries: &Binaries,
) -> anyhow::Result<BTreeMap<&'static str, String>> {
    let mut digests = BTreeMap::new();
    for component in Component::IMAGES.map(Component::name) {
        let layout = out.join(format!("{component}.layout"));
        let mut command = cargo();
        command
            .args(["run", "--quiet", "--locked", "--package", "olm-harness"])
            .args(["--bin", "layout", "--", component])
            .arg(&layout)
            .args(["--version", &release.version, "--commit", &release.commit]);
        for arch in binaries.architectures() {
            let path = binaries.path(arch, component)?;
            let path = path.canonicalize()?;
            command.arg("--binary").arg(format!("{arch}={}", path.display()));
        }
        let digest = output(&mut command)?.trim().to_owned();
        ensure!(digest.starts_with("sha256:"), "{digest:?} is no digest");
        tar(
            &out.join(format!("{component}.oci.tar")),
            &read_folder(&layout)?,
            release.epoch,
        )?;
        fs::remove_dir_all(&layout).with_context(|| format!("cannot remove {}", layout.display()))?;
        digests.insert(component, digest);
    }
    Ok(digests)
}
