//! A control plane on which the commands of docs/operations.md run, and comparisons of its objects with manifests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use olm_harness::{ControlPlane, PodStandIn, workspace};
use serde_json::Value;

/// Identity of an object: API version, kind, namespace and name.
type Id = (String, String, String, String);

/// A control plane with a stand-in that marks pods ready, and a folder for files.
pub(crate) struct Cluster {
    kubeconfig: PathBuf,
    folder: tempfile::TempDir,
    _pods: PodStandIn,
    control_plane: ControlPlane,
}

impl Cluster {
    pub(crate) async fn start() -> Result<Self> {
        let control_plane = ControlPlane::start().await?;
        Ok(Self {
            kubeconfig: control_plane.kubeconfig().to_owned(),
            folder: tempfile::tempdir()?,
            _pods: PodStandIn::start(control_plane.client()),
            control_plane,
        })
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.control_plane.client()
    }

    /// Writes a file to the folder of the cluster.
    pub(crate) fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Runs commands in a shell up to the first one that fails, and returns their output.
    pub(crate) fn shell(&self, commands: &str) -> Result<String> {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", commands])
            .current_dir(workspace::root())
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .context("cannot run bash")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{commands}\n{errors}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs all commands of a numbered step in docs/operations.md. `replacements` has texts to replace in them.
    pub(crate) fn step(&self, section: &str, number: usize, replacements: &[(&str, &str)]) -> Result<()> {
        let mut commands = commands_of(section, number)?;
        for (old, new) in replacements {
            ensure!(
                commands.contains(old),
                "{old} is not in step {number} of {section}"
            );
            commands = commands.replace(old, new);
        }
        self.shell(&commands).map(drop)
    }

    /// Returns the objects of `manifests` that are on the cluster but not in `expected`.
    pub(crate) fn left_over(&self, manifests: &str, expected: &str) -> Result<String> {
        let expected = documents(expected)?;
        let superfluous: Vec<&str> = documents(manifests)?
            .into_iter()
            .filter(|(id, _)| !expected.contains_key(id))
            .map(|(_, document)| document)
            .collect();
        if superfluous.is_empty() {
            return Ok(String::new());
        }
        let file = self.file("superfluous.yaml", &superfluous.join("\n---\n"))?;
        self.shell(&format!(
            "kubectl get -f {} --ignore-not-found -o name",
            file.display()
        ))
    }
}

/// Returns the commands of a numbered step in a section of docs/operations.md.
pub(crate) fn commands_of(section: &str, number: usize) -> Result<String> {
    let page = fs::read_to_string(workspace::root().join("docs/operations.md"))?;
    let (_, rest) = page
        .split_once(&format!("\n## {section}\n"))
        .with_context(|| format!("no section {section}"))?;
    let section_text = rest.split("\n## ").next().unwrap_or_default();
    let (_, rest) = section_text
        .split_once(&format!("\n{number}. "))
        .with_context(|| format!("no step {number} in {section}"))?;
    let step = rest
        .split(&format!("\n{}. ", number + 1))
        .next()
        .unwrap_or_default();
    let (_, block) = step
        .split_once("```sh\n")
        .with_context(|| format!("no commands in step {number} of {section}"))?;
    Ok(block.split("```").next().unwrap_or_default().to_owned())
}

/// Returns the documents of rendered manifests, by the identity of their objects.
fn documents(manifests: &str) -> Result<BTreeMap<Id, &str>> {
    manifests
        .split("\n---\n")
        .map(|document| {
            let object: Value = serde_saphyr::from_str(document)?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let id = (
                text(&object["apiVersion"]),
                text(&object["kind"]),
                text(&object["metadata"]["namespace"]),
                text(&object["metadata"]["name"]),
            );
            Ok((id, document))
        })
        .collect()
}
