//! CustomResourceDefinitions: two of them are read and compared, whatever they hold.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use olm_bundle::crd_safety::{self, Rules};
use olm_bundle::{RenderOptions, parse, render};
use serde_json::Value;

fn crd(data: &[u8]) -> Option<Value> {
    let head = b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n";
    let csv = b"kind: ClusterServiceVersion\nspec: {installModes: [{type: AllNamespaces, supported: true}]}";
    let annotations = b"annotations: {operators.operatorframework.io.bundle.package.v1: demo}";
    let files = BTreeMap::from([
        ("manifests/crd.yaml".to_owned(), [head, data].concat()),
        ("manifests/csv.yaml".to_owned(), csv.to_vec()),
        ("metadata/annotations.yaml".to_owned(), annotations.to_vec()),
    ]);
    let objects = render(&parse(&files).ok()?, &RenderOptions::new("demo")).ok()?;
    objects.into_iter().find(|object| object["kind"] == "CustomResourceDefinition")
}

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (old, new) = data.split_at(at);
    if let (Some(old), Some(new)) = (crd(old), crd(new.get(1..).unwrap_or_default())) {
        let _ = crd_safety::check(&old, &new, Rules::Ours);
    }
});
