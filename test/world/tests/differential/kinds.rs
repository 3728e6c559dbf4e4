//! Kinds of the sequences, and random objects of them.

use serde_json::{Value, json};

use crate::rng::Rng;

/// Kind of the sequences.
#[expect(clippy::struct_field_names, reason = "Kubernetes' own word")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) status: bool,
}

const fn kind(
    kind: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    namespaced: bool,
    status: bool,
) -> Kind {
    Kind {
        kind,
        group,
        version,
        plural,
        namespaced,
        status,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const OLM: &str = "olm.operatorframework.io";

/// Kinds whose objects no controller writes.
pub(crate) const KINDS: &[Kind] = &[
    kind("ConfigMap", "", "v1", "configmaps", true, false),
    kind("Secret", "", "v1", "secrets", true, false),
    kind("ServiceAccount", "", "v1", "serviceaccounts", true, false),
    kind("Lease", "coordination.k8s.io", "v1", "leases", true, false),
    kind("Role", RBAC, "v1", "roles", true, false),
    kind("RoleBinding", RBAC, "v1", "rolebindings", true, false),
    kind("ClusterRole", RBAC, "v1", "clusterroles", false, false),
    kind("Thing", "world.test", "v1", "things", true, true),
    kind("Plain", "world.test", "v1", "plains", false, false),
    kind("ClusterCatalog", OLM, "v1", "clustercatalogs", false, true),
    kind("ClusterExtension", OLM, "v1", "clusterextensions", false, true),
    kind("ClusterObjectSet", OLM, "v1", "clusterobjectsets", false, true),
];

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns true for a kind that a CRD defines.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.group, "world.test" | OLM)
    }

    /// Returns the path of the kind's list in the namespace of the run.
    pub(crate) fn list(&self) -> String {
        let base = if self.group.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{}", self.group)
        };
        let namespace = if self.namespaced { "/namespaces/{ns}" } else { "" };
        format!("{base}/{}{namespace}/{}", self.version, self.plural)
    }

    /// Returns the name of an object in requests.
    pub(crate) fn name(&self, name: &str) -> String {
        if self.namespaced {
            format!("t-{name}")
        } else {
            format!("{{w}}-{name}")
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{}", self.list(), self.name(name))
    }
}

/// Returns the CRDs of the sequences' own kinds.
pub(crate) fn crds() -> Vec<Value> {
    let thing = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "word": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 5},
                "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}]},
                "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {"type": "object", "required": ["port"], "properties": {
                        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "amount": {"x-kubernetes-int-or-string": true},
                "none": {"type": "string", "nullable": true},
                "limits": {"type": "object", "default": {"low": 1, "high": 5}, "properties": {"low": {"type": "integer", "default": 1}, "high": {"type": "integer", "default": 5}},
                    "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low must not exceed high"}]},
            }},
            "status": {"type": "object", "properties": {
                "phase": {"type": "string", "enum": ["x", "y"]},
                "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                    "items": {"type": "object", "required": ["type", "status"], "properties": {
                        "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"}}}},
            }},
        },
    });
    let plain = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": {"type": "object", "properties": {"word": {"type": "string"}}}}});
    vec![
        crd("Thing", "things", "Namespaced", &thing, true),
        crd("Plain", "plains", "Cluster", &plain, false),
    ]
}

/// Returns a CRD of group `world.test` with one version.
pub(crate) fn crd(kind: &str, plural: &str, scope: &str, schema: &Value, status: bool) -> Value {
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    if status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.world.test")},
        "spec": {"group": "world.test", "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": [version]},
    })
}

