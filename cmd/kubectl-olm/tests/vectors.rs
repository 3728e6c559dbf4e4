//! Graphs of real packages, when `OLM_VECTORS` names the folder that has them. The pictures stay in
//! `target/graphs`, to be looked at.

mod common;

use std::path::Path;

use common::{run, vectors};

#[test]
fn graphs_of_real_packages() {
    let Some(vectors) = vectors("no real package was drawn") else {
        return;
    };
    let graphs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/graphs");
    std::fs::create_dir_all(&graphs).unwrap();
    for (package, from) in [
        ("argocd-operator", "0.13.0"),
        ("strimzi-kafka-operator", "0.45.0"),
        ("grafana-operator", "5.15.1"),
        ("project-quay", "3.9.2"),
    ] {
        let dir = vectors.join("catalogs/medium").join(package);
        let dir = dir.to_str().unwrap();
        for (name, more) in [("", vec![]), ("-from", vec!["--from", from])] {
            for format in ["text", "mermaid", "dot", "svg"] {
                let said = run(&[&["graph", package, "--dir", dir, "--format", format], &more[..]].concat());
                assert!(
                    said.code == 0 && said.err.is_empty(),
                    "{package} {format}: {}",
                    said.err
                );
                let file = graphs.join(format!("{package}{name}.{format}"));
                std::fs::write(&file, &said.out).unwrap();
                if format == "svg" {
                    assert!(said.out.starts_with("<svg ") && said.out.ends_with("</svg>\n"));
                    assert!(!said.out.contains("NaN"));
                }
            }
        }
        for (command, more) in [
            ("show", vec![]),
            ("versions", vec![]),
            ("resolve", vec!["--installed", from]),
        ] {
            let said = run(&[&[command, package, "--dir", dir], &more[..]].concat());
            assert_eq!(said.code, 0, "{command} {package}: {said}");
        }
    }
}

#[test]
fn real_packages_are_found_first() {
    let Some(vectors) = vectors("no real package was searched for") else {
        return;
    };
    let catalogs = ["medium", "rest"].map(|name| vectors.join("catalogs").join(name));
    let [medium, rest] = catalogs.each_ref().map(|path| path.to_str().unwrap());
    for (word, expected) in [
        ("kafka", &["strimzi-kafka-operator", "ack-kafka-controller"][..]),
        ("argo", &["argocd-operator"]),
        ("postgres", &["percona-postgresql-operator"]),
        ("grafana", &["grafana-operator"]),
        ("prometheus", &["prometheus", "prometheus-exporter-operator"]),
    ] {
        let said = run(&["search", word, "--dir", medium, "--dir", rest, "-o", "json"]);
        let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let packages = found["packages"].as_array().unwrap().iter();
        let first: Vec<&str> = packages
            .take(expected.len())
            .map(|package| package["name"].as_str().unwrap())
            .collect();
        assert_eq!(first, expected, "{word}");
    }
}
