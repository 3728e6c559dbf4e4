//! Plans of an extension: what an upgrade writes is what its plan shows.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, core::GroupVersionKind};
use olm_harness::eventually;
use olm_plan::{Budget, Desired, ObjectRef, Plan, desired, fields};
use serde_json::{Value, json};

use super::{PATIENCE, World, ask};

/// Kinds of the sample operator's objects.
const KINDS: [(&str, &str, &str, &str); 6] = [
    ("", "v1", "ServiceAccount", "serviceaccounts"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("apps", "v1", "Deployment", "deployments"),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    ),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
    ),
];

/// Returns the objects of the extension on the cluster.
pub(super) async fn objects(world: &World) -> Result<Desired> {
    let mut all = Vec::new();
    for (group, version, kind, plural) in KINDS {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
        let selector = ListParams::default().labels("olm.operatorframework.io/owner-name=kite");
        for mut object in api.list(&selector).await?.items {
            object.types = Some(kube::core::TypeMeta {
                api_version: resource.api_version.clone(),
                kind: kind.to_owned(),
            });
            all.push(serde_json::to_value(object)?);
        }
    }
    Ok(desired(all))
}

/// Returns the plan of the upgrade to 1.1.0.
pub(super) async fn of_the_upgrade(world: &World) -> Result<Plan> {
    let host = world.registry.host();
    let args = ["plan", "kite", "--to", "1.1.0", "--plain-http-registry", &host];
    let said = world.says(&[&args[..], &["-o", "json"]].concat()).await?;
    ensure!(said.code == 1, "{said}");
    let plan: Plan = serde_json::from_str(&said.out).with_context(|| said.to_string())?;
    ensure!(plan.refusals.is_empty(), "{said}");
    let from = plan.from.as_ref().context("no revision")?;
    ensure!(
        (from.version.as_str(), from.revision.as_deref()) == ("1.0.0", Some("kite-1")),
        "{said}"
    );
    ensure!(plan.to.version == "1.1.0" && plan.to.image.is_some(), "{said}");
    ensure!(
        plan.catalog
            .as_ref()
            .is_some_and(|catalog| catalog.digest.is_some()),
        "{said}"
    );
    let again = world.value(&args).await?;
    ensure!(again["digest"] == plan.digest.as_str(), "{again}");
    Ok(plan)
}

/// Checks the plan of a user who may read everything and only apply Deployments: what the user may not apply is named, and compared
/// with the revision.
pub(super) async fn of_a_user_with_few_rights(world: &World, full: &Plan) -> Result<()> {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "planner"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch", "create"]}]});
    let binding = json!({"metadata": {"name": "planner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "planner"},
        "subjects": [{"kind": "User", "name": "planner", "apiGroup": "rbac.authorization.k8s.io"}]});
    world
        .create(Api::<ClusterRole>::all(world.client.clone()), role)
        .await?;
    world
        .create(Api::<ClusterRoleBinding>::all(world.client.clone()), binding)
        .await?;
    let kubeconfig = world.plane.kubeconfig_for("planner", None)?.display().to_string();
    let host = world.registry.host();
    let args = [
        "plan",
        "kite",
        "--to",
        "1.1.0",
        "--plain-http-registry",
        &host,
        "-o",
        "json",
    ];
    let said = ask(&args, &[("KUBECONFIG", kubeconfig.as_str())]).await?;
    ensure!(said.code == 1, "{said}");
    let plan: Plan = serde_json::from_str(&said.out).with_context(|| said.to_string())?;
    ensure!(plan.refusals.is_empty() && plan.digest == full.digest, "{said}");
    let unchecked = |object: &str| {
        let text = format!("{object}: you may not apply it in a dry run");
        plan.unchecked.iter().any(|check| check.starts_with(&text))
    };
    ensure!(unchecked("ConfigMap kites/kite-settings"), "{said}");
    ensure!(!unchecked("Deployment kites/kite"), "{said}");
    let changed = |plan: &Plan| {
        plan.changed
            .iter()
            .map(|change| change.object.clone())
            .collect::<BTreeSet<_>>()
    };
    ensure!(changed(&plan) == changed(full), "{said}");
    Ok(())
}

/// Checks that every object and field that the upgrade wrote is in the plan.
pub(super) async fn covers(world: &World, before: &Desired, plan: &Plan) -> Result<()> {
    let named = |objects: &[ObjectRef]| objects.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let (created, deleted) = (named(&plan.created), named(&plan.deleted));
    ensure!(
        !created.is_empty() && !deleted.is_empty() && !plan.changed.is_empty(),
        "{plan:#?}"
    );
    eventually(PATIENCE, "the old objects are deleted", async || {
        let after = objects(world).await?;
        let gone = |shown: &String| {
            !after
                .values()
                .any(|object| ObjectRef::of(object).to_string() == *shown)
        };
        ensure!(deleted.iter().all(gone), "{deleted:?}");
        Ok(())
    })
    .await?;
    let after = objects(world).await?;
    for (key, new) in &after {
        let object = ObjectRef::of(new);
        let Some(old) = before.get(key) else {
            ensure!(
                created.contains(&object.to_string()),
                "{object} is not in the plan: {plan:#?}"
            );
            continue;
        };
        let planned = plan.changed.iter().find(|change| change.object == object);
        let written = fields(old, new, &mut Budget::default()).changes.into_iter();
        // kube-controller-manager counts the rollouts of a Deployment.
        for written in written.filter(|field| !field.path.ends_with("deployment.kubernetes.io~1revision")) {
            let covered = planned.is_some_and(|change| change.fields.contains(&written));
            ensure!(covered, "{object}: {written:?} is not in the plan: {plan:#?}");
        }
    }
    for (key, old) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
        ensure!(
            deleted.contains(&ObjectRef::of(old).to_string()),
            "{key:?} is not in the plan"
        );
    }
    Ok(())
}

