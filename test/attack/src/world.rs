//! Environment of the attacks: a control plane, a registry for valid images, a hostile registry, and both controllers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use olm_api::{ClusterCatalog, ClusterExtension};
use olm_harness::controllers::{Controller, SYSTEM_NAMESPACE};
use olm_harness::stub::{Host, not_found};
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, OperatorController, ProcessStats, Registry, eventually,
    install_crds,
};
use serde_json::{Value, json};

use crate::{Expect, Handler, Peaks};

/// Install namespace of bundles.
pub const NAMESPACE: &str = "attacked";
/// Timeout for the outcome of an attack, which may need several retries.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Handlers of the hostile registry, by repository.
type Handlers = Arc<Mutex<BTreeMap<String, Handler>>>;

/// A control plane, a well-behaved registry, a hostile one, and both controllers.
///
/// The controllers are those of the build, or of the directory `OLM_BIN_DIR`.
#[derive(Debug)]
pub struct World {
    /// The control plane.
    pub plane: ControlPlane,
    /// The well-behaved registry.
    pub registry: Registry,
    /// catalogd.
    pub catalogd: Catalogd,
    /// operator-controller.
    pub operator_controller: OperatorController,
    /// The hostile registry.
    host: Host,
    handlers: HandlerMap,
}

/// [`Handlers`] with an implementation of `Debug`.
#[derive(Default)]
struct HandlerMap(Handlers);

impl std::fmt::Debug for HandlerMap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Handlers")
    }
}

/// Additional arguments of the controllers.
#[derive(Clone, Debug, Default)]
pub struct ExtraArgs {
    /// Arguments of catalogd.
    pub catalogd: Vec<String>,
    /// Arguments of operator-controller.
    pub operator_controller: Vec<String>,
}

impl World {
    /// Starts all components.
    ///
    /// # Errors
    /// A component does not start; the message has the tail of its log.
    pub async fn start(extra: ExtraArgs) -> Result<Self> {
        let handlers = HandlerMap::default();
        let routes = handlers.0.clone();
        let host = Host::start(None, move |request| {
            let routes = routes.lock().unwrap_or_else(PoisonError::into_inner);
            let found = repository(&request.path).and_then(|name| routes.get(name).cloned());
            drop(routes);
            found.map_or_else(not_found, |answer| answer(request))
        })?;
        let plane = ControlPlane::start().await?;
        install_crds(&plane.client()).await?;
        let namespaces: Api<Namespace> = Api::all(plane.client());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        namespaces
            .patch(NAMESPACE, &PatchParams::apply("attack"), &Patch::Apply(namespace))
            .await?;
        let registry = Registry::start().await?;
        let options = |more: Vec<String>| ControllerOptions {
            args: std::iter::once(format!("--plain-http-registry={}", host.address()))
                .chain(more)
                .collect(),
            ..ControllerOptions::default()
        };
        let catalogd = Catalogd::start_with(&plane, &registry, options(extra.catalogd)).await?;
        let operator_controller =
            OperatorController::start_with(&plane, &registry, options(extra.operator_controller)).await?;
        Ok(Self {
            plane,
            registry,
            catalogd,
            operator_controller,
            host,
            handlers,
        })
    }

    /// Returns the hostile registry, to inspect its requests.
    pub fn hostile(&self) -> &Host {
        &self.host
    }

    /// Serves a repository at the hostile registry. Returns the reference of its tag `v1`.
    pub fn serve(&self, repository: &str, handler: Handler) -> String {
        let mut handlers = self.handlers.0.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.insert(repository.to_owned(), handler);
        format!("{}/{repository}:v1", self.host.address())
    }

