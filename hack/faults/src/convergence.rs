//! Convergence: the cluster meets the expectation that follows from the spec, and then no controller writes any more.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use olm_e2e::cluster::contains;
use serde_json::Value;
use tokio::time::Instant;

use crate::kinds::{self, Kind};
use crate::proxy::Ledger;

/// Pause between two checks of the cluster.
const PAUSE: Duration = Duration::from_millis(200);
/// Label with the name of the extension to which an object belongs.
const OWNER: &str = "olm.operatorframework.io/owner-name";
/// Kinds in the scenario's bundles of which an extension must have exactly the expected objects. Roles are checked separately.
const CONTENT: [Kind; 4] = [
    kinds::SERVICE_ACCOUNT,
    kinds::CRD,
    kinds::CONFIG_MAP,
    kinds::DEPLOYMENT,
];

/// State that the cluster must reach.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Name of the ClusterExtension.
    pub extension: String,
    /// Status of the extension; `None` if the extension must be gone.
    pub installation: Option<Installation>,
    /// Objects of the installed version, which must exist.
    pub objects: Vec<Expected>,
    /// Objects of other versions, which must not exist. Their content does not matter.
    pub absent: Vec<Expected>,
    /// Installed version, which the rule of the bundle's only `ClusterRole` names as resource name; `None` if no such role may
    /// exist.
    pub role_of: Option<String>,
    /// Name of a CRD whose schema must have the field that the last version adds; `None` for other versions.
    pub wide_crd: Option<String>,
    /// Objects of others as the API server created them. They must not change.
    pub foreign: Vec<Value>,
}

/// Status of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Installed version.
    pub version: String,
    /// True if `Progressing` must be `True` with reason `Succeeded` for the current generation.
    pub settled: bool,
    /// True if exactly one revision must be active and, with `settled`, `Ready` must be `True`. Only this project promises so.
    pub strict: bool,
}

/// An object and the content that it must have.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Kind.
    pub kind: Kind,
    /// Namespace; ignored for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Fields that the object must have; it may have others.
    pub content: Value,
}

/// Times of a convergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Time until the cluster met the expectation.
    pub after: Duration,
    /// Time until the last write, without the interval of quiet that follows.
    pub quiet_after: Duration,
}

