//! Graphs of real packages, when `OLM_VECTORS` names the folder that has them. The pictures stay in
//! `target/graphs`, to be looked at.

mod common;

use std::path::{Path, PathBuf};

use common::run;

#[test]
fn graphs_of_real_packages() {
    let Some(vectors) = std::env::var_os("OLM_VECTORS").map(PathBuf::from) else {
        eprintln!("SKIPPED: OLM_VECTORS is not set, so no real package was drawn");
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
