//! Tests of the commands in docs/operations.md that upgrade the controllers from a former release and downgrade them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use olm_harness::workspace;
use serde_json::{Value, json};

use crate::cluster::{Cluster, commands_of};
use crate::kubectl::{has_kubectl, render};

const SECTION: &str = "Upgrading and downgrading the controllers";
const SERVER_SIDE: &str = "kubectl apply --server-side ";
const CLIENT_SIDE: &str = "kubectl apply ";
const TODAY: &str = "config/default";

/// Manifests of a release, with a name for messages.
struct Release {
    name: String,
    manifests: String,
}

impl Release {
    fn today() -> Result<Self> {
        Ok(Self {
            name: TODAY.to_owned(),
            manifests: render(TODAY)?,
        })
    }

    /// Reads the manifests of a folder of test/testdata/releases.
    fn former(folder: &Path) -> Result<Self> {
        Ok(Self {
            name: folder.display().to_string(),
            manifests: fs::read_to_string(folder.join("install.yaml"))?,
        })
    }

    /// Adds objects that no other release has: roles, and a CRD whose deletion would delete data.
    fn with_own_objects(mut self) -> Self {
        self.manifests.push_str(OWN_OBJECTS);
        self
    }
}

const OWN_OBJECTS: &str = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: former-role
  namespace: olmv1-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: former-role
  namespace: kube-public
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: former-cluster-role
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: lids.olm.operatorframework.io
  labels:
    app.kubernetes.io/part-of: olm
spec:
  group: olm.operatorframework.io
  names: {kind: Lid, plural: lids}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

/// Returns the folders of the former releases.
fn former_releases() -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(workspace::root().join("test/testdata/releases"))? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    ensure!(!folders.is_empty(), "no former release");
    Ok(folders)
}

/// Follows the documented steps from one release to another. `apply` takes the place of the documented command that applies the
/// manifests.
fn change(cluster: &Cluster, old: &Release, new: &Release, apply: &str) -> Result<()> {
    let file = cluster.file("old.yaml", &old.manifests)?;
    cluster.file("new.yaml", &new.manifests)?;
    let folder = file.parent().context("no folder")?.display();
    let step_2 = commands_of(SECTION, 2)?;
    ensure!(step_2.contains(SERVER_SIDE), "step 2 does not apply: {step_2}");
    let step_2 = step_2.replace(SERVER_SIDE, apply);
    let step_3 = commands_of(SECTION, 3)?;
    cluster.shell(&format!("cd {folder}\n{step_2}\n{step_3}"))?;

    let left = cluster.left_over(&old.manifests, &new.manifests)?;
    let left: Vec<&str> = left
        .lines()
        .filter(|name| !name.starts_with("customresourcedefinition"))
        .collect();
    ensure!(left.is_empty(), "left of {}: {left:?}", old.name);
    // The command exits with 1 and prints the difference if a live object differs from the manifests.
    let flag = if apply == SERVER_SIDE { "--server-side" } else { "" };
    cluster.shell(&format!("cd {folder} && kubectl diff {flag} -f new.yaml 2>&1"))?;
    Ok(())
}

/// Returns the identities, specs and statuses of the objects, and the stored versions of their CRDs.
fn state(cluster: &Cluster) -> Result<Value> {
    let objects = cluster.shell("kubectl get clustercatalogs,clusterextensions,clusterobjectsets -o json")?;
    let objects: Value = serde_json::from_str(&objects)?;
    let objects: Vec<Value> = objects["items"]
        .as_array()
        .context("no list")?
        .iter()
        .map(|object| {
            json!({
                "kind": object["kind"],
                "name": object["metadata"]["name"],
                "uid": object["metadata"]["uid"],
                "generation": object["metadata"]["generation"],
                "spec": object["spec"],
                "status": object["status"],
            })
        })
        .collect();
    ensure!(objects.len() == 3, "{objects:?}");
    Ok(json!(objects))
}

/// Checks that the API server serves every version in which a CRD's objects may be stored.
fn stored_versions_are_served(cluster: &Cluster) -> Result<()> {
    let crds = cluster.shell("kubectl get crd -l app.kubernetes.io/part-of=olm -o json")?;
    let crds: Value = serde_json::from_str(&crds)?;
    let crds = crds["items"].as_array().context("no list")?;
    ensure!(crds.len() >= 3, "{} CRDs", crds.len());
    for crd in crds {
        let served: Vec<&Value> = crd["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|version| version["served"] == true)
            .map(|version| &version["name"])
            .collect();
        let stored = crd["status"]["storedVersions"].as_array();
        let stored = stored.filter(|stored| !stored.is_empty());
        for version in stored.context("no stored versions")? {
            ensure!(
                served.contains(&version),
                "{} stores {version} and serves {served:?}",
                crd["metadata"]["name"]
            );
        }
    }
    Ok(())
}

/// Upgrades from a former release to the present one and downgrades again, with each combination of server-side and client-side
/// apply.
async fn upgrade_and_downgrade(folder: &Path) -> Result<()> {
    let cluster = Cluster::start().await?;
    let former = Release::former(folder)?;
    let today = Release::today()?;
    change(&cluster, &former, &former, CLIENT_SIDE)?;
    let objects = folder.join("objects.yaml");
    let objects = objects.display();
    cluster.shell(&format!(
        "kubectl create -f {objects} && kubectl replace --subresource=status -f {objects}"
    ))?;
    let before = state(&cluster)?;
    for object in before.as_array().into_iter().flatten() {
        ensure!(object["status"].is_object(), "without status: {object}");
    }

    let former = former.with_own_objects();
    for (old, new, apply) in [
        (&former, &former, CLIENT_SIDE),
        (&former, &today, CLIENT_SIDE),
        (&today, &former, CLIENT_SIDE),
        (&former, &today, SERVER_SIDE),
        (&today, &former, SERVER_SIDE),
        (&former, &today, CLIENT_SIDE),
        (&today, &former, SERVER_SIDE),
    ] {
        let way = || format!("from {} to {} by `{apply}`", old.name, new.name);
        change(&cluster, old, new, apply).with_context(way)?;
        assert_eq!(state(&cluster)?, before, "{}", way());
        stored_versions_are_served(&cluster).with_context(way)?;
        cluster
            .shell("kubectl get crd lids.olm.operatorframework.io")
            .with_context(way)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn from_former_releases_and_back() {
    if !has_kubectl() {
        return;
    }
    for folder in former_releases().unwrap() {
        Box::pin(upgrade_and_downgrade(&folder)).await.unwrap();
    }
}
