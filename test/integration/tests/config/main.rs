//! Tests of the manifests in `config/` on a real API server: they are accepted, they can be upgraded and migrated by the
//! documented commands, and their alerts are valid.

mod cluster;
mod kubectl;
mod migration;
mod monitoring;
mod upgrade;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use kube::core::ObjectMeta;
use olm_api::{ClusterCatalog, keys};
use olm_harness::{ControlPlane, eventually, install_crds};

use kubectl::{apply, has_kubectl, render};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_all_of_config() {
    if !has_kubectl() {
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

    accepts_every_folder(kubeconfig).unwrap();
    overlays_make_their_changes().unwrap();
    // The policy takes effect a moment after it was applied.
    apply(
        kubeconfig,
        &render("config/optional/metadata-name-policy").unwrap(),
        &["--server-side"],
    )
    .unwrap();
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

/// Applies every folder of `config` in a dry run of the API server, by server-side and by client-side apply.
fn accepts_every_folder(kubeconfig: &Path) -> Result<()> {
    for folder in [
        "config/default",
        "config/samples",
        "config/overlays/cert-manager",
        "config/overlays/high-availability",
        "config/overlays/openshift",
        "config/overlays/ignore-service-accounts",
        "config/overlays/internal-registry",
        "config/overlays/least-privilege",
        "config/overlays/mirrors",
        "config/overlays/private-catalogs",
        "config/optional/metadata-name-policy",
        "config/optional/prometheus",
        "config/optional/prometheus-cert-manager",
        "config/optional/protect-revisions",
        "config/optional/require-service-account",
        "config/optional/ui",
    ] {
        let (served, foreign) = served(&render(folder)?);
        let objects = served.lines().filter(|line| line.starts_with("kind: ")).count();
        let client_side = apply(kubeconfig, &served, &["--dry-run=server"])?;
        assert_eq!(client_side.lines().count(), objects, "{folder}: {client_side}");
        let accepted = apply(kubeconfig, &served, &["--dry-run=server", "--server-side"])?;
        assert_eq!(accepted.lines().count(), objects, "{folder}: {accepted}");
        let expected = match folder {
            "config/overlays/cert-manager" => 5,
            "config/overlays/openshift"
            | "config/optional/prometheus"
            | "config/optional/prometheus-cert-manager" => 3,
            _ => 0,
        };
        assert_eq!(foreign, expected, "{folder}");
        if folder == "config/default" {
            for name in [
                "clusterobjectsets.olm.operatorframework.io",
                "service/catalogd-service",
                "deployment.apps/operator-controller-controller-manager",
            ] {
                assert!(accepted.contains(name), "{accepted}");
            }
            assert!(
                !accepted.contains("mutatingadmissionpolicy"),
                "needs Kubernetes 1.36"
            );
        }
    }
    Ok(())
}

fn overlays_make_their_changes() -> Result<()> {
    let internal = render("config/overlays/internal-registry")?;
    for line in [
        "- --allow-registry-host=registry.registry.svc:5000",
        "- --pull-cas-dir=/etc/registry-cas",
    ] {
        assert_eq!(
            internal.matches(line).count(),
            2,
            "{line}: not on both Deployments"
        );
    }

    let mirrors = render("config/overlays/mirrors")?;
    let flag = "- --registries-conf=/etc/registries/registries.conf";
    assert_eq!(
        mirrors.matches(flag).count(),
        2,
        "{flag}: not on both Deployments"
    );

    let ignoring = render("config/overlays/ignore-service-accounts")?;
    assert!(
        ignoring.contains("- --service-account-policy=Ignore"),
        "{ignoring}"
    );

    let least = render("config/overlays/least-privilege")?;
    assert!(least.contains("- --service-account-policy=Require"), "{least}");
    for administrator in [
        "name: cluster-admin",
        "operator-controller-impersonator-rolebinding",
    ] {
        assert!(!least.contains(administrator), "{administrator} is in\n{least}");
    }
    Ok(())
}

/// Returns the objects whose kinds a plain API server serves, and the number of the other objects, whose kinds belong to other
/// operators.
fn served(manifests: &str) -> (String, usize) {
    let foreign = |document: &&str| {
        ["cert-manager.io/", "monitoring.coreos.com/"]
            .iter()
            .any(|group| {
                document.contains(&format!("\napiVersion: {group}"))
                    || document.starts_with(&format!("apiVersion: {group}"))
            })
    };
    let (foreign, served): (Vec<&str>, Vec<&str>) = manifests.split("\n---\n").partition(foreign);
    (served.join("\n---\n"), foreign.len())
}

#[test]
fn the_older_policy_differs_in_its_version_only() {
    if !has_kubectl() {
        return;
    }
    let newer = render("config/optional/metadata-name-policy").unwrap();
    let older = render("config/optional/metadata-name-policy-v1beta1").unwrap();
    let group = "admissionregistration.k8s.io";
    assert_eq!(
        older,
        newer.replace(&format!("{group}/v1\n"), &format!("{group}/v1beta1\n"))
    );
    assert_ne!(older, newer);
}

#[test]
fn pods_are_locked_down() {
    if !has_kubectl() {
        return;
    }
    let manifests = render("config/default").unwrap();
    let deployments: Vec<&str> = manifests
        .split("\n---\n")
        .filter(|document| document.contains("\nkind: Deployment\n"))
        .collect();
    assert_eq!(deployments.len(), 2);
    for deployment in deployments {
        for line in [
            "readOnlyRootFilesystem: true",
            "allowPrivilegeEscalation: false",
            "runAsNonRoot: true",
            "type: RuntimeDefault",
            "memory: 64Mi",
            "memory: 512Mi",
            "- --leader-elect",
            "name: metrics",
        ] {
            assert!(deployment.contains(line), "{line} not in\n{deployment}");
        }
        assert!(
            !deployment.contains("emptyDir: {}"),
            "a volume without size limit in\n{deployment}"
        );
        // If the label of nodes were required, the pods would stay Pending in clusters without such nodes.
        assert!(
            !deployment.contains("node-role.kubernetes.io/control-plane: \"\""),
            "requires a node of the control plane:\n{deployment}"
        );
    }
}

fn sample_catalog() -> serde_json::Result<ClusterCatalog> {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
        "metadata": {"name": "jars", "labels": {"kept": "yes"}},
        "spec": {"source": {"type": "Image", "image": {"ref": "example.com/catalogs/jars:latest"}}},
    }))
}
