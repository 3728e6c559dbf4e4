//! Steps about the namespaces that an operator watches.

use std::collections::BTreeSet;

use cucumber::{given, then, when};
use kube::ResourceExt;
use kube::api::ListParams;
use olm_api::keys::OWNER_NAME_LABEL;
use serde_json::json;

use crate::world::OlmWorld;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Creates namespaces within moments, `NAME-0` and so on.
#[when(regex = r#"^(\d+) namespaces "([^"]+)" are created with label "([^"]+)" as "([^"]+)"$"#)]
async fn burst(
    world: &mut OlmWorld,
    count: usize,
    name: String,
    key: String,
    value: String,
) -> anyhow::Result<()> {
    let (name, value) = (world.expand(&name), world.expand(&value));
    for number in 0..count {
        let metadata = json!({"name": format!("{name}-{number}"), "labels": {&key: value}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        world.cluster().apply(&namespace).await?;
    }
    Ok(())
}

/// Checks the namespaces of the roles and of their bindings.
#[then(regex = r#"^the roles of ClusterExtension are in namespaces "([^"]+)"$"#)]
async fn roles(world: &mut OlmWorld, namespaces: String) {
    let namespaces = world.expand(&namespaces);
    let wanted: BTreeSet<String> = namespaces.split(',').map(ToOwned::to_owned).collect();
    let params = ListParams::default().labels(&format!("{OWNER_NAME_LABEL}={}", world.name()));
    world
        .eventually(&format!("roles in {namespaces}"), async || {
            for kind in ["role", "rolebinding"] {
                let (api, _) = world.cluster().lookup(&format!("{kind}/x"), "").await?;
                let found = api.list_metadata(&params).await?.items;
                let found: BTreeSet<String> = found.iter().filter_map(ResourceExt::namespace).collect();
                anyhow::ensure!(found == wanted, "the {kind}s are in {found:?}");
            }
            Ok(())
        })
        .await;
}

/// Grants all rights inside of namespaces to the service accounts of the scenario's namespace, and the right on the revision that every
/// installation needs.
#[given(regex = r#"^the service accounts of the namespace may install everything in namespaces "([^"]+)"$"#)]
#[when(regex = r#"^the service accounts of the namespace may install everything in namespaces "([^"]+)"$"#)]
async fn grant(world: &mut OlmWorld, namespaces: String) -> anyhow::Result<()> {
    let (cluster, name) = (world.cluster(), format!("everything-{}", world.id));
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let revision = json!({"apiGroups": ["olm.operatorframework.io"], "resources": ["clusterobjectsets/finalizers"], "verbs": ["update"]});
    for (name, rule) in [(&name, all), (&format!("{name}-revision"), revision)] {
        let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]});
        cluster.apply(&role).await?;
    }
    let binding = |kind: &str, name: &str, namespace: Option<&str>| {
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": format!("system:serviceaccounts:{}", world.namespace())}],
        })
    };
    cluster
        .apply(&binding("ClusterRoleBinding", &format!("{name}-revision"), None))
        .await?;
    for namespace in world.expand(&namespaces).split(',') {
        cluster
            .apply(&binding("RoleBinding", &name, Some(namespace)))
            .await?;
    }
    Ok(())
}
