//! Helpers that call kubectl.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use olm_harness::workspace;
use olm_integration::vectors::skipped;

/// Returns true if `kubectl` is available. Otherwise, prints a line that says so.
pub(crate) fn has_kubectl() -> bool {
    let there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        skipped("no kubectl on the PATH, so config/ was not rendered");
    }
    there
}

/// Runs kubectl with `input` and returns its standard output.
pub(crate) fn kubectl(args: &[&str], input: Option<&str>) -> Result<String> {
    use std::io::Write as _;
    let mut child = Command::new("kubectl")
        .args(args)
        .current_dir(workspace::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start kubectl")?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let input = input.unwrap_or_default().to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    feeder
        .join()
        .map_err(|_| anyhow::anyhow!("feeding kubectl died"))??;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {args:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Renders the manifests of a folder with kustomize.
pub(crate) fn render(folder: &str) -> Result<String> {
    kubectl(&["kustomize", folder], None)
}

/// Applies manifests with `kubectl apply` and these flags.
pub(crate) fn apply(kubeconfig: &Path, manifests: &str, flags: &[&str]) -> Result<String> {
    let kubeconfig = kubeconfig.to_str().context("path is no UTF-8")?;
    let mut args = vec![
        "--kubeconfig",
        kubeconfig,
        "--request-timeout=60s",
        "apply",
        "-f",
        "-",
    ];
    args.extend(flags);
    kubectl(&args, Some(manifests))
}
