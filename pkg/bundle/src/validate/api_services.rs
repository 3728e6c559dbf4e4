//! Contradictions of the API services that a bundle owns.

use std::collections::{BTreeMap, BTreeSet};

use olm_text::dns;
use olm_text::object::{metadata_name, text};
use serde_json::Value;

use crate::Bundle;
use crate::model::ApiService;

/// Returns the contradictions, sorted by API service.
pub(super) fn findings(bundle: &Bundle) -> Vec<String> {
    let mut out: BTreeSet<String> = bundle.csv.api_services.iter().flat_map(invalid).collect();
    out.extend(dangling(bundle));
    out.extend(ambiguous(bundle));
    out.extend(served_by_crds(bundle));
    out.into_iter().collect()
}

/// Checks the parts of the name of an `APIService`, which the API server only accepts as DNS names, and the port.
fn invalid(service: &ApiService) -> Vec<String> {
    let name = service.name();
    let mut out = Vec::new();
    if service.group.is_empty() || !dns::is_subdomain(&service.group) {
        out.push(format!(
            "API service '{name}' has invalid group '{}': write a DNS-1123 subdomain, such as example.com",
            service.group
        ));
    }
    if !dns::is_label(&service.version) || service.version.starts_with(|c: char| c.is_ascii_digit()) {
        out.push(format!(
            "API service '{name}' has invalid version '{}': write a DNS-1035 label, such as v1alpha1",
            service.version
        ));
    }
    if service.container_port > i64::from(u16::MAX) {
        out.push(format!(
            "API service '{name}' has invalid containerPort {}: write a port, or leave it out for 443",
            service.container_port
        ));
    }
    out
}

fn dangling(bundle: &Bundle) -> impl Iterator<Item = String> {
    let deployments: BTreeSet<&str> = bundle
        .csv
        .deployments
        .iter()
        .map(|deployment| deployment.name.as_str())
        .collect();
    bundle
        .csv
        .api_services
        .iter()
        .filter(move |service| !deployments.contains(service.deployment.as_str()))
        .map(|service| {
            format!(
                "API service '{}' references non-existent deployment '{}'",
                service.name(),
                service.deployment
            )
        })
}

/// Finds group versions that several servers or ports are to serve: an `APIService` has one of each.
fn ambiguous(bundle: &Bundle) -> Vec<String> {
    let mut servers: BTreeMap<String, BTreeSet<(&str, i64)>> = BTreeMap::new();
    for service in &bundle.csv.api_services {
        let server = (service.deployment.as_str(), service.port());
        servers.entry(service.name()).or_default().insert(server);
    }
    servers
        .into_iter()
        .filter(|(_, servers)| servers.len() > 1)
        .map(|(name, servers)| {
            let list: Vec<String> = servers
                .iter()
                .map(|(deployment, port)| format!("{deployment}:{port}"))
                .collect();
            format!(
                "API service '{name}' is to be served by [{}]: only one deployment and port can serve a group and version",
                list.join(" ")
            )
        })
        .collect()
}

/// Finds group versions that a CRD of the bundle serves too: the API server serves CRDs itself.
fn served_by_crds(bundle: &Bundle) -> Vec<String> {
    let owned: BTreeSet<String> = bundle.csv.api_services.iter().map(ApiService::name).collect();
    let mut out = Vec::new();
    for crd in &bundle.crds {
        let group = text(crd, "/spec/group");
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            let name = format!("{}.{group}", text(version, "/name"));
            let served = version.get("served") == Some(&Value::Bool(true));
            if served && owned.contains(&name) {
                out.push(format!(
                    "API service '{name}' has the group and version of custom resource definition '{}', which the API server \
                     serves itself",
                    metadata_name(crd)
                ));
            }
        }
    }
    out
}
