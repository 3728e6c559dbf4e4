//! Suggested namespaces: whatever the annotations and the name of the package hold, the name is a DNS label.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use olm_bundle::{RenderOptions, install_namespace, parse, render};
use serde_json::json;

/// The input is a template, a name, and the name of a package, with zeros between them.
fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, '\0');
    let mut next = || parts.next().unwrap_or_default();
    let (template, name, package) = (next(), next(), next());
    let csv = json!({
        "kind": "ClusterServiceVersion",
        "metadata": {"annotations": {
            "operatorframework.io/suggested-namespace-template": template,
            "operatorframework.io/suggested-namespace": name,
        }},
        "spec": {"installModes": [{"type": "AllNamespaces", "supported": true}]},
    });
    let annotations = json!({"annotations": {"operators.operatorframework.io.bundle.package.v1": package}});
    let files = BTreeMap::from([
        ("manifests/csv.yaml".to_owned(), csv.to_string().into_bytes()),
        ("metadata/annotations.yaml".to_owned(), annotations.to_string().into_bytes()),
    ]);
    let Ok(bundle) = parse(&files) else { return };
    let Ok(namespace) = install_namespace(&bundle, None) else { return };
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let name = namespace.name.as_bytes();
    assert!((1..=63).contains(&name.len()) && name.iter().all(|byte| is_inner(*byte) || *byte == b'-'));
    assert!(name.first().is_some_and(|byte| is_inner(*byte)) && name.last().is_some_and(|byte| is_inner(*byte)));
    let mut options = RenderOptions::new(namespace.name);
    options.with_namespace = true;
    let _ = render(&bundle, &options);
});
