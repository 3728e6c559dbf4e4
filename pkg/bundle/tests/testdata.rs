//! Our own bundles, rendered in every way there is.

use std::collections::BTreeMap;
use std::path::Path;

use olm_bundle::{
    Bundle, Certificates, OwnCertificate, RenderError, RenderOptions, findings, lint, parse, render,
    serving_certificates,
};
use serde_json::{Value, json};

#[expect(
    clippy::disallowed_methods,
    reason = "the crate does no IO, its tests read files"
)]
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn files(name: &str) -> BTreeMap<String, Vec<u8>> {
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
    files
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn bundle(name: &str) -> Bundle {
    parse(&files(name)).unwrap()
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
    let requests = serving_certificates(&bundle, "harbour");
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
fn gauge_serves_parts_of_the_api() {
    let bundle = bundle("gauge");
    assert_eq!(findings(&bundle), Vec::<String>::new());
    assert!(bundle.has_api_services());
    assert_eq!(
        render(&bundle, &RenderOptions::new("harbour"))
            .unwrap_err()
            .to_string(),
        "unsupported bundle: apiServiceDefintions are not supported"
    );
    let requests = serving_certificates(&bundle, "harbour");
    let certificate = |name: &str| OwnCertificate {
        ca_pem: format!("the CA of {name}"),
        cert_pem: "the certificate".to_owned(),
        key_pem: "the key".to_owned(),
        next: None,
    };
    let own = requests
        .iter()
        .map(|request| (request.secret_name.clone(), certificate(&request.secret_name)))
        .collect();
    let mut options = RenderOptions::new("harbour");
    options.certificates = Certificates::Own(own);
    let objects = render(&bundle, &options).unwrap();
    insta::assert_yaml_snapshot!("gauge-own", objects);
    for (name, issuer) in [
        ("gauge-cert-manager", Certificates::CertManager),
        ("gauge-service-ca", Certificates::ServiceCa),
    ] {
        options.certificates = issuer;
        let objects = render(&bundle, &options).unwrap();
        let registrations: Vec<&Value> = objects
            .iter()
            .filter(|object| object["kind"] == "APIService")
            .collect();
        insta::assert_yaml_snapshot!(name, (names(&objects), registrations));
    }
}

#[test]
fn contradictions_of_api_services_are_named() {
    let files = files("gauge");
    let broken = |from: &str, to: &str| {
        let path = "manifests/gauge.clusterserviceversion.yaml";
        let text = String::from_utf8(files[path].clone()).unwrap();
        assert!(text.contains(from));
        let mut files = files.clone();
        files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
        findings(&parse(&files).unwrap())
    };
    let version = "version: v1, kind: Level";
    let answers = [
        broken(
            "group: gauge.example.org, version: v1, kind: Level",
            "group: '', version: v1, kind: Level",
        ),
        broken("group: archive.example.org", "group: Archive"),
        broken(version, "version: '1.0', kind: Level"),
        broken(version, "version: v1/../../pods, kind: Level"),
        broken("containerPort: 5443", "containerPort: 70000"),
        broken("containerPort: 5443", "containerPort: 5444"),
        broken("deploymentName: archive", "deploymentName: nobody"),
    ];
    insta::assert_yaml_snapshot!("gauge-contradictions", answers);

    let mut files = files.clone();
    files.insert(
        "manifests/crd.yaml".to_owned(),
        br"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: levels.gauge.example.org},
            spec: {group: gauge.example.org, scope: Namespaced, names: {kind: Level, plural: levels}, versions: [
            {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}},
            {name: v2alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}]}}"
            .to_vec(),
    );
    assert_eq!(
        findings(&parse(&files).unwrap()),
        [
            "API service 'v1.gauge.example.org' has the group and version of custom resource definition \
             'levels.gauge.example.org', which the API server serves itself"
        ]
    );
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
fn invalid_configurations_are_refused_with_a_message() {
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

#[test]
fn fleet_in_several_namespaces() {
    let config = json!({"watchNamespaces": ["north", "south"], "deploymentConfig": {
        "env": [{"name": "PORT", "value": "2"}],
        "resources": {"limits": {"cpu": "1"}},
        "annotations": {"port": "open"},
    }});
    let objects = render(&bundle("fleet"), &options(config)).unwrap();
    insta::assert_yaml_snapshot!("fleet-multi", objects);
}

#[test]
fn a_selector_renders_as_the_list_of_its_namespaces() {
    let listed = options(json!({"watchNamespaces": ["north", "south"]}));
    let mut selected = options(json!({"watchNamespaceSelector": {"matchLabels": {"sea": "yes"}}}));
    selected.selected_namespaces = Some(vec!["south".to_owned(), "north".to_owned()]);
    let bundle = bundle("fleet");
    assert_eq!(
        render(&bundle, &selected).unwrap(),
        render(&bundle, &listed).unwrap()
    );
}

#[test]
fn fleet_in_each_mode() {
    let bundle = bundle("fleet");
    for (name, config) in [
        ("all", json!({})),
        ("own", json!({"watchNamespace": "harbour"})),
        ("single", json!({"watchNamespace": "bay"})),
    ] {
        let objects = render(&bundle, &options(config)).unwrap();
        insta::assert_yaml_snapshot!(format!("fleet-{name}"), names(&objects));
    }
}

#[test]
fn broken_bundles_say_all_that_is_wrong() {
    for name in ["several-faults", "webhooks", "other-kinds", "plain"] {
        let files = files(&format!("broken/{name}"));
        let errors = match parse(&files) {
            Ok(bundle) => {
                assert!(render(&bundle, &RenderOptions::new("harbour")).is_err(), "{name}");
                findings(&bundle)
            }
            Err(error) => vec![error.to_string()],
        };
        let errors: Vec<&str> = errors.iter().flat_map(|error| error.lines()).collect();
        insta::assert_yaml_snapshot!(format!("broken-{name}"), (errors, lint(&files)));
    }
}

#[test]
fn a_refusal_lists_the_permitted_configuration() {
    let allowed = |name: &str, deployment_config| {
        let options = RenderOptions {
            deployment_config,
            ..options(json!({"nonsense": 1}))
        };
        let error = render(&bundle(name), &options).unwrap_err();
        error.allowed().unwrap().to_owned()
    };
    assert_eq!(
        allowed("tides", false),
        "Known fields: watchNamespace (a namespace: any, required)"
    );
    assert_eq!(
        allowed("fleet", true),
        "Known fields: watchNamespace (a namespace: any, or absent for all); watchNamespaces (1 to 100 namespaces); \
         watchNamespaceSelector (labels of 1 to 100 namespaces); \
         deploymentConfig (affinity, annotations, env, envFrom, nodeSelector, resources, tolerations, volumeMounts, volumes)"
    );
}
