//! The commands that write, from an empty cluster to an upgraded extension, with both controllers.

mod common;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use common::world::World;
use common::{Said, run_with};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use olm_api::{ClusterCatalog, ClusterExtension};
use olm_harness::{ImageBuilder, eventually};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(2);

impl World {
    /// Pushes the bundles of these versions, each a successor of the one before, and a catalog of them under one tag.
    async fn publish(&self, versions: &[&str]) -> Result<()> {
        let host = self.registry.host();
        let mut metas = vec![json!({"schema": "olm.package", "name": "kite", "defaultChannel": "stable"})];
        let mut entries = Vec::new();
        for (place, version) in versions.iter().enumerate() {
            let repository = format!("bundles/kite:{version}");
            bundle(version).push(&self.registry, &repository).await?;
            metas.push(json!({
                "schema": "olm.bundle", "package": "kite", "name": format!("kite.v{version}"),
                "image": format!("{host}/{repository}"),
                "properties": [{"type": "olm.package", "value": {"packageName": "kite", "version": version}}],
            }));
            let former = place.checked_sub(1).and_then(|place| versions.get(place));
            let mut entry = json!({"name": format!("kite.v{version}")});
            if let Some(former) = former {
                entry["replaces"] = json!(format!("kite.v{former}"));
            }
            entries.push(entry);
        }
        metas.push(json!({"schema": "olm.channel", "package": "kite", "name": "stable", "entries": entries}));
        let metas: Vec<String> = metas.iter().map(Value::to_string).collect();
        ImageBuilder::new()
            .label("operators.operatorframework.io.index.configs.v1", "/configs")
            .file("configs/catalog.json", metas.join("\n"))
            .push(&self.registry, "kites:v1")
            .await?;
        Ok(())
    }

    async fn olm(&self, line: &str) -> Result<Said> {
        let kubeconfig = self.plane.kubeconfig().display().to_string();
        let line: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        Ok(tokio::task::spawn_blocking(move || {
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            run_with(&line, &[("KUBECONFIG", &kubeconfig)])
        })
        .await?)
    }

    async fn extension(&self) -> Result<ClusterExtension> {
        Ok(Api::all(self.plane.client()).get("kite").await?)
    }
}

