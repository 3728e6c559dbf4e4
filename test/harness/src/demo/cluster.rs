//! Actions of the demo on the cluster, with their waits.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use olm_api::{ClusterCatalog, ClusterExtension};
use serde_json::{Value, json};

use super::console::Console;
use super::content::{Content, Target};
use crate::wait::eventually;

const FIELD_MANAGER: &str = "olm-demo";

/// The cluster, with the user's rights.
pub(super) struct Cluster<'a> {
    client: Client,
    console: &'a Console,
    timeout: Duration,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(client: Client, console: &'a Console, timeout: Duration) -> Self {
        Self {
            client,
            console,
            timeout,
        }
    }

    pub(super) async fn namespace(&self, name: &str) -> Result<()> {
        self.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await
    }

    pub(super) async fn catalog(&self, name: &str, image: &str) -> Result<()> {
        self.console
            .line(&format!("applying ClusterCatalog {name} of {image}"));
        self.apply(json!({
            "apiVersion": "olm.operatorframework.io/v1",
            "kind": "ClusterCatalog",
            "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": {"ref": image}}},
        }))
        .await
    }

    pub(super) async fn extension(
        &self,
        name: &str,
        namespace: &str,
        content: &Content,
        target: &Target,
    ) -> Result<()> {
        let mut filter = json!({"packageName": content.package});
        if let Value::Object(filter) = &mut filter {
            if !content.channels.is_empty() {
                filter.insert("channels".to_owned(), json!(content.channels));
            }
            if let Some(version) = &target.pin {
                filter.insert("version".to_owned(), json!(version));
            }
        }
        let mut spec =
            json!({"namespace": namespace, "source": {"sourceType": "Catalog", "catalog": filter}});
        if let (Value::Object(spec), Some(watched)) = (&mut spec, &content.watch_namespace) {
            let inline = json!({"watchNamespace": watched});
            spec.insert(
                "config".to_owned(),
                json!({"configType": "Inline", "inline": inline}),
            );
        }
        self.console.line(&format!(
            "applying ClusterExtension {name}: {}",
            spec["source"]["catalog"]
        ));
        self.apply(json!({
            "apiVersion": "olm.operatorframework.io/v1",
            "kind": "ClusterExtension",
            "metadata": {"name": name},
            "spec": spec,
        }))
        .await
    }

    /// Waits until the catalog's image is served.
    pub(super) async fn served(&self, name: &str, image: &str) -> Result<()> {
        let catalogs: Api<ClusterCatalog> = Api::all(self.client.clone());
        eventually(
            self.timeout,
            &format!("ClusterCatalog {name} serves {image}"),
            async || {
                let catalog = catalogs.get(name).await?;
                let status = catalog.status.unwrap_or_default();
                let conditions = status.conditions.unwrap_or_default();
                self.console
                    .conditions(&format!("clustercatalog/{name}"), &conditions);
                expect_condition(&conditions, "Serving", "True", None)
            },
        )
        .await
    }

    /// Waits until the version is installed and the rollout is complete.
    pub(super) async fn installed(&self, name: &str, version: &str) -> Result<()> {
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        eventually(
            self.timeout,
            &format!("ClusterExtension {name} has {version} installed"),
            async || {
                let extension = extensions.get(name).await?;
                let status = extension.status.unwrap_or_default();
                let conditions = status.conditions.unwrap_or_default();
                self.console
                    .conditions(&format!("clusterextension/{name}"), &conditions);
                expect_condition(&conditions, "Installed", "True", None)?;
                let installed = status
                    .install
                    .map(|install| install.bundle.version)
                    .unwrap_or_default();
                if installed != version {
                    bail!("installed is {installed}; {conditions:?}");
                }
                expect_condition(&conditions, "Progressing", "True", Some("Succeeded"))
            },
        )
        .await
    }

    async fn apply(&self, object: Value) -> Result<()> {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .with_context(|| format!("cannot apply {kind} {name}"))?;
        Ok(())
    }
}

fn expect_condition(conditions: &[Condition], type_: &str, status: &str, reason: Option<&str>) -> Result<()> {
    match conditions.iter().find(|condition| condition.type_ == type_) {
        Some(found) if found.status == status && reason.is_none_or(|reason| found.reason == reason) => Ok(()),
        Some(found) => bail!(
            "{type_} is {} ({}): {}",
            found.status,
            found.reason,
            found.message
        ),
        None => bail!("there is no condition {type_} yet"),
    }
}
