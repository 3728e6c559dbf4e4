use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn files(entries: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    entries
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

const META: (&str, &str) = (
    "metadata/annotations.yaml",
    "annotations: {operators.operatorframework.io.bundle.package.v1: small}",
);
const CSV: &str = "kind: ClusterServiceVersion\nmetadata: {name: small.v1.0.0, annotations: {olm.properties: '[]'}}\n\
                   spec: {version: v1.0.0}\n";

fn error(entries: &[(&str, &str)]) -> String {
    parse(&files(entries)).unwrap_err().to_string()
}

#[test]
fn reads_names_and_properties() {
    let properties = "properties: [{type: olm.maxOpenShiftVersion, value: \"4.19\", more: 1}]";
    let entries = [
        META,
        ("manifests/csv.yaml", CSV),
        ("metadata/properties.yaml", properties),
    ];
    let bundle = parse(&files(&entries)).unwrap();
    assert_eq!(
        (bundle.csv_name(), bundle.version(), bundle.package()),
        ("small.v1.0.0", "1.0.0", "small")
    );
    assert_eq!(
        bundle.properties_annotation().as_deref(),
        Some(r#"[{"type":"olm.maxOpenShiftVersion","value":"4.19"}]"#)
    );
}

#[test]
fn names_what_is_wrong() {
    assert_eq!(
        error(&[]),
        "open metadata/annotations.yaml: no such file or directory"
    );
    assert_eq!(error(&[META]), "no ClusterServiceVersion found in \"manifests\"");
    assert_eq!(
        error(&[META, ("manifests/sub/deep/a.yaml", "")]),
        "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: \
         found \"manifests/sub\""
    );
    assert_eq!(
        error(&[
            META,
            ("manifests/x.yaml", "apiVersion: v1\nmetadata: {name: x}\n")
        ]),
        "error parsing objects in \"manifests/x.yaml\": unable to decode \"manifests/x.yaml\": Object 'Kind' is \
         missing in '{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"}}'"
    );
}

#[test]
fn everything_wrong_is_named() {
    let text = error(&[
        ("manifests/a.yaml", "{"),
        ("manifests/b.yaml", "metadata: {}"),
        ("manifests/sub/a.yaml", ""),
        ("manifests/sub/b.yaml", ""),
        ("metadata/properties.yaml", "properties: 5"),
    ]);
    let heads: Vec<&str> = text
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        heads,
        [
            "open metadata/annotations.yaml",
            "error parsing objects in \"manifests/a.yaml\"",
            "error parsing objects in \"manifests/b.yaml\"",
            "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem",
            "failed to unmarshal metadata/properties.yaml",
        ]
    );
}

/// Tests that the manifests share one limit on memory, also as documents of one file and as JSON.
#[test]
fn values_of_all_manifests_are_bounded_together() {
    let list = format!("kind: ConfigMap\nv: [{}]\n", "{a: {}},".repeat(30_000));
    let files: Vec<String> = (0..4).map(|number| format!("manifests/f{number}.yaml")).collect();
    let few: Vec<_> = files
        .iter()
        .take(2)
        .map(|path| (path.as_str(), list.as_str()))
        .collect();
    let many: Vec<_> = files.iter().map(|path| (path.as_str(), list.as_str())).collect();
    let limit = "take more than 67108864 bytes of memory";
    assert!(!error(&few).contains("bytes of memory"));
    assert!(error(&many).contains("bytes of memory"), "{}", error(&many));
    let documents = format!("{list}---\n").repeat(4);
    assert!(error(&[("manifests/a.yaml", &documents)]).contains("bytes of memory"));
    let json = format!("{{\"kind\":\"ConfigMap\",\"v\":[{}0]}}", "0,".repeat(2 << 20));
    assert!(
        error(&[("manifests/a.yaml", &json)]).contains(limit),
        "{}",
        error(&[("manifests/a.yaml", &json)])
    );
}

