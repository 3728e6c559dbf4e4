//! Access to the objects of a cluster by short references, such as `deployment/web` and `configmap/settings`.

use anyhow::{Context as _, bail};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{ApiResource, Discovery, Scope, pinned_kind, verbs};
use olm_harness::workspace;
use serde_json::Value;

/// Untyped access to a cluster's objects.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
}

impl Cluster {
    /// Returns access with the rights of `client`.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Returns the underlying client.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Returns the API of the kind in `kind/name`, in `namespace` for namespaced kinds, and the name. The kind may
    /// have its group: `Kind.example.com/name`.
    pub async fn lookup(
        &self,
        reference: &str,
        namespace: &str,
    ) -> anyhow::Result<(Api<DynamicObject>, String)> {
        let (kind, name) = reference
            .split_once('/')
            .context("an object is named `kind/name`")?;
        let discovery = Discovery::new(self.client()).run_aggregated().await?;
        for group in discovery.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                let of_group = |word: &str| kind.strip_prefix(word) == Some(&format!(".{}", resource.group));
                if resource.kind.eq_ignore_ascii_case(kind)
                    || resource.plural == kind
                    || of_group(&resource.kind)
                    || of_group(&resource.plural)
                {
                    let api = self.api(&resource, &capabilities.scope, namespace);
                    return Ok((api, name.to_owned()));
                }
            }
        }
        bail!("the API server knows no kind `{kind}`")
    }

    fn api(&self, resource: &ApiResource, scope: &Scope, namespace: &str) -> Api<DynamicObject> {
        match scope {
            Scope::Namespaced => Api::namespaced_with(self.client(), namespace, resource),
            Scope::Cluster => Api::all_with(self.client(), resource),
        }
    }

    /// Returns `kind/name`, or `None` if it does not exist.
    pub async fn get(&self, reference: &str, namespace: &str) -> anyhow::Result<Option<DynamicObject>> {
        let (api, name) = self.lookup(reference, namespace).await?;
        Ok(api.get_opt(&name).await?)
    }

    /// Applies an object as `kubectl apply --server-side` does, with force.
    pub async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        self.apply_as("e2e", object).await
    }

    /// Variant of [`Cluster::apply`] with another field manager.
    pub async fn apply_as(&self, manager: &str, object: &Value) -> anyhow::Result<()> {
        let types: TypeMeta = serde_json::from_value(object.clone()).context("the object has no kind")?;
        let name = object["metadata"]["name"]
            .as_str()
            .context("the object has no name")?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let kind = GroupVersionKind::try_from(types)?;
        let (resource, capabilities) = pinned_kind(&self.client, &kind).await?;
        let api = self.api(&resource, &capabilities.scope, namespace);
        api.patch(name, &PatchParams::apply(manager).force(), &Patch::Apply(object))
            .await?;
        Ok(())
    }

    /// Applies the objects of a YAML file in the workspace, except those whose names are in `left_out`. Returns the applied
    /// objects.
    pub async fn apply_file(&self, path: &str, left_out: &[&str]) -> anyhow::Result<Vec<Value>> {
        let text = std::fs::read_to_string(workspace::root().join(path)).with_context(|| path.to_owned())?;
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).with_context(|| path.to_owned())?;
        objects.retain(|object| !left_out.iter().any(|name| object["metadata"]["name"] == *name));
        for object in &objects {
            let describe = || format!("{path}: {} {}", object["kind"], object["metadata"]["name"]);
            self.apply(object).await.with_context(describe)?;
        }
        Ok(objects)
    }

    /// Changes `kind/name` by a merge patch, as `kubectl edit` does.
    pub async fn merge(&self, reference: &str, namespace: &str, change: &Value) -> anyhow::Result<()> {
        let (api, name) = self.lookup(reference, namespace).await?;
        api.patch(&name, &PatchParams::default(), &Patch::Merge(change))
            .await?;
        Ok(())
    }

    /// Returns every listable kind once, in its recommended version.
    pub async fn listable(&self) -> anyhow::Result<Vec<ApiResource>> {
        let discovery = Discovery::new(self.client()).run_aggregated().await?;
        let kinds = discovery
            .groups()
            .flat_map(kube::discovery::ApiGroup::recommended_resources);
        Ok(kinds
            .filter(|(_, capabilities)| capabilities.supports_operation(verbs::LIST))
            .map(|(kind, _)| kind)
            .collect())
    }

    /// Returns all objects that the label selector selects, of every listable kind, as `Kind namespace/name`.
    pub async fn labeled(&self, selector: &str) -> anyhow::Result<Vec<String>> {
        let params = ListParams::default().labels(selector);
        let mut found = Vec::new();
        for kind in self.listable().await? {
            let api: Api<DynamicObject> = Api::all_with(self.client(), &kind);
            let list = match api.list_metadata(&params).await {
                Ok(list) => list,
                // The kind may vanish meanwhile, because its CRD is removed.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => continue,
                Err(error) => return Err(error).context(format!("cannot list {}", kind.plural)),
            };
            found.extend(list.items.into_iter().map(|item| {
                let metadata = item.metadata;
                format!(
                    "{} {}/{}",
                    kind.kind,
                    metadata.namespace.unwrap_or_default(),
                    metadata.name.unwrap_or_default()
                )
            }));
        }
        found.sort();
        Ok(found)
    }
}

/// Returns true if `actual` contains `wanted`. Objects may have more fields than wanted; other values must be equal.
pub fn contains(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| actual.get(key).is_some_and(|actual| contains(actual, wanted))),
        _ => actual == wanted,
    }
}
