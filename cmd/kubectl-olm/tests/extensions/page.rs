//! The commands of `docs/rollouts.md` on a real extension, in the order of an upgrade: seen, held, approved, overridden.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use olm_api::ClusterExtension;
use olm_e2e::cluster::Cluster;
use olm_harness::eventually;
use serde_json::{Value, json};

use super::{NAMESPACE, PATIENCE, World};
use crate::common::Said;

/// Name of the `OperatorCondition`: that of the extension.
const NAME: &str = "kite";

/// Commands of a page.
struct Page {
    commands: BTreeSet<String>,
    left: BTreeSet<String>,
}

impl Page {
    fn read() -> Result<Self> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rollouts.md");
        let text = std::fs::read_to_string(path)?;
        let commands = text.lines().filter(|line| line.starts_with("kubectl "));
        let bare = |line: &str| {
            line.split_once(" #")
                .map_or(line, |(command, _)| command)
                .trim()
                .to_owned()
        };
        let commands: BTreeSet<String> = commands.map(bare).collect();
        let left = commands.clone();
        Ok(Self { commands, left })
    }

    /// Runs the command that begins with `start`.
    async fn run(&mut self, world: &World, start: &str, digest: &str) -> Result<Said> {
        self.run_with(world, start, digest, &[]).await
    }

    /// Runs the command that begins with `start`, with further arguments.
    async fn run_with(&mut self, world: &World, start: &str, digest: &str, more: &[&str]) -> Result<Said> {
        let mut found = self.commands.iter().filter(|command| command.starts_with(start));
        let (Some(command), None) = (found.next(), found.next()) else {
            bail!(
                "not one command of the page begins with {start:?}: {:?}",
                self.commands
            );
        };
        self.left.remove(command);
        let line = command
            .replace("NAMESPACE", NAMESPACE)
            .replace("NAME", NAME)
            .replace("sha256:…", digest);
        match line.strip_prefix("kubectl olm ") {
            Some(args) => {
                let args = args.split_whitespace().chain(more.iter().copied());
                world.says(&args.collect::<Vec<_>>()).await
            }
            None => patch(world, &line).await,
        }
    }
}

/// Carries out `kubectl patch KIND NAME [-n NAMESPACE] --type merge -p 'PATCH'`.
async fn patch(world: &World, line: &str) -> Result<Said> {
    let (head, change) = line.split_once(" --type merge -p ").context("no merge patch")?;
    let change: Value = serde_json::from_str(change.trim_matches('\''))?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let ["kubectl", "patch", kind, name, ..] = words.as_slice() else {
        bail!("an unknown command: {line}");
    };
    let reference = format!("{kind}/{name}");
    Cluster::new(world.client.clone())
        .merge(&reference, NAMESPACE, &change)
        .await?;
    Ok(Said {
        code: 0,
        out: String::new(),
        err: String::new(),
    })
}

/// Installs the sample operator with an account that may do everything.
pub(super) async fn install(world: &World) -> Result<()> {
    let cluster = Cluster::new(world.client.clone());
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": NAMESPACE}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "kite-installer"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": NAMESPACE}]}),
    ] {
        cluster.apply(&object).await?;
    }
    world.apply("1.0.0").await?;
    world.ready("1.0.0").await
}

/// The installed operator says that it is busy.
async fn hold(world: &World) -> Result<()> {
    let cluster = Cluster::new(world.client.clone());
    cluster
        .apply_file("test/testdata/operator-condition/crd.yaml", &[])
        .await?;
    let object = json!({"apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"conditions": [{"type": "Upgradeable", "status": "False", "reason": "Flying",
            "message": "A kite is in the air.", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let kind = GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "operatorconditions");
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), NAMESPACE, &resource);
    eventually(PATIENCE, "the OperatorCondition is written", async || {
        api.patch(NAME, &PatchParams::apply("operator"), &Patch::Apply(&object))
            .await?;
        Ok(())
    })
    .await
}

/// Waits until the plan of 1.1.0 waits for this reason; returns its digest.
async fn waits(world: &World, reason: &str) -> Result<String> {
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    eventually(PATIENCE, reason, async || {
        let status = api.get(NAME).await?.status.unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let waits = conditions.any(|c| c.type_ == "Progressing" && c.reason == reason);
        ensure!(waits, "{:?}", status.conditions);
        let upgrade = status.upgrade.context("no upgrade in the status")?;
        let plan = status.pending_plan.context("no plan")?;
        ensure!(
            (upgrade.version.as_str(), upgrade.catalog.as_deref()) == ("1.1.0", Some("kites")),
            "{upgrade:?}"
        );
        Ok(plan.digest)
    })
    .await
}

pub(super) async fn commands(world: &World) -> Result<()> {
    let mut page = Page::read()?;
    for (command, state) in [("pause", "Paused"), ("resume", "Ready")] {
        let said = page.run(world, &format!("kubectl olm {command} "), "").await?;
        assert_eq!(said.code, 0, "{said}");
        eventually(PATIENCE, state, async || {
            let got = world.value(&["get"]).await?;
            ensure!(got["extensions"][0]["state"] == state, "{got}");
            Ok(())
        })
        .await?;
    }
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    let manual = json!({"spec": {"rollout": {"approval": "Manual"}}});
    api.patch(NAME, &PatchParams::default(), &Patch::Merge(manual))
        .await?;
    hold(world).await?;
    world.apply("1.1.0").await?;
    let digest = waits(world, "AwaitingApproval").await?;
    let seen = page.run(world, "kubectl olm status ", "").await?;
    ensure!(seen.out.contains(&digest), "{seen}");
    let dry = page.run(world, "kubectl olm approve NAME --dry-run", "").await?;
    ensure!(dry.code == 0 && dry.out.contains(&digest), "{dry}");
    let host = world.registry.host();
    let registry = ["--plain-http-registry", &host];
    let planned = page
        .run_with(world, "kubectl olm plan NAME --approve", "", &registry)
        .await?;
    let held =
        "OperatorCondition \"kite\" has Upgradeable=False in spec.conditions (Flying: A kite is in the air.)";
    // A plan that would be refused is shown and not approved.
    ensure!(planned.code == 2 && planned.out.contains(held), "{planned}");
    let spec = api.get(NAME).await?.spec;
    let rollout = spec.rollout.context("no spec.rollout")?;
    assert_eq!(rollout.approved_plan, None);

    let approved = page
        .run(world, "kubectl olm approve NAME --digest", &digest)
        .await?;
    assert_eq!(approved.code, 0, "{approved}");
    waits(world, "HeldByOperator").await?;
    let again = page.run(world, "kubectl patch clusterextension", &digest).await?;
    assert_eq!(again.code, 0, "{again}");
    let held = "Upgradeable=False in spec.conditions (Flying: A kite is in the air.)";
    for command in [&["status", NAME][..], &["why", NAME], &["get"], &["events", NAME]] {
        let said = world.says(command).await?;
        ensure!(said.out.contains(held), "{command:?}: {said}");
    }
    let useless = world.says(&["approve", NAME]).await?;
    ensure!(
        useless.code == 1 && useless.err.contains("waits for no approval") && useless.err.contains(held),
        "{useless}"
    );
    page.run(world, "kubectl patch operatorcondition", "").await?;
    world.ready("1.1.0").await?;
    ensure!(
        page.left.is_empty(),
        "docs/rollouts.md has commands that no test runs: {:?}",
        page.left
    );
    Ok(())
}
