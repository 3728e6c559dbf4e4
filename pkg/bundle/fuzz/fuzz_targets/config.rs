//! Configurations: any `spec.config.inline` is refused or rendered, in each install mode.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use olm_bundle::{RenderOptions, list_hash, namespace_selector, parse, render};
use serde_json::{Value, json};

const MODES: [&str; 4] = ["AllNamespaces", "OwnNamespace", "SingleNamespace", "MultiNamespace"];

/// The input is a letter whose lowest bits choose the supported modes, and the configuration.
fuzz_target!(|data: &[u8]| {
    let Some((supported, text)) = data.split_first() else { return };
    let Ok(config) = serde_json::from_slice::<Value>(text) else { return };
    let modes = MODES.iter().enumerate();
    let modes: Vec<Value> = modes
        .map(|(at, mode)| json!({"type": mode, "supported": supported & (1 << at) != 0}))
        .collect();
    let container = json!({"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}]});
    let csv = json!({
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "demo.v1.0.0"},
        "spec": {"installModes": modes, "install": {"strategy": "deployment", "spec": {"deployments": [
            {"name": "d", "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}}}]}}},
    });
    let annotations = b"annotations: {operators.operatorframework.io.bundle.package.v1: demo}";
    let files = BTreeMap::from([
        ("manifests/csv.yaml".to_owned(), csv.to_string().into_bytes()),
        ("metadata/annotations.yaml".to_owned(), annotations.to_vec()),
    ]);
    let Ok(bundle) = parse(&files) else { return };
    let mut options = RenderOptions::new("demo");
    options.selected_namespaces = namespace_selector(&config).map(|_| vec!["a".to_owned()]);
    options.config = Some(config);
    if let Ok(objects) = render(&bundle, &options) {
        assert_eq!(list_hash(&objects), list_hash(&render(&bundle, &options).expect("rendered before")));
    }
});
