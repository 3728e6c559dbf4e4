//! Reads the facts of the diagnosis. A read that fails becomes a finding; the others go on.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use olm_api::{API_VERSION, keys};
use olm_applier::workload::Workload;
use olm_manifests::{Component, NAMESPACE, render};
use olm_runtime::tls::{CATALOGD_OWN_CERT, OPERATOR_CONTROLLER_OWN_CERT};
use olm_text::object::{ObjectId, metadata_name};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::installation::args;
use super::webhooks::concerns;
use super::{Catalog, Certificate, Facts, Installation, Lease, Pair, Unread, Webhook};
use crate::controllers::remove::LEASES;
use crate::controllers::title;
use crate::finding::{Finding, Severity};
use crate::source::{Cluster, SourceError};

/// Reads everything that the checks need.
///
/// # Errors
/// The API server does not answer.
pub(crate) async fn read(cluster: &Cluster) -> Result<Facts, SourceError> {
    let (version, _) = cluster.versions().await?;
    let mut reader = Reader {
        cluster,
        unchecked: Vec::new(),
    };
    let server_time = cluster.server_time().await;
    let (local_time, measured) = (Timestamp::now(), Instant::now());
    let server_time = reader.attempt("the API server's clock", server_time).flatten();
    let clock = Clock {
        start: server_time.unwrap_or(local_time),
        measured,
    };
    let (installation, objects) = reader.objects().await;
    let pods = reader.list("v1", "Pod", Some(NAMESPACE)).await;
    let names: BTreeSet<&str> = pods
        .iter()
        .filter_map(|pod| pod["spec"]["nodeName"].as_str())
        .collect();
    let nodes = if names.is_empty() {
        Vec::new()
    } else {
        reader.list("v1", "Node", None).await
    };
    let is_ours = |node: &&Value| {
        node["metadata"]["name"]
            .as_str()
            .is_some_and(|name| names.contains(name))
    };
    let nodes: Vec<Value> = nodes.iter().filter(is_ours).cloned().collect();
    let summaries = reader.summaries(&nodes).await;
    Ok(Facts {
        version,
        server_time,
        local_time,
        certificates: reader.certificates(&objects).await,
        leases: reader.leases(&clock).await,
        catalogs: reader.catalogs().await,
        extensions: reader.list(API_VERSION, "ClusterExtension", None).await,
        webhooks: reader.webhooks().await,
        installation,
        objects,
        nodes,
        pods,
        summaries,
        unchecked: reader.unchecked,
    })
}

/// Time of the API server. The reads take a while, so its first answer is carried on by the clock of this machine.
struct Clock {
    start: Timestamp,
    measured: Instant,
}

impl Clock {
    fn now(&self) -> Timestamp {
        self.start
            .checked_add(self.measured.elapsed())
            .unwrap_or(self.start)
    }
}

struct Reader<'a> {
    cluster: &'a Cluster,
    unchecked: Vec<Finding>,
}

