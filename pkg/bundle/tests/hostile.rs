//! Hostile bundles, configurations and CRDs: each one gives a result or an error, never a panic.

use std::collections::BTreeMap;

use olm_bundle::crd_safety::{self, Rules};
use olm_bundle::{Certificates, RenderOptions, parse, render};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Generates any JSON, with significant keys.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(AllNamespaces|OwnNamespace|ConversionWebhook|ValidatingAdmissionWebhook|a|\\PC{0,8}|[a-zä.*-]{0,70})"
            .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "name",
        "type",
        "supported",
        "owned",
        "spec",
        "template",
        "metadata",
        "labels",
        "annotations",
        "containers",
        "volumes",
        "volumeMounts",
        "env",
        "rules",
        "verbs",
        "apiGroups",
        "resources",
        "limits",
        "serviceAccountName",
        "deploymentName",
        "generateName",
        "conversionCRDs",
        "containerPort",
        "targetPort",
        "selector",
        "matchLabels",
        "affinity",
        "properties",
        "items",
        "required",
        "enum",
        "default",
        "schema",
        "served",
        "openAPIV3Schema",
        "additionalProperties",
        "oneOf",
        "not",
        "minimum",
        "pattern",
        "nullable",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5).prop_map(|map| map
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}

/// A value, or nothing: most of a bundle has to be well-formed for the rest to be reached.
fn or_null() -> impl Strategy<Value = Value> {
    prop_oneof![3 => Just(Value::Null), 1 => value()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bundles(
        deployment in or_null(), pod in or_null(), permission in or_null(), webhook in or_null(),
        modes in or_null(), crd in or_null(), other in or_null(), config in or_null(), gates in any::<[bool; 3]>(),
    ) {
        let modes = if modes.is_null() { json!([{"type": "AllNamespaces", "supported": true}]) } else { modes };
        let deployment = if deployment.is_null() {
            json!({"name": "d", "spec": {"template": {"spec": pod}}})
        } else {
            deployment
        };
        let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "x.v1"}, "spec": {
            "installModes": modes, "webhookdefinitions": [webhook],
            "install": {"spec": {"deployments": [deployment], "permissions": [permission]}},
        }});
        let manifests = [csv, json!({"kind": "CustomResourceDefinition", "spec": crd}),
                         json!({"kind": "ConfigMap", "metadata": other})];
        let package = br#"{"annotations":{"operators.operatorframework.io.bundle.package.v1":"x"}}"#;
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        files.insert("metadata/annotations.yaml".to_owned(), package.to_vec());
        for (at, manifest) in manifests.iter().enumerate() {
            files.insert(format!("manifests/{at}.yaml"), manifest.to_string().into_bytes());
        }
        if let Ok(bundle) = parse(&files) {
            let mut options = RenderOptions::new("ns");
            options.config = Some(config).filter(|_| gates[0]);
            options.single_own_namespace = gates[1];
            options.deployment_config = gates[2];
            options.certificates = Certificates::CertManager;
            let first = render(&bundle, &options).map_err(|error| error.to_string());
            prop_assert_eq!(first, render(&bundle, &options).map_err(|error| error.to_string()));
        }
    }

    #[test]
    fn configurations(env in or_null(), volumes in or_null(), affinity in or_null(), resources in or_null(),
                      selector in or_null(), namespace in or_null()) {
        let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "x.v1"}, "spec": {
            "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "OwnNamespace", "supported": true}],
            "install": {"spec": {"deployments": [{"name": "d", "spec": {"template": {"spec":
                {"containers": [{"name": "c"}]}}}}]}},
        }});
        let package = br#"{"annotations":{"operators.operatorframework.io.bundle.package.v1":"x"}}"#;
        let files = BTreeMap::from([
            ("metadata/annotations.yaml".to_owned(), package.to_vec()),
            ("manifests/csv.yaml".to_owned(), csv.to_string().into_bytes()),
        ]);
        let bundle = parse(&files).unwrap();
        let mut config = json!({"deploymentConfig": {}});
        for (key, value) in [("env", env), ("volumes", volumes), ("affinity", affinity), ("resources", resources),
                             ("nodeSelector", selector)] {
            if !value.is_null() {
                config["deploymentConfig"][key] = value;
            }
        }
        config["watchNamespace"] = namespace;
        let options = RenderOptions { config: Some(config), ..RenderOptions::new("ns") };
        let _ = render(&bundle, &options);
    }

    #[test]
    fn custom_resource_definitions(old in value(), new in value(), strategy in value()) {
        let crd = |schema: &Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {
            "conversion": {"strategy": strategy}, "versions": [
                {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}},
                {"name": "v1beta1", "served": true, "schema": {"openAPIV3Schema": old}},
                schema,
            ]}});
        let upstream = crd_safety::check(&crd(&old), &crd(&new), Rules::Upstream);
        let ours = crd_safety::check(&crd(&old), &crd(&new), Rules::Ours);
        prop_assert!(ours.len() <= upstream.len());
        let _ = crd_safety::check(&old, &new, Rules::Ours);
        for (old, new) in [(&old, &new), (&crd(&old), &crd(&new))] {
            let _ = (crd_safety::unserved_versions(old, new), crd_safety::migration(old, new));
        }
        prop_assert_eq!(crd_safety::check(&crd(&new), &crd(&new), Rules::Ours), vec![]);
    }
}
