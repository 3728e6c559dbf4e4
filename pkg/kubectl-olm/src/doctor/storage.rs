//! Disks and memory of the nodes that run the controllers, and the volumes of the pods.

use olm_api::condition::external::NodePressure;
use olm_api::condition::untyped;
use olm_manifests::NAMESPACE;
use serde_json::Value;

use crate::controllers::title;
use crate::finding::{Finding, Severity};

/// Percentage of a volume's limit above which it counts as almost full.
const ALMOST_FULL: u64 = 80;
/// Percentage of a disk below which it counts as almost full.
const LITTLE_LEFT: u64 = 10;

/// Checks nodes, pods and their volumes.
pub(crate) fn check(nodes: &[Value], pods: &[Value], summaries: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in nodes {
        for pressure in NodePressure::ALL
            .iter()
            .filter(|type_| untyped::is_true(node, type_))
        {
            findings.push(Finding::new(
                Severity::Error,
                title(node),
                format!("it has {pressure}, so the controllers' pods may be evicted"),
                "free resources of the node, or move pods to other nodes",
            ));
        }
    }
    for pod in pods.iter().filter(|pod| pod["status"]["reason"] == "Evicted") {
        let why = pod["status"]["message"]
            .as_str()
            .unwrap_or("the node lacked resources");
        findings.push(Finding::new(Severity::Warning,
            title(pod),
            format!("it was evicted: {why}"),
            "compare sizeLimit of the Deployment's volumes with the catalogs; delete the pod when the cause is gone",
        ));
    }
    for summary in summaries {
        for used in summary["pods"].as_array().into_iter().flatten() {
            findings.extend(volumes(used, pods));
        }
    }
    findings
}

fn volumes(used: &Value, pods: &[Value]) -> Vec<Finding> {
    let name = &used["podRef"]["name"];
    let is_it = |pod: &&Value| pod["metadata"]["name"] == *name && used["podRef"]["namespace"] == NAMESPACE;
    let Some(pod) = pods.iter().find(is_it) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for volume in used["volume"].as_array().into_iter().flatten() {
        let number = |key: &str| volume[key].as_u64();
        let declared = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let mut declared = declared.filter(|declared| declared["name"] == volume["name"]);
        let Some(empty_dir) = declared.find_map(|declared| declared["emptyDir"].as_object()) else {
            continue;
        };
        let limit = empty_dir.get("sizeLimit").and_then(Value::as_str).and_then(bytes);
        let name = volume["name"].as_str().unwrap_or_default();
        if let (Some(used), Some(limit)) = (number("usedBytes"), limit)
            && used.saturating_mul(100) > limit.saturating_mul(ALMOST_FULL)
        {
            findings.push(Finding::new(
                Severity::Warning,
                title(pod),
                format!(
                    "volume {name} holds {} of {} MiB; beyond it the pod is evicted",
                    used >> 20,
                    limit >> 20
                ),
                "raise sizeLimit of the volume in the Deployment, or remove catalogs",
            ));
        }
        if let (Some(left), Some(capacity)) = (number("availableBytes"), number("capacityBytes"))
            && left.saturating_mul(100) < capacity.saturating_mul(LITTLE_LEFT)
        {
            findings.push(Finding::new(
                Severity::Warning,
                title(pod),
                format!(
                    "the disk of volume {name} has {} of {} MiB left",
                    left >> 20,
                    capacity >> 20
                ),
                "free space on the node",
            ));
        }
    }
    findings
}

/// Returns the bytes of a quantity such as `20Gi`; none for other notations.
fn bytes(quantity: &str) -> Option<u64> {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &quantity[digits.len()..] {
        "" => 0,
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        "Ti" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pressure_and_evictions() {
        let node = json!({"kind": "Node", "metadata": {"name": "n"},
            "status": {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "MemoryPressure", "status": "False"}]}});
        let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "status": {"reason": "Evicted", "message": "full"}});
        let causes: Vec<String> = check(&[node], &[pod], &[])
            .into_iter()
            .map(|finding| finding.cause)
            .collect();
        assert_eq!(
            causes,
            [
                "it has DiskPressure, so the controllers' pods may be evicted",
                "it was evicted: full"
            ]
        );
    }

    #[test]
    fn volumes_that_are_almost_full() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "namespace": NAMESPACE},
            "spec": {"volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "token", "projected": {}}]}});
        let found = |used: u64, left: u64| {
            let volume = |name: &str| json!({"name": name, "usedBytes": used << 20, "availableBytes": left << 20, "capacityBytes": 1000 << 20});
            let summary = json!({"pods": [{"podRef": {"name": "p", "namespace": NAMESPACE},
                "volume": [volume("cache"), volume("token")]}]});
            let findings = check(&[], std::slice::from_ref(&pod), &[summary]);
            findings
                .into_iter()
                .map(|finding| finding.cause)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(800, 500), [""; 0]);
        assert_eq!(
            found(900, 500),
            ["volume cache holds 900 of 1024 MiB; beyond it the pod is evicted"]
        );
        assert_eq!(found(1, 99), ["the disk of volume cache has 99 of 1000 MiB left"]);
    }

    #[test]
    fn quantities() {
        for (text, expected) in [
            ("20Gi", Some(20 << 30)),
            ("64Mi", Some(64 << 20)),
            ("7", Some(7)),
            ("1G", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