    /// Creates a ClusterCatalog.
    ///
    /// # Errors
    /// The API server refuses the object.
    pub async fn apply_catalog(&self, name: &str, reference: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        });
        apply(&self.catalogs(), name, object).await
    }

    /// Creates a ClusterExtension that installs `package` from the catalog `catalog` only.
    ///
    /// # Errors
    /// The API server refuses the object.
    pub async fn apply_extension(&self, name: &str, catalog: &str, package: &str) -> Result<()> {
        let selector = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": catalog}});
        let object = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": name},
            "spec": {
                "namespace": NAMESPACE,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": package, "selector": selector}},
            },
        });
        apply(&self.extensions(), name, object).await
    }

    /// Waits until a ClusterCatalog has the outcome. Returns the message of its condition.
    ///
    /// # Errors
    /// The outcome does not appear in time.
    pub async fn wait_for_catalog(&self, name: &str, expect: &Expect) -> Result<String> {
        let what = format!("ClusterCatalog {name} ends as {expect:?}");
        eventually(TIMEOUT, &what, async || {
            let status = self.catalogs().get(name).await?.status;
            let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
            check_outcome(&conditions, expect, "Serving")
        })
        .await
    }

    /// Waits until a ClusterExtension has the outcome. Returns the message of its condition.
    ///
    /// # Errors
    /// The outcome does not appear in time.
    pub async fn wait_for_extension(&self, name: &str, expect: &Expect) -> Result<String> {
        let what = format!("ClusterExtension {name} ends as {expect:?}");
        eventually(TIMEOUT, &what, async || {
            let status = self.extensions().get(name).await?.status;
            let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
            check_outcome(&conditions, expect, "Installed")
        })
        .await
    }

    /// Deletes a ClusterCatalog and waits for its removal.
    ///
    /// # Errors
    /// The catalog is not removed in time.
    pub async fn remove_catalog(&self, name: &str) -> Result<()> {
        remove(&self.catalogs(), name).await
    }

    /// Deletes a ClusterExtension and waits for its removal.
    ///
    /// # Errors
    /// The extension is not removed in time.
    pub async fn remove_extension(&self, name: &str) -> Result<()> {
        remove(&self.extensions(), name).await
    }

    /// Returns statistics of catalogd's process.
    ///
    /// # Errors
    /// The process has exited.
    pub fn catalogd_stats(&mut self) -> Result<ProcessStats> {
        stats(self.catalogd.controller())
    }

    /// Returns statistics of operator-controller's process.
    ///
    /// # Errors
    /// The process has exited.
    pub fn operator_controller_stats(&mut self) -> Result<ProcessStats> {
        stats(self.operator_controller.controller())
    }

    /// Returns a memory value of both processes, such as `VmHWM`, in KiB.
    ///
    /// # Errors
    /// One of them has exited.
    pub fn memory(&mut self, key: &str) -> Result<Peaks> {
        Ok(Peaks {
            catalogd: self.catalogd_stats()?.kib(key)?,
            operator_controller: self.operator_controller_stats()?.kib(key)?,
        })
    }

    /// Resets the peak memory of both processes.
    ///
    /// # Errors
    /// One of them has exited.
    pub fn reset_peaks(&mut self) -> Result<()> {
        self.catalogd_stats()?.reset_peak()?;
        self.operator_controller_stats()?.reset_peak()
    }

    /// Returns the API of ClusterCatalogs.
    pub fn catalogs(&self) -> Api<ClusterCatalog> {
        Api::all(self.plane.client())
    }

    /// Returns the API of ClusterExtensions.
    pub fn extensions(&self) -> Api<ClusterExtension> {
        Api::all(self.plane.client())
    }

    /// Returns the namespace of the controllers.
    pub fn system_namespace(&self) -> &'static str {
        SYSTEM_NAMESPACE
    }
}

/// Returns the repository in a path of the OCI distribution API.
fn repository(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/v2/")?;
    ["/manifests/", "/blobs/", "/referrers/"]
        .iter()
        .find_map(|part| rest.split_once(part))
        .map(|(name, _)| name)
}

fn stats(controller: &mut Controller) -> Result<ProcessStats> {
    controller.check()?;
    let process = controller.process().context("a controller is stopped")?;
    let pid = process.pid().context("a controller has no process")?;
    Ok(ProcessStats { pid })
}

/// Compares conditions with an expected outcome. The condition type `accepted` is True for accepted content. An error shows the
/// actual conditions.
fn check_outcome(conditions: &[Condition], expect: &Expect, accepted: &str) -> Result<String> {
    let condition = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    match expect {
        Expect::Refused(text) => {
            let progressing = condition("Progressing").context("no condition Progressing")?;
            ensure!(progressing.message.contains(text), "{}", progressing.message);
            Ok(progressing.message.clone())
        }
        Expect::Any => check_outcome(conditions, &Expect::Accepted, accepted)
            .or_else(|_| check_outcome(conditions, &Expect::Refused("error"), accepted)),
        Expect::Accepted => {
            let accepted = condition(accepted).with_context(|| format!("no condition {accepted}"))?;
            if accepted.status != "True" {
                let message = condition("Progressing").map(|condition| condition.message.as_str());
                bail!("{}: {}", accepted.message, message.unwrap_or_default());
            }
            Ok("taken, within the limits".to_owned())
        }
    }
}

async fn apply<K>(api: &Api<K>, name: &str, object: Value) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + for<'de> serde::Deserialize<'de>,
{
    api.patch(name, &PatchParams::apply("attack").force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot apply {name}"))?;
    Ok(())
}

async fn remove<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + for<'de> serde::Deserialize<'de>,
{
    api.delete(name, &DeleteParams::default())
        .await
        .with_context(|| format!("cannot delete {name}"))?;
    eventually(TIMEOUT, &format!("{name} is gone"), async || {
        ensure!(api.get_opt(name).await?.is_none(), "{name} is there");
        Ok(())
    })
    .await
}
