//! Manifest of the kubectl plugin `olm` for krew, the package manager of kubectl plugins.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::binaries::{Binaries, archive_name};
use super::release::Release;
use super::sha256;
use crate::generate::yaml;

const PROGRAM: &str = "kubectl-olm";

/// Writes the manifest, or prints that it is not written because the URL of the release is unknown.
pub(super) fn write(out: &Path, release: &Release, binaries: &Binaries) -> anyhow::Result<()> {
    let Some(url) = &release.download_url else {
        eprintln!("NOT WRITTEN: the manifest of krew, which needs --download-url");
        return Ok(());
    };
    let mut platforms = Vec::new();
    for arch in binaries.architectures() {
        let archive = archive_name(PROGRAM, arch);
        platforms.push(json!({
            "selector": {"matchLabels": {"os": "linux", "arch": arch}},
            "uri": format!("{url}/{archive}"),
            "sha256": sha256(&out.join(&archive))?,
            "bin": PROGRAM,
            "files": [{"from": PROGRAM, "to": "."}, {"from": "LICENSE", "to": "."}],
        }));
    }
    let manifest = json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "olm"},
        "spec": {
            "version": format!("v{}", release.version),
            "shortDescription": "Query catalogs and extensions of OLM",
            "description": "Shows the packages of catalogs, explains which version of an extension is chosen and why, \
                draws upgrade graphs, and validates catalogs and bundles.",
            "platforms": platforms,
        },
    });
    fs::write(out.join("krew.yaml"), yaml(&manifest)?)?;
    Ok(())
}