impl Reader<'_> {
    /// Returns the result; notes an error as a check that was not made.
    fn attempt<T>(&mut self, object: &str, result: Result<T, SourceError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let next = "use an account that may read it, such as cluster-admin";
                self.unchecked.push(Finding::new(
                    Severity::Unchecked,
                    object,
                    olm_text::chain(&error),
                    next,
                ));
                None
            }
        }
    }

    async fn list(&mut self, api_version: &str, kind: &str, namespace: Option<&str>) -> Vec<Value> {
        let found = self.cluster.list(api_version, kind, namespace).await;
        let found = self.attempt(kind, found).unwrap_or_default();
        found
            .into_iter()
            .map(|object| value(object, api_version, kind))
            .collect()
    }

    async fn one(&mut self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        let object = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE}});
        let kinds = self.cluster.kinds(std::slice::from_ref(&object)).await;
        let kinds = self.attempt(kind, kinds)?;
        let found = self.cluster.present(&object, &kinds).await;
        let found = self.attempt(&format!("{kind} {name}"), found)??;
        Some(value(found, api_version, kind))
    }

    /// Reads the objects of all overlays, and pairs those of the installed ones with their manifests.
    async fn objects(&mut self) -> (Installation, Vec<Pair>) {
        // The embedded manifests compose; a test renders them.
        let manifests = olm_manifests::all().unwrap_or_default();
        let kinds = self.cluster.kinds(&manifests).await;
        let Some(kinds) = self.attempt("the kinds of the manifests", kinds) else {
            return (Installation::default(), Vec::new());
        };
        let mut found = Vec::new();
        for manifest in manifests {
            let present = self.cluster.present(&manifest, &kinds).await;
            let present = present.map(|object| object.and_then(|object| serde_json::to_value(object).ok()));
            found.push((manifest, present));
        }
        let unread = found.iter().any(|(_, present)| present.is_err());
        let present = found
            .iter()
            .filter_map(|(_, present)| present.as_ref().ok()?.clone());
        let installation = Installation::of(&present.collect::<Vec<_>>(), unread);
        let mut pairs = Vec::new();
        for expected in render(&installation.overlays).unwrap_or_default() {
            let id = ObjectId::of(&expected);
            let Some(at) = found
                .iter()
                .position(|(manifest, _)| ObjectId::of(manifest) == id)
            else {
                continue;
            };
            let (_, present) = found.swap_remove(at);
            let Some(present) = self.attempt(&title(&expected), present) else {
                continue;
            };
            let problem = match present.as_ref().and_then(Workload::of) {
                Some(workload) => self.cluster.diagnosis(&workload).await.clause(),
                None => None,
            };
            pairs.push(Pair {
                expected,
                present,
                problem,
            });
        }
        (installation, pairs)
    }

    /// Reads the certificates that the Deployments mount, and the controllers' own ones where none is mounted.
    async fn certificates(&mut self, objects: &[Pair]) -> Vec<Certificate> {
        let mut names = BTreeSet::new();
        for deployment in objects.iter().filter_map(|pair| pair.present.as_ref()) {
            if deployment["kind"] != "Deployment" {
                continue;
            }
            let is = |component: Component| deployment["metadata"]["name"] == component.deployment();
            let own = if is(Component::Catalogd) {
                CATALOGD_OWN_CERT
            } else if is(Component::OperatorController) {
                OPERATOR_CONTROLLER_OWN_CERT
            } else {
                continue;
            };
            if !args(deployment).any(|arg| arg.starts_with("--tls-cert=")) {
                names.insert((own.to_owned(), true));
            }
            let volumes = deployment
                .pointer("/spec/template/spec/volumes")
                .and_then(Value::as_array);
            let secrets = volumes
                .into_iter()
                .flatten()
                .filter_map(|volume| volume["secret"]["secretName"].as_str());
            names.extend(secrets.map(|name| (name.to_owned(), false)));
        }
        let mut certificates = Vec::new();
        for (secret, own) in names {
            let failed = self.unchecked.len();
            let found = self.one("v1", "Secret", &secret).await;
            if self.unchecked.len() > failed {
                continue;
            }
            certificates.push(Certificate {
                secret,
                own,
                pem: found.map(|found| pem_of(&found)),
            });
        }
        certificates
    }

    async fn leases(&mut self, clock: &Clock) -> Vec<Lease> {
        let mut leases = Vec::new();
        for name in LEASES {
            let failed = self.unchecked.len();
            let object = self.one("coordination.k8s.io/v1", "Lease", name).await;
            if self.unchecked.len() == failed {
                leases.push(Lease {
                    name: name.to_owned(),
                    object,
                    read_at: clock.now(),
                });
            }
        }
        leases
    }

    /// Reads the catalogs, and the names of the packages of each one that is served.
    async fn catalogs(&mut self) -> Vec<Catalog> {
        let objects = self.list(API_VERSION, "ClusterCatalog", None).await;
        if objects.is_empty() {
            return Vec::new();
        }
        let sources = self.cluster.catalogs().await;
        let sources = self.attempt("ClusterCatalog", sources).unwrap_or_default();
        let mut catalogs = Vec::new();
        for object in objects {
            let source = sources
                .iter()
                .find(|source| object["metadata"]["name"] == source.name.as_str());
            let unread = match source {
                None => None,
                Some(source) => match source.package_names().await {
                    // The condition Serving says why.
                    Ok(_) | Err(SourceError::NotServing { .. }) => None,
                    Err(SourceError::TokenRequired { .. }) => Some(Unread::TokenRequired),
                    Err(error) => Some(Unread::Failed(olm_text::chain(&error))),
                },
            };
            catalogs.push(Catalog { object, unread });
        }
        catalogs
    }

    async fn summaries(&mut self, nodes: &[Value]) -> Vec<Value> {
        let mut summaries = Vec::new();
        for node in nodes {
            let name = metadata_name(node);
            let summary = self.cluster.node_summary(name).await;
            summaries.extend(self.attempt(&format!("the disks of Node {name}"), summary));
        }
        summaries
    }

    async fn webhooks(&mut self) -> Vec<Webhook> {
        let mut webhooks = Vec::new();
        for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
            for configuration in self.list("admissionregistration.k8s.io/v1", kind, None).await {
                let name = metadata_name(&configuration);
                for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
                    if concerns(webhook) {
                        webhooks.push(Webhook {
                            configuration: format!("{kind} {name}"),
                            answered: self.is_answered(&webhook["clientConfig"]["service"]).await,
                            definition: webhook.clone(),
                        });
                    }
                }
            }
        }
        webhooks
    }

    /// Returns true if the Service has a ready endpoint, or the webhook has an address outside of the cluster.
    async fn is_answered(&mut self, service: &Value) -> bool {
        let (Some(namespace), Some(name)) = (service["namespace"].as_str(), service["name"].as_str()) else {
            return true;
        };
        let failed = self.unchecked.len();
        let slices = self
            .list("discovery.k8s.io/v1", "EndpointSlice", Some(namespace))
            .await;
        let ready = slices
            .iter()
            .filter(|slice| slice["metadata"]["labels"][keys::SERVICE_NAME_LABEL] == name)
            .flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten())
            .any(|endpoint| endpoint["conditions"]["ready"] != false);
        ready || self.unchecked.len() > failed
    }
}

/// Returns the object with its kind, which lists omit.
fn value(object: DynamicObject, api_version: &str, kind: &str) -> Value {
    let name = object.name_any();
    let mut value = serde_json::to_value(object).unwrap_or_else(|_| json!({"metadata": {"name": name}}));
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    value
}

/// Returns the certificates of a Secret; never its key.
fn pem_of(secret: &Value) -> Vec<u8> {
    let encoded = |key: &str| {
        secret["data"][key]
            .as_str()
            .unwrap_or_default()
            .as_bytes()
            .to_vec()
    };
    let mut pem = Vec::new();
    for key in ["tls.crt", "ca.crt"] {
        pem.extend(data_encoding::BASE64.decode(&encoded(key)).unwrap_or_default());
        pem.push(b'\n');
    }
    pem
}

#[cfg(test)]
mod tests;