/// Fails unless the command ended with the code and said all parts.
fn expect(said: &Said, code: i32, parts: &[&str]) -> Result<()> {
    ensure!(said.code == code, "expected exit code {code}: {said}");
    for part in parts {
        ensure!(
            said.out.contains(part) || said.err.contains(part),
            "{part:?} is missing: {said}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn from_an_empty_cluster_to_an_upgraded_extension() {
    let world = World::start().await.unwrap();
    world.publish(&["1.0.0"]).await.unwrap();
    adds_a_catalog(&world).await.unwrap();
    installs(&world).await.unwrap();
    refreshes(&world).await.unwrap();
    upgrades(&world).await.unwrap();
    rolls_back(&world).await.unwrap();
    removes_the_catalog(&world).await.unwrap();
    stays_without_a_catalog(&world).await.unwrap();
}

async fn adds_a_catalog(world: &World) -> Result<()> {
    let image = format!("{}/kites:v1", world.registry.host());
    let dry = world
        .olm(&format!(
            "catalog add kites {image} --poll-minutes 0 --dry-run -o json"
        ))
        .await?;
    expect(&dry, 0, &[])?;
    let printed: Value = serde_json::from_str(&dry.out)?;
    assert_eq!(
        printed["items"][0]["spec"]["source"]["image"]["ref"],
        json!(image)
    );
    let catalogs: Api<ClusterCatalog> = Api::all(world.plane.client());
    ensure!(catalogs.list(&ListParams::default()).await?.items.is_empty());

    let added = world
        .olm(&format!(
            "catalog add kites {image} --poll-minutes 0 --priority 3"
        ))
        .await?;
    expect(&added, 0, &["ClusterCatalog kites applied", "Serving"])?;
    let listed = world.olm("catalog list -o json").await?;
    expect(&listed, 0, &[])?;
    let row = &serde_json::from_str::<Value>(&listed.out)?["catalogs"][0];
    assert_eq!(
        [&row["name"], &row["state"], &row["priority"], &row["extensions"]],
        [&json!("kites"), &json!("Serving"), &json!(3), &json!(0)]
    );
    let absent = world.olm("catalog refresh kits").await?;
    expect(
        &absent,
        1,
        &["there is no ClusterCatalog \"kits\"; present: kites"],
    )
}

async fn installs(world: &World) -> Result<()> {
    let typo = world.olm("install kitee --create-namespace").await?;
    expect(&typo, 1, &["is in none of the catalogs", "kite"])?;
    let nothing = world.olm("install kite --create-namespace --version >=2").await?;
    expect(&nothing, 1, &["nothing is installed: "])?;
    let absent = world
        .olm("install kite --create-namespace --catalog kits")
        .await?;
    expect(
        &absent,
        1,
        &["nothing is written: there is no catalog \"kits\"; available: kites"],
    )?;
    let nameless = world
        .olm("install kite --create-namespace --name a/b --no-wait")
        .await?;
    expect(
        &nameless,
        2,
        &["\"a/b\" cannot be the name of a ClusterExtension"],
    )?;
    let homeless = world.olm("install kite").await?;
    expect(
        &homeless,
        1,
        &["namespace \"kite-system\" does not exist", "--create-namespace"],
    )?;
    let checked = world
        .olm("install kite --create-namespace --dry-run=server -o yaml")
        .await?;
    expect(&checked, 0, &["packageName: kite"])?;
    let extensions: Api<ClusterExtension> = Api::all(world.plane.client());
    ensure!(extensions.list(&ListParams::default()).await?.items.is_empty());

    let installed = world
        .olm("install kite --create-namespace --version 1.0.x --catalog kites --timeout 2m")
        .await?;
    expect(
        &installed,
        0,
        &[
            "package kite: version 1.0.0 of catalog kites",
            "ClusterExtension kite applied",
            "Ready: Version 1.0.0 is installed",
        ],
    )?;
    let tree = world.olm("tree kite").await?;
    // The manifest of the webhook names a namespace, which its kind does not have.
    expect(
        &tree,
        0,
        &["ValidatingWebhookConfiguration kites.example.com healthy"],
    )?;
    let again = world.olm("install kite --create-namespace").await?;
    expect(
        &again,
        1,
        &["ClusterExtension \"kite\" exists", "kubectl olm upgrade kite"],
    )
}

async fn refreshes(world: &World) -> Result<()> {
    world.publish(&["1.0.0", "1.1.0"]).await?;
    let refreshed = world.olm("catalog refresh kites").await?;
    expect(
        &refreshed,
        0,
        &["catalogd checks the registry for ClusterCatalog kites"],
    )?;
    eventually(PATIENCE, "the new content is served", async || {
        let versions = world.olm("versions kite").await?;
        ensure!(versions.out.contains("1.1.0"), "{versions}");
        Ok(())
    })
    .await?;
    Ok(())
}

async fn upgrades(world: &World) -> Result<()> {
    let nothing = world.olm("upgrade kite --version 3.x").await?;
    expect(&nothing, 1, &["nothing is changed: "])?;
    let unknown = world.olm("upgrade kit --latest").await?;
    expect(&unknown, 1, &["there is no ClusterExtension \"kit\""])?;
    let checked = world.olm("upgrade kite --latest --dry-run=server").await?;
    expect(
        &checked,
        0,
        &["kite.v1.0.0 (1.0.0) from catalog kites → kite.v1.1.0 (1.1.0)"],
    )?;
    let range =
        |extension: ClusterExtension| extension.spec.source.catalog.and_then(|catalog| catalog.version);
    assert_eq!(range(world.extension().await?).as_deref(), Some("1.0.x"));

    approves(world).await?;
    let upgraded = world.olm("upgrade kite --latest -o json").await?;
    expect(&upgraded, 0, &["Ready: Version 1.1.0 is installed"])?;
    let printed: Value = serde_json::from_str(&upgraded.out)?;
    assert_eq!(
        printed["items"][0]["spec"]["source"]["catalog"]["packageName"],
        "kite"
    );
    assert_eq!(range(world.extension().await?), None);
    Ok(())
}

/// The plan of the command is the controller's: the same digest, with the roles for custom resources on both sides.
async fn approves(world: &World) -> Result<()> {
    let extensions: Api<ClusterExtension> = Api::all(world.plane.client());
    let set = async |rollout: Value| {
        let patch = Patch::Merge(json!({"spec": {"rollout": rollout}}));
        extensions.patch("kite", &PatchParams::default(), &patch).await
    };
    set(json!({"approval": "Manual"})).await?;
    let written = world.olm("upgrade kite --latest --no-wait").await?;
    expect(&written, 0, &[])?;
    let pending = eventually(PATIENCE, "a plan waits", async || {
        let status = world.extension().await?.status.unwrap_or_default();
        status.pending_plan.context("no plan waits")
    })
    .await?;
    let planned = world
        .olm(&format!(
            "plan kite -o json --plain-http-registry {}",
            world.registry.host()
        ))
        .await?;
    expect(&planned, 1, &[])?;
    let plan: Value = serde_json::from_str(&planned.out)?;
    assert_eq!(plan["digest"], json!(pending.digest), "{planned}");
    let counted = |key: &str| plan["counts"][key].as_i64();
    assert_eq!(
        [counted("created"), counted("deleted")],
        [Some(pending.objects.created), Some(pending.objects.deleted)],
        "{planned}"
    );
    assert_eq!(counted("deleted"), Some(0), "{planned}");
    let approved = world
        .olm(&format!("approve kite --digest {}", pending.digest))
        .await?;
    expect(&approved, 0, &[])?;
    set(Value::Null).await?;
    Ok(())
}

/// Runs every command of docs/rollback.md.
async fn rolls_back(world: &World) -> Result<()> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rollback.md"))?;
    let blocks = page.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let commands: Vec<String> = lines
        .map(|line| line.split_once(" #").map_or(line, |(command, _)| command).trim())
        .filter(|line| !line.is_empty())
        .map(|line| line.replace("NAME", "kite"))
        .collect();
    ensure!(commands.len() == 9, "{commands:#?}");
    let asked = world.olm("rollback kite").await?;
    expect(
        &asked,
        2,
        &[
            "from revision 2 (version 1.1.0) back to the content of revision 1 (version 1.0.0)",
            "confirm with --yes",
            "Verdict",
        ],
    )?;
    let unknown = world.olm("rollback kite --to 7").await?;
    expect(
        &unknown,
        1,
        &["no revision 7", "1 (version 1.0.0), 2 (version 1.1.0)"],
    )?;
    let request =
        |extension: ClusterExtension| extension.spec.rollout.and_then(|rollout| rollout.roll_back_to);
    for command in &commands {
        if let Some(patch) = command.strip_prefix("kubectl patch clusterextension kite --type merge -p ") {
            let patch: Value = serde_json::from_str(patch.trim_matches('\''))?;
            let api: Api<ClusterExtension> = Api::all(world.plane.client());
            api.patch("kite", &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
            continue;
        }
        let line = command.strip_prefix("kubectl olm ").context("another command")?;
        let said = world.olm(line).await?;
        let parts: &[&str] = match line {
            "rollback kite --dry-run=client" => &["rollBackTo: 1"],
            "rollback kite --yes" => &["is rolled back to revision 1", "Version 1.0.0 is installed"],
            "rollback kite --to 1 --yes" => &["Version 1.0.0 is installed", "RollBackRequested"],
            "rollback kite --end" => &["follows its source again", "Version 1.1.0 is installed"],
            _ => &[],
        };
        // The last commands follow patches, and the extension may be in between.
        if !(line.starts_with("status") || line.starts_with("events")) {
            expect(&said, 0, parts).with_context(|| command.clone())?;
        }
        if line == "rollback kite --to 1 --yes" {
            held(world).await?;
        }
    }
    eventually(PATIENCE, "the extension follows its source", async || {
        let extension = world.extension().await?;
        let status = extension.status.clone().unwrap_or_default();
        let version = status.install.map(|install| install.bundle.version);
        ensure!(
            version.as_deref() == Some("1.1.0") && request(extension).is_none(),
            "{version:?}"
        );
        Ok(())
    })
    .await?;
    let events = world.olm("events kite").await?;
    expect(&events, 0, &["RolledBack", "RollBackEnded"])
}

/// While a rollback holds, plans and upgrades are refused.
async fn held(world: &World) -> Result<()> {
    let planned = world
        .olm(&format!(
            "plan kite --plain-http-registry {}",
            world.registry.host()
        ))
        .await?;
    expect(
        &planned,
        2,
        &["spec.rollout.rollBackTo holds the extension at the content of revision 1"],
    )?;
    let upgraded = world.olm("upgrade kite --latest").await?;
    expect(
        &upgraded,
        1,
        &["nothing is changed: spec.rollout.rollBackTo holds"],
    )?;
    let server = world.olm("rollback kite --end --dry-run=server -o json").await?;
    expect(&server, 0, &["\"rollBackTo\": null"])
}

async fn removes_the_catalog(world: &World) -> Result<()> {
    let warning = "without upgrades from it from now on: kite";
    let dry = world.olm("catalog remove kites --dry-run").await?;
    expect(&dry, 0, &[warning, "would be deleted"])?;
    let removed = world.olm("catalog remove kites").await?;
    expect(&removed, 0, &[warning, "ClusterCatalog kites deleted"])?;
    let listed = world.olm("catalog list").await?;
    expect(&listed, 0, &["no ClusterCatalogs"])
}

/// Without catalogs, the installed bundle stays, and a changed configuration is planned as the controller plans it.
async fn stays_without_a_catalog(world: &World) -> Result<()> {
    let why = world.olm("why kite").await?;
    expect(
        &why,
        0,
        &["Stays      kite.v1.1.0 (1.1.0), because no catalog is selected"],
    )?;
    let other = world.olm("why kite --want 1.0.0").await?;
    expect(&other, 1, &["Stays      kite.v1.1.0"])?;
    let registry = world.registry.host();
    let unchanged = world
        .olm(&format!("plan kite --plain-http-registry {registry}"))
        .await?;
    expect(
        &unchanged,
        0,
        &["no catalog is selected, so bundle kite.v1.1.0 (1.1.0) stays"],
    )?;
    let upgraded = world.olm("upgrade kite --latest").await?;
    expect(
        &upgraded,
        0,
        &["no catalog is selected: bundle kite.v1.1.0 (1.1.0) stays"],
    )?;
    let refused = world.olm("upgrade kite --version 1.0.0").await?;
    expect(&refused, 1, &["nothing is changed: "])?;

    let extensions: Api<ClusterExtension> = Api::all(world.plane.client());
    let inline = json!({"deploymentConfig": {"env": [{"name": "WIND", "value": "strong"}]}});
    let patch = json!({"spec": {"rollout": {"approval": "Manual"}, "config": {"configType": "Inline", "inline": inline}}});
    extensions
        .patch("kite", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    let pending = eventually(PATIENCE, "a plan waits", async || {
        let extension = world.extension().await?;
        let status = extension.status.clone().unwrap_or_default();
        status
            .pending_plan
            .with_context(|| format!("{:?}", extension.conditions()))
    })
    .await?;
    let planned = world
        .olm(&format!("plan kite -o json --plain-http-registry {registry}"))
        .await?;
    expect(&planned, 1, &[])?;
    let plan: Value = serde_json::from_str(&planned.out)?;
    assert_eq!(plan["digest"], json!(pending.digest), "{planned}");
    Ok(())
}

/// Returns a bundle with a CRD, a Deployment and a webhook.
fn bundle(version: &str) -> ImageBuilder {
    let labels = json!({"app": "kite"});
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("kite.v{version}")},
        "spec": {
            "version": version,
            "installModes": [{"type": "AllNamespaces", "supported": true}],
            "webhookdefinitions": [{
                "type": "ValidatingAdmissionWebhook", "generateName": "kites.example.com", "deploymentName": "kite",
                "admissionReviewVersions": ["v1"], "containerPort": 9443, "targetPort": 9443, "sideEffects": "None",
                "failurePolicy": "Ignore", "webhookPath": "/validate",
                "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["kites"]}],
            }],
            "customresourcedefinitions": {"owned": [{"name": "kites.example.com", "kind": "Kite", "version": "v1"}]},
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "kite", "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "containers": [{"name": "manager", "image": format!("registry.example/kite:{version}")}]}},
            }}]}},
        },
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kites.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Kite", "listKind": "KiteList", "plural": "kites", "singular": "kite"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": "kite",
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    }});
    ImageBuilder::new()
        .file("manifests/kite.clusterserviceversion.yaml", csv.to_string())
        .file("manifests/kites.crd.yaml", crd.to_string())
        .file("metadata/annotations.yaml", annotations.to_string())
}
