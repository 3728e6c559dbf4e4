//! Refusals of lists that a retry does not change.

use serde_json::Value;

use crate::custom_resources::readable_in;

/// Status codes of the API server for what it never lists, or not for this client.
const REFUSED: [u16; 4] = [403, 404, 405, 406];
/// Status code of the API server for a failure of its own, or of a conversion webhook.
pub(crate) const INTERNAL: u16 = 500;

/// Returns true if a list of the custom resources of `crd`, null for other objects, may fail with this status code for good: the API server refuses it, or the
/// webhook that converts them does not work. A removal may take away the Deployment of that webhook, and it never comes back. All
/// else passes, such as an outage of etcd.
pub(crate) fn lasts(code: u16, crd: &Value) -> bool {
    REFUSED.contains(&code) || (code == INTERNAL && readable_in(crd).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::lasts;

    fn crd(strategy: &str, versions: &Value) -> Value {
        json!({"metadata": {"name": "words.example.com"},
            "spec": {"conversion": {"strategy": strategy}, "versions": versions}})
    }

    #[test]
    fn only_refusals_and_broken_webhooks_last() {
        let one = json!([{"name": "v1", "served": true, "storage": true}]);
        let two = json!([{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true}]);
        let plain = [crd("None", &two), crd("Webhook", &one)];
        let converted = crd("Webhook", &two);
        for code in [403, 404, 405, 406] {
            assert!(
                plain.iter().all(|crd| lasts(code, crd)) && lasts(code, &converted),
                "{code}"
            );
        }
        for code in [0, 400, 401, 409, 410, 422, 429, 502, 503, 504] {
            assert!(
                plain.iter().all(|crd| !lasts(code, crd)) && !lasts(code, &converted),
                "{code}"
            );
        }
        assert!(lasts(500, &converted) && plain.iter().all(|crd| !lasts(500, crd)));
    }
}
