//! Releases of bundles, offline: as operator-controller of the shipped manifests reads them, or as the flag says.

#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{Said, run};
use serde_json::Value;

const CATALOG: &str = r#"
{"schema": "olm.package", "name": "tide", "defaultChannel": "a"}
{"schema": "olm.channel", "package": "tide", "name": "a", "entries": [
    {"name": "tide.v1.1.0-2"}, {"name": "tide.v1.1.0-3", "replaces": "tide.v1.1.0-2"}]}
{"schema": "olm.bundle", "package": "tide", "name": "tide.v1.1.0-2", "image": "r.example/tide@sha256:1111111111111111111111111111111111111111111111111111111111111111",
    "properties": [{"type": "olm.package", "value": {"packageName": "tide", "version": "1.1.0", "release": "2"}}]}
{"schema": "olm.bundle", "package": "tide", "name": "tide.v1.1.0-3", "image": "r.example/tide@sha256:2222222222222222222222222222222222222222222222222222222222222222",
    "properties": [{"type": "olm.package", "value": {"packageName": "tide", "version": "1.1.0", "release": "3"}}]}
"#;

fn resolve(more: &[&str]) -> (Said, Value) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("catalog.json"), CATALOG).unwrap();
    let dir = folder.path().display().to_string();
    let said = run(&[&["resolve", "tide", "--dir", &dir, "-o", "json"], more].concat());
    let value = serde_json::from_str(&said.out).unwrap_or_default();
    (said, value)
}

#[test]
fn releases_count_by_default() {
    for more in [&[][..], &["--release-support"], &["--release-support=true"]] {
        let (said, value) = resolve(more);
        assert_eq!(value["resolution"]["bundle"], "tide.v1.1.0-3", "{said}");
        assert_eq!(value["resolution"]["release"], "3", "{said}");
    }
    let (said, value) = resolve(&["--release-support=false"]);
    assert_eq!(value["resolution"]["release"], Value::Null, "{said}");
}

#[test]
fn an_installed_bundle_has_its_release() {
    for installed in ["tide.v1.1.0-2", "1.1.0+2"] {
        let (said, value) = resolve(&["--installed", installed]);
        assert_eq!(value["request"]["installed"]["name"], "tide.v1.1.0-2", "{said}");
        assert_eq!(value["request"]["installed"]["release"], "2", "{said}");
        assert_eq!(value["resolution"]["bundle"], "tide.v1.1.0-3", "{said}");
    }
}
