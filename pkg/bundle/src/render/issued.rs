//! Parts of rendered objects that hold certificates of operator-controller.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_text::object::{ObjectId, text};
use serde_json::{Value, json};

use super::certificates::{FINGERPRINT, digest_start};

/// Value in the place of a certificate, a key or a fingerprint.
const MASK: &str = "(issued by operator-controller)";

/// Masks the certificates that operator-controller issued: data of Secrets, `caBundle` of their clients, and fingerprints in pod
/// templates. Two renderings of one bundle are then equal, whatever keys they have. Other certificates stay.
pub fn mask_issued_certificates(objects: &mut [Value]) {
    let fingerprints: BTreeSet<String> = objects
        .iter()
        .filter_map(|object| {
            Some(
                template_annotations(object)?
                    .get(FINGERPRINT)?
                    .as_str()?
                    .to_owned(),
            )
        })
        .collect();
    if fingerprints.is_empty() {
        return;
    }
    let mut authorities = BTreeSet::new();
    for object in objects.iter_mut() {
        if ObjectId::of(object).kind != "Secret" || text(object, "/type") != "kubernetes.io/tls" {
            continue;
        }
        let chain = STANDARD.decode(text(object, "/data/tls.crt")).unwrap_or_default();
        if fingerprints.contains(&digest_start(&chain)) {
            authorities.insert(text(object, "/data/ca.crt").to_owned());
            if let Some(data) = object.get_mut("data") {
                *data = json!(MASK);
            }
        }
    }
    for object in objects.iter_mut() {
        if let Some(annotations) = object
            .pointer_mut(TEMPLATE_ANNOTATIONS)
            .and_then(Value::as_object_mut)
            && annotations.contains_key(FINGERPRINT)
        {
            annotations.insert(FINGERPRINT.to_owned(), MASK.into());
        }
        for bundle in ca_bundles(object) {
            if bundle.as_str().is_some_and(|bundle| authorities.contains(bundle)) {
                *bundle = MASK.into();
            }
        }
    }
}

const TEMPLATE_ANNOTATIONS: &str = "/spec/template/metadata/annotations";

fn template_annotations(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    object.pointer(TEMPLATE_ANNOTATIONS)?.as_object()
}

/// Returns the authorities that the API server trusts for a CRD's conversion, webhooks or an API service.
fn ca_bundles(object: &mut Value) -> Vec<&mut Value> {
    match ObjectId::of(object).kind {
        "CustomResourceDefinition" => object
            .pointer_mut("/spec/conversion/webhook/clientConfig/caBundle")
            .into_iter()
            .collect(),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => object
            .get_mut("webhooks")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .filter_map(|webhook| webhook.pointer_mut("/clientConfig/caBundle"))
            .collect(),
        "APIService" => object.pointer_mut("/spec/caBundle").into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(key: &str) -> Vec<Value> {
        let encoded = |text: &str| STANDARD.encode(format!("{text}{key}"));
        vec![
            json!({"kind": "Deployment", "spec": {"template": {"metadata": {"annotations": {
                "a": "b", FINGERPRINT: digest_start(format!("leaf{key}").as_bytes())}}}}}),
            json!({"kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "own"},
                "data": {"ca.crt": encoded("ca"), "tls.crt": encoded("leaf"), "tls.key": encoded("key")}}),
            json!({"kind": "ValidatingWebhookConfiguration",
                "webhooks": [{"clientConfig": {"caBundle": encoded("ca")}}, {"clientConfig": {"caBundle": "Zm9yZWlnbg=="}}]}),
            json!({"kind": "CustomResourceDefinition",
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": encoded("ca")}}}}}),
            json!({"kind": "APIService", "spec": {"caBundle": encoded("ca")}}),
            json!({"kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "shipped"},
                "data": {"ca.crt": "Y2E=", "tls.crt": "bGVhZg==", "tls.key": "a2V5"}}),
        ]
    }

    #[test]
    fn only_issued_certificates_are_masked() {
        let (mut one, mut other) = (objects("1"), objects("2"));
        assert_ne!(one, other);
        mask_issued_certificates(&mut one);
        mask_issued_certificates(&mut other);
        assert_eq!(one, other);
        assert_eq!(one[1]["data"], MASK);
        assert_eq!(one[2]["webhooks"][1]["clientConfig"]["caBundle"], "Zm9yZWlnbg==");
        assert_eq!(one[5], objects("")[5]);
        let mut twice = one.clone();
        mask_issued_certificates(&mut twice);
        assert_eq!(one, twice);
    }

    #[test]
    fn placeholders_are_masked_like_certificates() {
        let mut placeholders = objects("1");
        placeholders[0]["spec"]["template"]["metadata"]["annotations"][FINGERPRINT] =
            digest_start(b"").into();
        placeholders[1]["data"] = json!({"ca.crt": "", "tls.crt": "", "tls.key": ""});
        placeholders[2]["webhooks"][0]["clientConfig"]["caBundle"] = "".into();
        placeholders[3]["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = "".into();
        placeholders[4]["spec"]["caBundle"] = "".into();
        let mut real = objects("1");
        mask_issued_certificates(&mut placeholders);
        mask_issued_certificates(&mut real);
        assert_eq!(placeholders, real);
    }
}
