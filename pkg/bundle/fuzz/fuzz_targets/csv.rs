//! ClusterServiceVersions: whatever one holds, the bundle is refused or rendered.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use olm_bundle::{Certificates, RenderOptions, findings, lint, parse, render};

fuzz_target!(|data: &[u8]| {
    let annotations = b"annotations: {operators.operatorframework.io.bundle.package.v1: demo}";
    let csv = [b"kind: ClusterServiceVersion\n", data].concat();
    let files = BTreeMap::from([
        ("manifests/csv.yaml".to_owned(), csv),
        ("metadata/annotations.yaml".to_owned(), annotations.to_vec()),
    ]);
    let _ = lint(&files);
    if let Ok(bundle) = parse(&files) {
        let _ = findings(&bundle);
        let mut options = RenderOptions::new("demo");
        options.certificates = Certificates::CertManager;
        if let Ok(objects) = render(&bundle, &options) {
            olm_bundle::list_hash(&objects);
        }
    }
});
