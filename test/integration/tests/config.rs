//! What `config/` renders is what the real API server takes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use kube::core::ObjectMeta;
use olm_api::{ClusterCatalog, keys};
use olm_harness::{ControlPlane, eventually, install_crds, workspace};

/// Whether `kubectl` can be run; says so loudly when not.
fn kubectl_is_there() -> bool {
    let there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        eprintln!("SKIPPED: no kubectl on the PATH, so config/ was not rendered");
    }
    there
}

fn kubectl(args: &[&str], input: Option<&str>) -> Result<String> {
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

fn render(folder: &str) -> Result<String> {
    kubectl(&["kustomize", folder], None)
}

fn apply(kubeconfig: &Path, manifests: &str, dry_run: bool) -> Result<String> {
    let kubeconfig = kubeconfig.to_str().context("path is no UTF-8")?;
    let mut args = vec![
        "--kubeconfig",
        kubeconfig,
        "--request-timeout=60s",
        "apply",
        "--server-side",
        "-f",
        "-",
    ];
    if dry_run {
        args.push("--dry-run=server");
    }
    kubectl(&args, Some(manifests))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_takes_all_of_config() {
    if !kubectl_is_there() {
        return;
    }
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client();
    let kubeconfig = control_plane.kubeconfig();
    install_crds(&client).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["olmv1-system", "argocd"] {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }

    let manifests = render("config/default").unwrap();
    let taken = apply(kubeconfig, &manifests, true).unwrap();
    let objects = manifests
        .lines()
        .filter(|line| line.starts_with("kind: "))
        .count();
    assert_eq!(taken.lines().count(), objects, "{taken}");
    assert!(
        taken.contains("clusterobjectsets.olm.operatorframework.io"),
        "{taken}"
    );

    let taken = apply(kubeconfig, &render("config/samples").unwrap(), true).unwrap();
    assert!(
        taken.contains("clusterextension.olm.operatorframework.io/argocd"),
        "{taken}"
    );

    // Of the overlay, everything but cert-manager's own kinds, which nobody serves here.
    let manifests = render("config/overlays/cert-manager").unwrap();
    let known = |document: &&str| !document.contains("apiVersion: cert-manager.io/");
    let manifests: Vec<&str> = manifests.split("\n---\n").filter(known).collect();
    let taken = apply(kubeconfig, &manifests.join("\n---\n"), true).unwrap();
    assert_eq!(taken.lines().count(), objects, "{taken}");

    // The warning comes as a policy and its binding.
    let manifests = render("config/overlays/ignore-service-accounts").unwrap();
    assert!(
        manifests.contains("- --service-account-policy=Ignore"),
        "{manifests}"
    );
    let taken = apply(kubeconfig, &manifests, true).unwrap();
    assert_eq!(taken.lines().count(), objects + 2, "{taken}");

    let manifests = render("config/overlays/private-catalogs").unwrap();
    let taken = apply(kubeconfig, &manifests, true).unwrap();
    assert_eq!(taken.lines().count(), objects, "{taken}");

    // The policy does what it is for, as soon as it is in force.
    apply(kubeconfig, &render("config/admission").unwrap(), false).unwrap();
    let catalogs: Api<ClusterCatalog> = Api::all(client);
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let labels = eventually(
        Duration::from_secs(30),
        "a catalog gets its name as a label",
        async || {
            let labels = catalogs
                .create(&dry, &sample_catalog()?)
                .await?
                .metadata
                .labels
                .unwrap_or_default();
            ensure!(
                labels.contains_key(keys::METADATA_NAME_LABEL),
                "labels are {labels:?}"
            );
            Ok(labels)
        },
    )
    .await
    .unwrap();
    let expected = [("kept", "yes"), (keys::METADATA_NAME_LABEL, "jars")];
    assert_eq!(
        labels
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect::<Vec<_>>(),
        expected
    );
}

fn sample_catalog() -> serde_json::Result<ClusterCatalog> {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": "jars", "labels": {"kept": "yes"}},
        "spec": {"source": {"type": "Image", "image": {"ref": "example.com/catalogs/jars:latest"}}},
    }))
}
