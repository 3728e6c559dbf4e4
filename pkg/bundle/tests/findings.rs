//! The findings about a bundle, in upstream's order.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn findings(webhooks: &Value) -> Vec<String> {
    let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "small.v1.0.0"}, "spec": {
        "installModes": [{"type": "AllNamespaces", "supported": true}],
        "install": {"spec": {"deployments": [{"name": "one"}]}},
        "webhookdefinitions": webhooks,
    }});
    let annotations = r#"{"annotations": {"operators.operatorframework.io.bundle.package.v1": "small"}}"#;
    let files = BTreeMap::from([
        ("metadata/annotations.yaml".to_owned(), annotations.into()),
        ("manifests/csv.json".to_owned(), csv.to_string().into_bytes()),
    ]);
    olm_bundle::findings(&olm_bundle::parse(&files).unwrap())
}

fn webhook(kind: &str, name: &str, deployment: &str) -> Value {
    json!({"type": kind, "generateName": name, "deploymentName": deployment})
}

/// Webhooks are listed by type, then by name; the deployment that is missing goes before both.
#[test]
fn webhooks_are_named_by_type() {
    let (mutating, validating) = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook");
    let found = findings(&json!([
        webhook(validating, "B", "one"),
        webhook(validating, "a", "two"),
        webhook(mutating, "C", "one"),
        webhook("Odd", "A", "one"),
        webhook("Odd", "A", "one"),
        webhook(mutating, "z", "two"),
        webhook(validating, "b", "three"),
    ]));
    let heads: Vec<String> = found
        .iter()
        .map(|finding| finding.split(": ").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        heads,
        [
            "webhook of type 'ValidatingAdmissionWebhook' with name 'b' references non-existent deployment 'three'",
            "webhook of type 'MutatingAdmissionWebhook' with name 'z' references non-existent deployment 'two'",
            "webhook of type 'ValidatingAdmissionWebhook' with name 'a' references non-existent deployment 'two'",
            "duplicate webhook 'A' of type 'Odd'",
            "webhook of type 'MutatingAdmissionWebhook' has invalid name 'C'",
            "webhook of type 'Odd' has invalid name 'A'",
            "webhook of type 'ValidatingAdmissionWebhook' has invalid name 'B'",
        ]
    );
}

/// Conversion webhooks are listed by name, then by CRD.
#[test]
fn foreign_crds_are_named_by_webhook() {
    let mut later = webhook("ConversionWebhook", "later", "one");
    later["conversionCRDs"] = json!(["b.x", "a.x"]);
    let mut first = webhook("ConversionWebhook", "first", "one");
    first["conversionCRDs"] = json!(["c.x"]);
    let found = findings(&json!([later, first]));
    let names: Vec<&str> = found
        .iter()
        .filter_map(|finding| finding.strip_prefix("conversion webhook "))
        .map(|rest| {
            rest.split(" references custom resource definition ")
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(names, ["'first'", "'later'", "'later'"]);
    assert!(
        found[1].contains("'a.x'") && found[2].contains("'b.x'"),
        "{found:?}"
    );
}
