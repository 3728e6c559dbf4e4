//! Bundles: no files break the parser, and what parses can be asked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|data: &[u8]| {
    let parts: Vec<&[u8]> = data.splitn(3, |byte| *byte == 0).collect();
    let names = ["manifests/a.yaml", "manifests/b.yaml", "metadata/properties.yaml"];
    let annotations = b"annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.package.v1: demo\n";
    let mut files: BTreeMap<String, Vec<u8>> = names
        .iter()
        .zip(parts)
        .map(|(name, part)| ((*name).to_owned(), part.to_vec()))
        .collect();
    files.insert("metadata/annotations.yaml".to_owned(), annotations.to_vec());
    if let Ok(bundle) = olm_bundle::parse(&files) {
        bundle.properties_annotation();
        olm_bundle::serving_certificates(&bundle, "demo");
    }
});
