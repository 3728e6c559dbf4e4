//! Discovery of groups, versions and kinds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::kinds::{Resource, builtin_resources};
use crate::request::Request;
use crate::status::Refusal;
use crate::world::{Outcome, World};

/// Version that the API server reports.
const VERSION: &str = "v1.36.3";

impl World {
    /// Answers requests for documents about the API; `None` for all other requests.
    pub(crate) fn discovery(&self, segments: &[&str], request: &Request) -> Result<Option<Outcome>, Refusal> {
        let aggregated = request.accept.contains("as=APIGroupDiscoveryList");
        let document = match segments {
            ["healthz" | "livez" | "readyz"] => return Ok(Some(Outcome::Text("ok".into()))),
            ["version"] => json!({
                "major": "1", "minor": "36", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "", "buildDate": "",
                "goVersion": "", "compiler": "gc", "platform": "linux/amd64", "emulationMajor": "1", "emulationMinor": "36",
                "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
            }),
            ["api"] if aggregated => self.aggregated(true),
            ["apis"] if aggregated => self.aggregated(false),
            ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            ["apis"] => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": self.groups()}),
            ["api", version] => self.resources("", version)?,
            ["apis", group] => {
                let mut groups = self.groups();
                let at = groups.iter().position(|found| found["name"] == *group);
                let mut found = groups.swap_remove(at.ok_or_else(Refusal::path)?);
                found["kind"] = "APIGroup".into();
                found["apiVersion"] = "v1".into();
                found
            }
            ["apis", group, version] => self.resources(group, version)?,
            _ => return Ok(None),
        };
        if request.method != "GET" {
            return Err(Refusal::method());
        }
        Ok(Some(Outcome::Object(200, document)))
    }

    fn served(&self) -> Vec<&Resource> {
        let custom = self.custom.values().flat_map(|kind| kind.versions());
        builtin_resources()
            .iter()
            .chain(custom.map(|version| &*version.resource))
            .collect()
    }

    /// Returns the versions of each group, the preferred one first.
    fn versions(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for resource in self.served() {
            all.entry(&resource.group).or_default().insert(&resource.version);
        }
        all.into_iter()
            .map(|(group, versions)| {
                let mut versions: Vec<&str> = versions.into_iter().collect();
                versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
                (group, versions)
            })
            .collect()
    }

    fn groups(&self) -> Vec<Value> {
        let groups = self.versions().into_iter().filter(|(group, _)| !group.is_empty());
        groups
            .map(|(group, versions)| {
                let versions: Vec<Value> = versions
                    .iter()
                    .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
                    .collect();
                json!({"name": group, "preferredVersion": versions[0], "versions": versions})
            })
            .collect()
    }

    fn resources(&self, group: &str, version: &str) -> Result<Value, Refusal> {
        let mut list = Vec::new();
        for resource in self.served() {
            if resource.group == group && resource.version == version {
                list.extend(described(resource));
            }
        }
        if list.is_empty() {
            return Err(Refusal::path());
        }
        let group_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        Ok(
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
        )
    }

    fn aggregated(&self, core: bool) -> Value {
        let served = self.served();
        let groups = self
            .versions()
            .into_iter()
            .filter(|(group, _)| group.is_empty() == core);
        let items: Vec<Value> = groups
            .map(|(group, versions)| {
                let versions: Vec<Value> = versions
                    .iter()
                    .map(|version| {
                        let found = served
                            .iter()
                            .filter(|resource| resource.group == group && resource.version == *version);
                        let resources: Vec<Value> = found.map(|resource| aggregated(resource)).collect();
                        json!({"version": version, "freshness": "Current", "resources": resources})
                    })
                    .collect();
                json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
            })
            .collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
    }
}

/// Returns the rank of a version: `v2` before `v1` before `v1beta1` before anything else.
fn priority(version: &str) -> (u8, u64, u64) {
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        (text[..end].parse().unwrap_or(0), text[end..].to_owned())
    };
    let Some(rest) = version.strip_prefix('v') else {
        return (0, 0, 0);
    };
    let (major, rest) = digits(rest);
    for (rank, word) in [(2, "beta"), (1, "alpha")] {
        if let Some(minor) = rest.strip_prefix(word) {
            return (rank, major, digits(minor).0);
        }
    }
    if rest.is_empty() { (3, major, 0) } else { (0, 0, 0) }
}

fn verbs(resource: &Resource) -> Vec<&'static str> {
    if resource.traits.review {
        return vec!["create"];
    }
    vec![
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ]
}

fn described(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    let mut out = vec![main];
    if resource.status {
        out.push(json!({
            "name": format!("{}/status", resource.plural), "singularName": "", "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": ["get", "patch", "update"],
        }));
    }
    out
}

fn aggregated(resource: &Resource) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut out = json!({
        "resource": resource.plural, "responseKind": kind, "singularResource": resource.singular,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        out["shortNames"] = json!(resource.short_names);
    }
    if resource.status {
        out["subresources"] = json!([{
            "subresource": "status", "responseKind": kind, "verbs": ["get", "patch", "update"],
        }]);
    }
    out
}
