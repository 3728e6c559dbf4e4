//! `get --namespace` for a person who has only the `ClusterRole` `view` in one namespace, and the binding of `docs/tenants.md`.

use anyhow::{Context as _, Result, ensure};
use olm_e2e::cluster::Cluster;
use olm_harness::eventually;
use olm_harness::workspace;
use serde_json::{Value, json};

use super::{PATIENCE, World, ask};
use crate::common::Said;

const TENANT: &str = "tenant";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Name of the `ClusterRole` in the command of the page.
const ROLE: &str = "operator-controller-installed-apis-viewer-role";

async fn says(world: &World, args: &[&str]) -> Result<Said> {
    let kubeconfig = world.plane.kubeconfig_for(TENANT, None)?.display().to_string();
    ask(args, &[("KUBECONFIG", kubeconfig.as_str())]).await
}

/// Returns the entry of the sample operator's API.
async fn kites(world: &World) -> Result<Value> {
    let said = says(world, &["get", "-n", "team-a", "-o", "json"]).await?;
    let value: Value = serde_json::from_str(&said.out).with_context(|| said.to_string())?;
    let apis = value["apis"].as_array().cloned().unwrap_or_default();
    let found = apis
        .into_iter()
        .find(|api| api["group"] == "example.com" && api["resource"] == "kites");
    found.with_context(|| said.to_string())
}

async fn bind(cluster: &Cluster, role: &str, namespace: &str) -> Result<()> {
    cluster
        .apply(&json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": TENANT, "apiGroup": RBAC}]}))
        .await
}

pub(super) async fn see_their_namespace(world: &World) -> Result<()> {
    let cluster = Cluster::new(world.client.clone());
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}))
        .await?;
    bind(&cluster, "view", "team-a").await?;
    let refused = says(world, &["get"]).await?;
    ensure!(
        refused.code == 3 && refused.err.contains("kubectl olm get --namespace NAMESPACE"),
        "{refused}"
    );
    let refused = says(world, &["get", "-o", "json"]).await?;
    let error: Value = serde_json::from_str(&refused.out).with_context(|| refused.to_string())?;
    ensure!(error["error"]["kind"] == "CouldNotAsk", "{refused}");

    eventually(PATIENCE, "the view role holds the rights on kites", async || {
        let api = kites(world).await?;
        ensure!(api["may"] == json!(["read"]), "{api}");
        ensure!(
            api["extension"].is_null() && api["versions"] == json!(["v1"]),
            "{api}"
        );
        Ok(())
    })
    .await?;
    let said = says(world, &["get", "--namespace", "team-a"]).await?;
    ensure!(
        said.code == 0 && said.out.contains("kites.example.com") && said.out.contains("docs/tenants.md"),
        "{said}"
    );
    ensure!(!said.out.contains("deployments"), "{said}");

    bind(&cluster, "edit", "team-a").await?;
    eventually(PATIENCE, "the edit role holds the rights on kites", async || {
        let api = kites(world).await?;
        ensure!(
            api["may"] == json!(["read", "create", "change", "delete"]),
            "{api}"
        );
        Ok(())
    })
    .await?;
    names_with_the_binding(world, &cluster).await?;
    wrong_names(world).await
}

/// Grants what the page's command grants: names of extensions, and no more.
async fn names_with_the_binding(world: &World, cluster: &Cluster) -> Result<()> {
    let page = std::fs::read_to_string(workspace::root().join("docs/tenants.md"))?;
    let command = page
        .lines()
        .find(|line| line.starts_with("kubectl create clusterrolebinding"));
    ensure!(
        command.is_some_and(
            |command| command.contains(ROLE) && command.ends_with("--group system:authenticated")
        ),
        "{command:?}"
    );
    let text = std::fs::read_to_string(workspace::root().join("config/rbac/operator-controller.yaml"))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let role = objects.iter().find(|object| object["metadata"]["name"] == ROLE);
    cluster.apply(role.context("no such ClusterRole")?).await?;
    cluster
        .apply(
            &json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": "installed-apis-viewers"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "Group", "name": "system:authenticated", "apiGroup": RBAC}]}),
        )
        .await?;
    eventually(PATIENCE, "the extension is named", async || {
        let api = kites(world).await?;
        ensure!(
            api["extension"] == "kite" && api["package"] == "kite" && api["version"] == "1.1.0",
            "{api}"
        );
        Ok(())
    })
    .await?;
    let wide = says(world, &["get", "-n", "team-a", "-o", "wide"]).await?;
    let row = wide.out.lines().find(|line| line.starts_with("kite "));
    let row: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        row,
        [
            "kite",
            "1.1.0",
            "kites.example.com",
            "read,",
            "create,",
            "change,",
            "delete",
            "kite",
            "Kite",
            "v1"
        ],
        "{wide}"
    );
    let refused = says(world, &["get"]).await?;
    assert_eq!(refused.code, 3, "{refused}");
    Ok(())
}

async fn wrong_names(world: &World) -> Result<()> {
    let said = world.says(&["get", "-n", "taem-a"]).await?;
    ensure!(
        said.code == 1
            && said
                .err
                .contains("there is no Namespace \"taem-a\". Did you mean \"team-a\"?"),
        "{said}"
    );
    for command in [
        &["status", "kyte"][..],
        &["history", "kyte"],
        &["tree", "kyte"],
        &["why", "kyte"],
        &["plan", "kyte"],
        &["approve", "kyte"],
        &["pause", "kyte"],
        &["resume", "kyte"],
        &["delete", "kyte", "--yes"],
        &["upgrade", "kyte", "--version", "1.1.0"],
    ] {
        let said = world.says(command).await?;
        ensure!(
            said.code != 0
                && said
                    .err
                    .contains("there is no ClusterExtension \"kyte\". Did you mean \"kite\"?"),
            "{command:?}: {said}"
        );
    }
    let crd = world.says(&["crd", "migrate", "kite.example.com"]).await?;
    ensure!(crd.err.contains("Did you mean \"kites.example.com\"?"), "{crd}");
    Ok(())
}
