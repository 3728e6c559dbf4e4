//! Our own bundles, rendered in every way there is.

use std::collections::BTreeMap;
use std::path::Path;

use olm_bundle::{
    Bundle, Certificates, OwnCertificate, RenderError, RenderOptions, parse, render, webhook_certificates,
};
use serde_json::{Value, json};

#[expect(
    clippy::disallowed_methods,
    reason = "the crate does no IO, its tests read files"
)]
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn bundle(name: &str) -> Bundle {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../test/testdata/bundles")
        .join(name);
    let mut files = BTreeMap::new();
    for folder in ["manifests", "metadata"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            files.insert(path, std::fs::read(entry.path()).unwrap());
        }
    }
    parse(&files).unwrap()
}

fn options(config: Value) -> RenderOptions {
    let config = Some(config);
    RenderOptions {
        config,
        ..RenderOptions::new("harbour")
    }
}

fn names(objects: &[Value]) -> Vec<String> {
    let text = |object: &Value, pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    objects
        .iter()
        .map(|o| {
            format!(
                "{} {} {}",
                text(o, "/kind"),
                text(o, "/metadata/namespace"),
                text(o, "/metadata/name")
            )
        })
        .collect()
}

#[test]
fn beacon_with_own_certificates() {
    let bundle = bundle("beacon");
    let requests = webhook_certificates(&bundle, "harbour");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].secret_name, "beacon-controller-service-cert");
    let certificate = OwnCertificate {
        ca_pem: "the CA".to_owned(),
        cert_pem: "the certificate".to_owned(),
        key_pem: "the key".to_owned(),
        next: None,
    };
    let mut options = RenderOptions::new("harbour");
    options.certificates = Certificates::Own([(requests[0].secret_name.clone(), certificate)].into());
    let objects = render(&bundle, &options).unwrap();
    insta::assert_yaml_snapshot!("beacon-own", objects);

    options.certificates = Certificates::Own(BTreeMap::new());
    let error = render(&bundle, &options).unwrap_err();
    assert!(matches!(error, RenderError::MissingCertificate { .. }) && !error.terminal());
}

#[test]
fn beacon_with_other_issuers() {
    let bundle = bundle("beacon");
    let mut options = RenderOptions::new("harbour");
    assert_eq!(
        render(&bundle, &options).unwrap_err().to_string(),
        "unsupported bundle: webhookDefinitions are not supported"
    );
    options.certificates = Certificates::CertManager;
    insta::assert_yaml_snapshot!("beacon-cert-manager", names(&render(&bundle, &options).unwrap()));
    options.certificates = Certificates::ServiceCa;
    let objects = render(&bundle, &options).unwrap();
    insta::assert_yaml_snapshot!("beacon-service-ca", names(&objects));
    assert_eq!(objects, render(&bundle, &options).unwrap());
}

#[test]
fn tides_in_another_namespace() {
    let bundle = bundle("tides");
    assert_eq!(
        bundle.properties_annotation().as_deref(),
        Some(
            r#"[{"type":"olm.gvk","value":{"kind":"Tide"}},{"type":"olm.maxOpenShiftVersion","value":"4.20"}]"#
        )
    );
    let objects = render(&bundle, &options(json!({"watchNamespace": "bay"}))).unwrap();
    insta::assert_yaml_snapshot!("tides-single", objects);
}

#[test]
fn tides_configured() {
    let config = json!({"watchNamespace": "harbour", "deploymentConfig": {
        "env": [{"name": "MOON", "value": "new"}, {"name": "EXTRA", "value": "1"}],
        "envFrom": [{"secretRef": {"name": "more"}}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "tolerations": [{"key": "water", "operator": "Exists"}, {"key": "salt", "operator": "Exists"}],
        "resources": {"limits": {"memory": "2048Mi"}},
        "nodeSelector": {"coast": "west"},
        "affinity": {"nodeAffinity": {}, "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}},
        "annotations": {"capabilities": "theirs", "note": "kept"},
    }});
    let objects = render(&bundle("tides"), &options(config)).unwrap();
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    insta::assert_yaml_snapshot!("tides-configured", deployment);
}

#[test]
fn configurations_are_refused_in_words() {
    let bundle = bundle("tides");
    let cases = [
        json!({}),
        json!([]),
        json!({"watchNamespace": ""}),
        json!({"watchNamespace": 5}),
        json!({"watchNamespace": "UPPER", "more": 1}),
        json!({"watchNamespace": "bay", "deploymentConfig": {"env": [{"value": "nameless"}]}}),
        json!({"watchNamespace": "bay", "deploymentConfig": {"selector": {}}}),
        json!({"watchNamespace": "bay", "deploymentConfig": {"resources": {"limits": {"cpu": "lots"}}}}),
        json!({"watchNamespace": "bay", "deploymentConfig": {"tolerations": [{"tolerationSeconds": "soon"}]}}),
        json!({"watchNamespace": "bay", "deploymentConfig": {"nodeSelector": {"a": 1}, "env": {}}}),
    ];
    let answers: Vec<(Value, String)> = cases
        .into_iter()
        .map(|config| {
            let error = render(&bundle, &options(config.clone())).unwrap_err();
            assert!(error.is_configuration() && error.terminal());
            (config, error.to_string())
        })
        .collect();
    insta::assert_yaml_snapshot!("refused-configurations", answers);
}