/// Returns random fields of an object of a kind, apart from metadata. With `rare`, values may be invalid.
pub(crate) fn fields(rng: &mut Rng, kind: &Kind, rare: bool) -> Value {
    let words = ["", "x", "y", "z"];
    match kind.kind {
        "ConfigMap" => {
            let mut out = json!({});
            if rng.chance(80) {
                out["data"] = some(rng, &["a", "b", "c"], |rng| json!(rng.pick(&words)));
            }
            if rng.chance(3) {
                out["immutable"] = json!(rng.chance(70));
            }
            if rare && rng.chance(10) {
                out["data"] = rng.pick(&[
                    json!({"a": 1}),
                    json!({"a/b": "x"}),
                    json!(["x"]),
                    json!({"a": null}),
                ]);
            }
            if rng.chance(5) {
                out["unknown"] = json!("x");
            }
            out
        }
        "Secret" => {
            let mut out = json!({});
            if rng.chance(70) {
                out["data"] = some(rng, &["a", "b"], |rng| json!(rng.pick(&["eA==", "eQ=="])));
            }
            if rng.chance(20) {
                out["stringData"] = some(rng, &["a", "c"], |rng| json!(rng.pick(&words)));
            }
            if rng.chance(10) {
                out["type"] = json!(rng.pick(&["Opaque", "example.com/x"]));
            }
            out
        }
        "ServiceAccount" => {
            let mut out = json!({});
            if rng.chance(30) {
                out["imagePullSecrets"] = json!([{"name": rng.pick(&["x", "y"])}]);
            }
            if rng.chance(20) {
                out["automountServiceAccountToken"] = json!(rng.chance(50));
            }
            out
        }
        "Lease" => {
            let mut spec = some(rng, &["holderIdentity"], |rng| json!(rng.pick(&["x", "y"])));
            if rng.chance(50) {
                spec["leaseDurationSeconds"] = json!(1 + rng.below(20));
            }
            if rng.chance(30) {
                spec["renewTime"] = json!("2024-01-02T03:04:05.123456Z");
            }
            json!({ "spec": spec })
        }
        "Role" | "ClusterRole" => {
            let rule = |rng: &mut Rng| {
                json!({"apiGroups": [rng.pick(&["", "apps"])], "resources": [rng.pick(&["pods", "secrets"])],
                    "verbs": [rng.pick(&["get", "*"])]})
            };
            let rules: Vec<Value> = (0..rng.below(3)).map(|_| rule(rng)).collect();
            if rare && rng.chance(20) {
                return json!({"rules": [{"resources": ["pods"], "verbs": []}]});
            }
            if rng.chance(10) {
                json!({})
            } else {
                json!({ "rules": rules })
            }
        }
        "RoleBinding" => {
            let mut subject = json!({"kind": rng.pick(&["User", "Group"]), "name": rng.pick(&["x", "y"])});
            if rng.chance(30) {
                subject = json!({"kind": "ServiceAccount", "name": "x", "namespace": "{ns}"});
            }
            json!({
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": if rng.chance(90) { "x" } else { "y" }},
                "subjects": if rng.chance(80) { json!([subject]) } else { json!([]) },
            })
        }
        "Thing" => json!({"spec": thing(rng, rare)}),
        "Plain" => {
            let mut out = json!({"spec": some(rng, &["word"], |rng| json!(rng.pick(&words)))});
            if rng.chance(40) {
                out["more"] = some(rng, &["a", "b"], |rng| {
                    rng.pick(&[json!(1), json!(["x"]), json!({"y": "z"})])
                });
            }
            if rng.chance(20) {
                out["status"] = json!({"phase": rng.pick(&["x", "y"])});
            }
            out
        }
        _ => crate::olm::fields(rng, kind.kind, rare),
    }
}

fn thing(rng: &mut Rng, rare: bool) -> Value {
    let mut spec = json!({});
    let words = ["x", "y", "z"];
    for name in [
        "size", "mode", "word", "fixed", "ports", "tags", "list", "map", "whole", "free", "amount", "none",
        "limits",
    ] {
        if !rng.chance(30) {
            continue;
        }
        spec[name] = match name {
            "size" => json!(rng.below(if rare { 14 } else { 11 })),
            "mode" => json!(rng.pick(if rare { &["a", "b", "c"] } else { &["a", "b"] })),
            "word" => json!(rng.pick(if rare {
                &["x", "", "X", "longer"]
            } else {
                &["x", "", "xy", "z"]
            })),
            "fixed" => json!(if rng.chance(85) { "x" } else { "y" }),
            "ports" => {
                let one = |rng: &mut Rng| {
                    let mut port = json!({"port": 1 + rng.below(3)});
                    if rng.chance(40) {
                        port["protocol"] = json!(rng.pick(&["TCP", "UDP"]));
                    }
                    if rng.chance(50) {
                        port["name"] = json!(rng.pick(&words));
                    }
                    if rare && rng.chance(10) {
                        port = json!({"name": "x"});
                    }
                    port
                };
                let mut ports: Vec<Value> = (0..rng.below(4)).map(|_| one(rng)).collect();
                if !rare {
                    ports.sort_by_key(|port| {
                        format!("{}{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))
                    });
                    ports.dedup_by_key(|port| {
                        format!("{}{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))
                    });
                }
                json!(ports)
            }
            "tags" => {
                let mut tags: Vec<&str> = (0..rng.below(4)).map(|_| rng.pick(&words)).collect();
                if !rare {
                    tags.sort_unstable();
                    tags.dedup();
                    if rng.chance(50) {
                        tags.reverse();
                    }
                }
                json!(tags)
            }
            "list" => json!((0..rng.below(3)).map(|_| rng.pick(&words)).collect::<Vec<_>>()),
            "map" => some(rng, &["a", "b"], |rng| json!(rng.pick(&words))),
            "whole" => some(rng, &["x", "y"], |rng| json!(rng.pick(&words))),
            "free" => some(rng, &["a", "b"], |rng| {
                rng.pick(&[json!("x"), json!(["x", "y"]), json!({"c": 1}), json!({})])
            }),
            "amount" => rng.pick(&[json!(1), json!("2"), json!("10%")]),
            "none" => rng.pick(&[json!(null), json!("x")]),
            _ => some(rng, &["low", "high"], |rng| json!(rng.below(7))),
        };
    }
    if rng.chance(8) {
        spec["unknown"] = json!("x");
    }
    if rare && rng.chance(10) {
        spec["size"] = json!("x");
    }
    spec
}

/// Returns an object with some of the fields.
pub(crate) fn some(rng: &mut Rng, names: &[&str], value: impl Fn(&mut Rng) -> Value) -> Value {
    let mut out = json!({});
    for name in names {
        if rng.chance(55) {
            out[*name] = value(rng);
        }
    }
    out
}
