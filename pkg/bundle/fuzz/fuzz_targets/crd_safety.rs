//! CRDs: no pair breaks the check, a CRD is safe to replace with itself, and our rules find no more than upstream's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olm_bundle::crd_safety::{Rules, Waiver, check, waive};
use serde_json::{Value, json};

fn crd(schema: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "tests.example.com"},
           "spec": {"scope": "Namespaced", "versions": [
               {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
           "status": {"storedVersions": ["v1"]}})
}

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut next = || serde_json::from_slice::<Value>(parts.next().unwrap_or_default());
    let (Ok(old), Ok(new)) = (next(), next()) else {
        return;
    };
    // As whole CRDs, and as the schemas of two.
    check(&old, &new, Rules::Ours);
    let (old, new) = (crd(&old), crd(&new));
    assert!(check(&old, &old, Rules::Ours).is_empty());
    let upstream = check(&old, &new, Rules::Upstream);
    let ours = check(&old, &new, Rules::Ours);
    assert!(ours.len() <= upstream.len());
    let waivers: Vec<Waiver> = upstream
        .iter()
        .map(|finding| Waiver {
            rule: finding.rule.clone(),
            path: finding.path.rsplit(": ").next().unwrap_or_default().to_owned(),
        })
        .collect();
    assert!(waive(ours.clone(), &waivers).0.len() <= ours.len());
});
