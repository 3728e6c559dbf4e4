//! Diagnosis of the controllers and of what they need. [`read`] observes the cluster; the checks are pure functions
//! from [`Facts`] to findings.

mod catalogs;
mod certificates;
mod installation;
mod leases;
mod objects;
mod read;
mod storage;
mod webhooks;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use installation::Installation;
pub(crate) use read::read;

use crate::controllers::preflight;
use crate::finding::Finding;

/// Observed state of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Version of the API server.
    pub(crate) version: String,
    /// Time of the API server.
    pub(crate) server_time: Option<Timestamp>,
    /// Time of this machine at the same moment.
    pub(crate) local_time: Timestamp,
    /// Flags of the installation.
    pub(crate) installation: Installation,
    /// Objects of the manifests with the overlays of the installation, and those of the cluster.
    pub(crate) objects: Vec<Pair>,
    /// Secrets with certificates.
    pub(crate) certificates: Vec<Certificate>,
    /// Leases of the controllers.
    pub(crate) leases: Vec<Lease>,
    /// `ClusterCatalog`s.
    pub(crate) catalogs: Vec<Catalog>,
    /// `ClusterExtension`s.
    pub(crate) extensions: Vec<Value>,
    /// Nodes that run the controllers.
    pub(crate) nodes: Vec<Value>,
    /// Pods of the controllers.
    pub(crate) pods: Vec<Value>,
    /// Answers of the kubelets' `stats/summary`.
    pub(crate) summaries: Vec<Value>,
    /// Webhooks that are called for objects of OLM or of the controllers.
    pub(crate) webhooks: Vec<Webhook>,
    /// Checks that could not be made.
    pub(crate) unchecked: Vec<Finding>,
}

/// An object of the manifests.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// Object of the manifests.
    pub(crate) expected: Value,
    /// Object of the cluster; none if it does not exist.
    pub(crate) present: Option<Value>,
    /// Problem of the pods, for a Deployment.
    pub(crate) problem: Option<String>,
}

/// Certificate in a Secret.
#[derive(Debug, Default)]
pub(crate) struct Certificate {
    /// Name of the Secret.
    pub(crate) secret: String,
    /// True if the controller issues and renews it.
    pub(crate) own: bool,
    /// PEM texts; none if the Secret does not exist.
    pub(crate) pem: Option<Vec<u8>>,
}

/// Lease of a controller.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Name.
    pub(crate) name: String,
    /// The object; none if it does not exist.
    pub(crate) object: Option<Value>,
    /// Time of the API server when the object was read.
    pub(crate) read_at: Timestamp,
}

/// A `ClusterCatalog` and the result of a read of its content.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The object.
    pub(crate) object: Value,
    /// Reason why the content was not read; none if it was, or is not served.
    pub(crate) unread: Option<Unread>,
}

/// Reason why the content of a served catalog was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// catalogd asks for a token.
    TokenRequired,
    /// The error.
    Failed(String),
}

/// Webhook of an admission configuration.
#[derive(Debug, Default)]
pub(crate) struct Webhook {
    /// Kind and name of the configuration.
    pub(crate) configuration: String,
    /// The webhook, as in the configuration.
    pub(crate) definition: Value,
    /// True if its Service has a ready endpoint.
    pub(crate) answered: bool,
}

/// Returns all findings, the worst first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings = facts.unchecked.clone();
    findings.extend(preflight::version(&facts.version));
    findings.extend(objects::check(&facts.objects, &facts.installation));
    let now = facts.server_time.unwrap_or(facts.local_time);
    findings.extend(certificates::check(&facts.certificates, now));
    findings.extend(leases::check(&facts.leases));
    findings.extend(leases::clock(facts.server_time, facts.local_time));
    findings.extend(catalogs::check(&facts.catalogs));
    findings.extend(catalogs::extensions(&facts.extensions));
    findings.extend(storage::check(&facts.nodes, &facts.pods, &facts.summaries));
    findings.extend(webhooks::check(&facts.webhooks));
    findings.sort();
    findings.dedup();
    findings
}
