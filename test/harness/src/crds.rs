//! Installation of the project's CRDs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};

use crate::wait::eventually;
use crate::workspace;

const ESTABLISHED_LIMIT: Duration = Duration::from_secs(30);

/// Applies the project's CRDs, `config/crd/*.yaml`, and waits until the API server serves them.
///
/// # Errors
/// A file is unreadable, or the API server refuses it.
pub async fn install_crds(client: &Client) -> Result<()> {
    apply_crds(client, &workspace::root().join("config").join("crd")).await
}

/// Applies every CRD in the YAML files of `dir` by server-side apply and waits until all are established.
///
/// # Errors
/// A file is unreadable, the directory has no CRD, or the API server refuses one.
pub async fn apply_crds(client: &Client, dir: &Path) -> Result<()> {
    let crds = read(dir)?;
    if crds.is_empty() {
        bail!("no CustomResourceDefinition in {}", dir.display());
    }
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("olm-harness").force();
    for crd in &crds {
        let name = crd.name_any();
        api.patch(&name, &params, &Patch::Apply(crd))
            .await
            .with_context(|| format!("cannot apply CRD {name}"))?;
    }
    for crd in &crds {
        established(&api, &crd.name_any()).await?;
    }
    Ok(())
}

async fn established(api: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    eventually(
        ESTABLISHED_LIMIT,
        &format!("CRD {name} is established"),
        async || {
            let crd = api.get(name).await?;
            let conditions = crd
                .status
                .and_then(|status| status.conditions)
                .unwrap_or_default();
            if !conditions
                .iter()
                .any(|c| c.type_ == "Established" && c.status == "True")
            {
                bail!("{conditions:?}");
            }
            Ok(())
        },
    )
    .await
}

fn read(dir: &Path) -> Result<Vec<CustomResourceDefinition>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut crds = Vec::new();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
    {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let documents: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("{} is no YAML", path.display()))?;
        for document in documents {
            if document.get("kind").and_then(|kind| kind.as_str()) == Some("CustomResourceDefinition") {
                let crd = serde_json::from_value(document)
                    .with_context(|| format!("{} is no CustomResourceDefinition", path.display()))?;
                crds.push(crd);
            }
        }
    }
    Ok(crds)
}