/// Waits until the cluster meets the expectation and no controller behind a proxy writes for `quiet`.
///
/// # Errors
/// The cluster does not converge within `limit`. The message says what is missing.
pub async fn reach(
    client: &Client,
    ledger: &Ledger,
    expectation: &Expectation,
    limit: Duration,
    quiet: Duration,
) -> Result<Reached> {
    let started = Instant::now();
    let mut after = None;
    loop {
        let changes = ledger.changes();
        let missing = match tokio::time::timeout(Duration::from_secs(10), expectation.check(client)).await {
            Ok(Ok(())) => {
                let reached = *after.get_or_insert_with(|| started.elapsed());
                let quiet_after = started.elapsed();
                tokio::time::sleep(quiet).await;
                if ledger.changes() == changes {
                    match expectation.check(client).await {
                        Ok(()) => {
                            return Ok(Reached {
                                after: reached,
                                quiet_after,
                            });
                        }
                        // Others may have changed objects, for example the controller of Deployments, and the controllers will
                        // follow.
                        Err(left) => format!("it is reached and left again: {left:#}"),
                    }
                } else {
                    "it is reached, but the controllers go on writing".to_owned()
                }
            }
            Ok(Err(missing)) => {
                after = None;
                format!("{missing:#}")
            }
            Err(_) => "the API server does not answer".to_owned(),
        };
        if started.elapsed() > limit {
            bail!("the expected state is not reached and kept within {limit:?}: {missing}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Expectation {
    /// Compares the cluster with the expectation.
    ///
    /// # Errors
    /// The cluster differs. The message names the first difference.
    pub async fn check(&self, client: &Client) -> Result<()> {
        if let Some(installation) = &self.installation {
            self.check_status(client, installation).await?;
        } else {
            let extension = kinds::EXTENSION.all(client).get_opt(&self.extension).await?;
            ensure!(extension.is_none(), "the extension exists");
            let revisions = owned(client, kinds::REVISION, &self.extension).await?;
            ensure!(revisions.is_empty(), "{} revisions exist", revisions.len());
        }
        for expected in &self.objects {
            expected.check(client).await?;
        }
        for expected in &self.absent {
            let found = expected.get(client).await?;
            ensure!(
                found.is_none(),
                "{} {} exists",
                expected.kind.name(),
                expected.name
            );
        }
        self.check_owned(client).await?;
        self.check_foreign(client).await
    }

    /// Checks the status of the extension and the number of its active revisions.
    async fn check_status(&self, client: &Client, wanted: &Installation) -> Result<()> {
        let extension = kinds::EXTENSION.all(client).get_opt(&self.extension).await?;
        let extension = serde_json::to_value(extension.context("the extension is gone")?)?;
        let status = &extension["status"];
        let version = &status["install"]["bundle"]["version"];
        ensure!(
            *version == wanted.version,
            "version {version} is installed, not {}",
            wanted.version
        );
        condition(&extension, "Installed", "Succeeded", false)?;
        if wanted.settled {
            condition(&extension, "Progressing", "Succeeded", true)?;
        }
        if wanted.strict {
            if wanted.settled {
                condition(&extension, "Ready", "", true)?;
            }
            let revisions = owned(client, kinds::REVISION, &self.extension).await?;
            let active = |revision: &&DynamicObject| revision.data["spec"]["lifecycleState"] == "Active";
            let active = revisions.iter().filter(active).count();
            ensure!(active == 1, "{active} revisions are active");
        }
        Ok(())
    }

    /// Checks that the extension has no other objects than the expected ones, such as objects of former versions.
    async fn check_owned(&self, client: &Client) -> Result<()> {
        for kind in CONTENT {
            let found = owned(client, kind, &self.extension).await?;
            let wanted = self.objects.iter().filter(|object| object.kind == kind).count();
            let names: Vec<_> = found
                .iter()
                .filter_map(|object| object.metadata.name.as_deref())
                .collect();
            ensure!(
                names.len() == wanted,
                "{} {} exist, not {wanted}: {names:?}",
                names.len(),
                kind.name()
            );
        }
        self.check_roles(client).await?;
        if let Some(name) = &self.wide_crd {
            let crd = kinds::CRD.all(client).get(name).await?;
            let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color";
            ensure!(
                crd.data.pointer(field).is_some(),
                "the CRD lacks the field of the last version"
            );
        }
        Ok(())
    }

    /// Checks the `ClusterRoles` whose rules name the version of the bundle. An implementation may add other roles, for users of
    /// the CRD.
    async fn check_roles(&self, client: &Client) -> Result<()> {
        let roles = owned(client, kinds::CLUSTER_ROLE, &self.extension).await?;
        let bindings = owned(client, kinds::CLUSTER_ROLE_BINDING, &self.extension).await?;
        let marks = roles
            .iter()
            .map(|role| &role.data["rules"][0]["resourceNames"][0]);
        let versions: Vec<&str> = marks.filter_map(Value::as_str).collect();
        let wanted: Vec<&str> = self.role_of.as_deref().into_iter().collect();
        ensure!(
            versions == wanted,
            "the ClusterRoles are of versions {versions:?}, not {wanted:?}"
        );
        ensure!(
            bindings.len() == wanted.len(),
            "{} ClusterRoleBindings exist",
            bindings.len()
        );
        ensure!(
            self.installation.is_some() || roles.is_empty(),
            "{} ClusterRoles exist",
            roles.len()
        );
        Ok(())
    }

    /// Checks that objects of others exist and are unchanged, apart from `managedFields`.
    async fn check_foreign(&self, client: &Client) -> Result<()> {
        for before in &self.foreign {
            let text = |pointer: &str| {
                before
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            let kind = kinds::ALL
                .into_iter()
                .find(|known| known.name() == kind)
                .context("an unknown kind")?;
            let now = kind
                .api(client, text("/metadata/namespace"))
                .get_opt(name)
                .await?;
            let now = now.with_context(|| format!("foreign {} {name} is gone", kind.name()))?;
            let now = without_managed_fields(serde_json::to_value(now)?);
            let before = without_managed_fields(before.clone());
            ensure!(
                now == before,
                "foreign {} {name} changed from {before} to {now}",
                kind.name()
            );
        }
        Ok(())
    }
}

impl Expected {
    async fn get(&self, client: &Client) -> Result<Option<DynamicObject>> {
        Ok(self.kind.api(client, &self.namespace).get_opt(&self.name).await?)
    }

    /// Checks that the object exists, is not being deleted, and has the content.
    async fn check(&self, client: &Client) -> Result<()> {
        let (kind, name) = (self.kind.name(), &self.name);
        let found = self
            .get(client)
            .await?
            .with_context(|| format!("{kind} {name} is missing"))?;
        ensure!(
            found.metadata.deletion_timestamp.is_none(),
            "{kind} {name} is being deleted"
        );
        let found = serde_json::to_value(found)?;
        ensure!(
            contains(&found, &self.content),
            "{kind} {name} lacks {}: {found}",
            self.content
        );
        Ok(())
    }
}

/// Returns the objects of a kind with the label of the extension.
async fn owned(client: &Client, kind: Kind, extension: &str) -> Result<Vec<DynamicObject>> {
    let params = ListParams::default().labels(&format!("{OWNER}={extension}"));
    match kind.all(client).list(&params).await {
        Ok(list) => Ok(list.items),
        // An implementation without revisions has no CRD for them.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Checks that the condition is `True`. It must have `reason` unless `reason` is empty, and the current generation if `current`
/// is true.
fn condition(object: &Value, type_: &str, reason: &str, current: bool) -> Result<()> {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions
        .into_iter()
        .flatten()
        .filter(|condition| condition["type"] == type_);
    let found = found.next().with_context(|| format!("{type_} is not reported"))?;
    let told = format!(
        "{type_} is {}, {}: {}",
        found["status"], found["reason"], found["message"]
    );
    ensure!(
        found["status"] == "True" && (reason.is_empty() || found["reason"] == reason),
        "{told}"
    );
    let generation = &object["metadata"]["generation"];
    let observed = &found["observedGeneration"];
    ensure!(
        !current || observed == generation,
        "{told}, for generation {observed}, not {generation}"
    );
    Ok(())
}

fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}