#[test]
fn ignored_content_is_noticed() {
    let twice = "kind: ConfigMap\ndata:\n  a: 1\n  b: 2\n  a: 3\n";
    let json = "{\"kind\": \"ConfigMap\", \"kind\": \"Secret\"}";
    let entries = [
        META,
        ("manifests/a.yaml", CSV),
        ("manifests/b.yaml", CSV),
        ("manifests/c.yaml", twice),
        ("manifests/d.json", json),
        ("metadata/dependencies.yaml", ""),
    ];
    let notices = lint(&files(&entries));
    let shown: Vec<(&str, &str)> = notices
        .iter()
        .map(|notice| (notice.file.as_str(), notice.message.as_str()))
        .collect();
    assert_eq!(shown.len(), 4, "{shown:#?}");
    assert_eq!(shown[0].0, "manifests/a.yaml");
    assert_eq!(
        shown[1],
        (
            "manifests/c.yaml",
            "line 5: duplicate key \"a\" in one mapping; the last value is used"
        )
    );
    assert!(shown[2].1.contains("duplicate key \"kind\""));
    assert!(lint(&files(&[META, ("manifests/a.yaml", CSV)])).is_empty());
}

#[test]
fn copies_are_bounded() {
    let deployment = serde_json::json!({"name": "d", "spec": {"template": {"spec": {"containers": vec![serde_json::json!({}); 501]}}}});
    let csv = |annotation: String, deployments: Vec<Value>| {
        serde_json::json!({"kind": "ClusterServiceVersion", "metadata": {"annotations": {"a": annotation}},
            "spec": {"install": {"spec": {"deployments": deployments}}}})
        .to_string()
    };
    let many = error(&[
        META,
        ("manifests/csv.yaml", &csv(String::new(), vec![deployment])),
    ]);
    assert_eq!(
        many,
        "bundle is too large: the number of containers is 501, the limit is 500"
    );
    let long = csv("x".repeat(1 << 20), vec![serde_json::json!({}); 65]);
    assert!(error(&[META, ("manifests/csv.yaml", &long)]).contains("annotations"));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut all = files(&[META, ("manifests/csv.yaml", CSV)]);
        all.insert("manifests/x.yaml".to_owned(), bytes.clone());
        all.insert("metadata/properties.yaml".to_owned(), bytes);
        let _ = parse(&all);
    }

    #[test]
    fn any_yaml_like_text_is_survived(text in "(kind|spec|install|deployments|metadata|[a-z<*&!|>'\"\\[\\]{},:#?\\-%~ 0-9.\n]){0,60}") {
        let mut all = files(&[META, ("manifests/csv.yaml", CSV)]);
        all.insert("manifests/x.yaml".to_owned(), format!("kind: ClusterServiceVersion\n{text}").into_bytes());
        let _ = parse(&all);
    }
}

#[test]
fn other_formats_are_named() {
    let declared = |format: &str| {
        let meta = format!(
            "annotations: {{operators.operatorframework.io.bundle.package.v1: small, {FORMAT_LABEL}: {format}}}"
        );
        parse(&files(&[
            ("metadata/annotations.yaml", &meta),
            ("manifests/csv.yaml", CSV),
        ]))
    };
    assert!(declared("registry+v1").is_ok() && declared("\"\"").is_ok());
    for (format, what) in [
        ("helm", ", a Helm chart"),
        ("plain+v0", ", plain manifests"),
        ("registry+v2", ", another version of registry+v1"),
        ("teapot", ", which is unknown"),
        ("5", ", which is unknown"),
    ] {
        let error = declared(format).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the bundle's format is \"{format}\"{what}: only registry+v1 bundles can be installed")
        );
        assert!(error.terminal());
    }
    // A chart has no annotations, and its other files are ignored.
    let chart = parse(&files(&[("Chart.yaml", ""), ("manifests/sub/x", "")])).unwrap_err();
    assert!(chart.to_string().contains("\"helm\"") && chart.terminal());
    assert!(check_format("teapot").is_err() && check_format(" registry+v1\n").is_ok());
}