/// Checks the plans of an extension that is up to date, and of changes that would be refused.
pub(super) async fn of_nothing(world: &World) -> Result<()> {
    let host = world.registry.host();
    let plan = async |args: &[&str]| {
        let access = ["--plain-http-registry", host.as_str()];
        world.says(&[&["plan"], args, &access].concat()).await
    };
    let same = plan(&["kite"]).await?;
    ensure!(same.code == 0 && same.out.contains("nothing to do"), "{same}");
    let absent = plan(&["kite", "--to", "9.x"]).await?;
    ensure!(
        absent.code == 2 && absent.err.contains("no bundle can be installed"),
        "{absent}"
    );
    let none = plan(&["none"]).await?;
    ensure!(
        none.code == 3 && none.err.contains("there is no ClusterExtension"),
        "{none}"
    );
    let file = tempfile::NamedTempFile::new()?;
    let mut manifest: Value = world.value(&["status", "kite"]).await?;
    manifest = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": manifest["name"]}, "spec": {"namespace": super::NAMESPACE,
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite", "version": "1.1.0"}}}});
    std::fs::write(file.path(), manifest.to_string())?;
    let path = file.path().display().to_string();
    let from_file = plan(&["-f", &path]).await?;
    ensure!(from_file.code == 0, "{from_file}");
    let other = plan(&["lamp", "-f", &path]).await?;
    ensure!(other.code == 2, "{other}");
    Ok(())
}

/// Checks that plans list the namespaces that the configuration selects by labels.
pub(super) async fn of_selected_namespaces(world: &World) -> Result<()> {
    let host = world.registry.host();
    let plan = async |names: &[&str]| {
        let selector = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]});
        let manifest = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "kite"}, "spec": {"namespace": super::NAMESPACE,
                "config": {"configType": "Inline", "inline": {"watchNamespaceSelector": selector}},
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite", "version": "1.1.0"}}}});
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), manifest.to_string())?;
        let path = file.path().display().to_string();
        let args = ["plan", "-f", &path, "--plain-http-registry", &host, "-o", "json"];
        world.says(&args).await
    };
    let said = plan(&["kites", "default", "nowhere"]).await?;
    ensure!(said.code == 1, "{said}");
    let shown: Plan = serde_json::from_str(&said.out).with_context(|| said.to_string())?;
    let roles = shown.created.iter().filter(|object| object.kind == "Role");
    let namespaces: BTreeSet<&str> = roles.map(|role| role.namespace.as_str()).collect();
    ensure!(namespaces == BTreeSet::from(["default", "kites"]), "{said}");
    let none = plan(&["nowhere"]).await?;
    ensure!(
        none.code == 2 && none.err.contains("no namespace matches watchNamespaceSelector"),
        "{none}"
    );
    Ok(())
}

/// Checks the plan of a second extension of the package that leaves its namespace to the bundle: objects of the namespace that is not
/// there yet are not tried, and objects of the first extension are refused.
pub(super) async fn of_a_suggested_namespace(world: &World) -> Result<()> {
    let host = world.registry.host();
    let manifest = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "second"},
        "spec": {"source": {"sourceType": "Catalog", "catalog": {"packageName": "kite", "version": "1.1.0"}}}});
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), manifest.to_string())?;
    let path = file.path().display().to_string();
    let said = world
        .says(&["plan", "-f", &path, "--plain-http-registry", &host, "-o", "json"])
        .await?;
    let shown: Plan = serde_json::from_str(&said.out).with_context(|| said.to_string())?;
    ensure!(shown.namespace == "kite-system", "{said}");
    let namespace = |object: &ObjectRef| object.kind == "Namespace" && object.name == "kite-system";
    ensure!(shown.created.iter().any(namespace), "{said}");
    let later =
        "objects of namespace kite-system: no dry run, because the namespace is created with the extension";
    ensure!(shown.unchecked.iter().any(|text| text.ends_with(later)), "{said}");
    let taken =
        |text: &String| text.contains("exists already and does not belong to ClusterExtension \"second\"");
    ensure!(
        !shown.refusals.is_empty() && shown.refusals.iter().all(taken),
        "{said}"
    );
    Ok(())
}
