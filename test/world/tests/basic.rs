//! The world by itself: what a client of kube sees.

use std::sync::Arc;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use olm_proof::Actor;
use olm_world::{World, service};
use parking_lot::Mutex;
use serde_json::json;

fn world() -> (Arc<Mutex<World>>, Client) {
    let world = Arc::new(Mutex::new(World::with_olm_crds()));
    let clock = service::stopped_clock(Timestamp::UNIX_EPOCH);
    let client = service::client(Arc::clone(&world), Actor::Controller(0), clock);
    (world, client)
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::core::ObjectMeta {
            name: Some(name.to_owned()),
            ..Default::default()
        },
        data: Some([("a".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn a_client_writes_reads_and_watches() {
    let (_, client) = world();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let created = maps
        .create(&PostParams::default(), &config_map("x", "1"))
        .await
        .unwrap();
    let mut events = maps
        .watch(&WatchParams::default(), &created.resource_version().unwrap())
        .await
        .unwrap()
        .boxed();
    let params = PatchParams::apply("second").force();
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "2", "b": "3"}});
    let changed = maps.patch("x", &params, &Patch::Apply(applied)).await.unwrap();
    assert_eq!(changed.data.as_ref().unwrap()["a"], "2");
    maps.delete("x", &DeleteParams::default()).await.unwrap();
    assert!(matches!(events.next().await.unwrap().unwrap(), WatchEvent::Modified(map) if map == changed));
    assert!(matches!(
        events.next().await.unwrap().unwrap(),
        WatchEvent::Deleted(_)
    ));
    assert!(maps.get_opt("x").await.unwrap().is_none());
}

#[tokio::test]
async fn lists_have_pages() {
    let (_, client) = world();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name, "1"))
            .await
            .unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(
        (page.items.len(), page.metadata.remaining_item_count),
        (2, Some(1))
    );
    let token = page.metadata.continue_.unwrap();
    let rest = maps
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    assert_eq!(rest.items[0].name_any(), "c");
}

#[tokio::test]
async fn a_namespace_terminates_with_its_content() {
    let (world, client) = world();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "gone"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "gone");
    maps.create(&PostParams::default(), &config_map("x", "1"))
        .await
        .unwrap();
    namespaces.delete("gone", &DeleteParams::default()).await.unwrap();
    let refused = maps
        .create(&PostParams::default(), &config_map("y", "1"))
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    world.lock().settle(Timestamp::UNIX_EPOCH, 10);
    assert!(namespaces.get_opt("gone").await.unwrap().is_none());
    assert!(maps.get_opt("x").await.unwrap().is_none());
}

#[tokio::test]
async fn the_projects_kinds_are_served_and_validated() {
    let (_, client) = world();
    let groups = client.list_api_groups().await.unwrap();
    assert!(
        groups
            .groups
            .iter()
            .any(|group| group.name == "olm.operatorframework.io")
    );
    let kind = kube::core::GroupVersionKind::gvk("olm.operatorframework.io", "v1", "ClusterCatalog");
    let (resource, _) = kube::discovery::pinned_kind(&client, &kind).await.unwrap();
    let catalogs: Api<kube::api::DynamicObject> = Api::all_with(client, &resource);
    let object = |reference: &str| {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "x"},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        }))
        .unwrap()
    };
    let refused = catalogs
        .create(&PostParams::default(), &object("x y"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, kube::Error::Api(status) if status.code == 422),
        "invalid reference"
    );
    let created = catalogs
        .create(&PostParams::default(), &object("example.com/a/b:1"))
        .await
        .unwrap();
    assert_eq!(created.data["spec"]["availabilityMode"], "Available");
}

/// To take owners away is a change of owners, which needs the right to delete the object.
#[tokio::test]
async fn owners_are_taken_away_only_by_who_may_delete() {
    let (_, client) = world();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut owned = config_map("x", "1");
    owned.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "y".to_owned(),
        uid: "u".to_owned(),
        ..OwnerReference::default()
    }]);
    maps.create(&PostParams::default(), &owned).await.unwrap();
    let roles: Api<Role> = Api::default_namespaced(client.clone());
    let mut verbs = vec!["update"];
    let grant = async |verbs: &[&str]| {
        let granted = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": granted});
        let params = PatchParams::apply("test");
        roles.patch("editor", &params, &Patch::Apply(role)).await.unwrap();
    };
    grant(&verbs).await;
    let bindings: Api<RoleBinding> = Api::default_namespaced(client.clone());
    let binding = json!({"metadata": {"name": "editor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "editor"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let without_owners = async || {
        let body = serde_json::to_vec(&config_map("x", "2")).unwrap();
        let request = http::Request::put("/api/v1/namespaces/default/configmaps/x")
            .header("impersonate-user", "ann")
            .body(body)
            .unwrap();
        client.request::<ConfigMap>(request).await
    };
    let refused = without_owners().await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403 && status.message.contains("ownerRef")),
        "{refused}"
    );
    verbs.push("delete");
    grant(&verbs).await;
    let changed = without_owners().await.unwrap();
    assert_eq!(changed.metadata.owner_references, None);
}
