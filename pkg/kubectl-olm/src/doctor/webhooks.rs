//! Admission webhooks in the way: called for objects of OLM or of the controllers, required, and not answered.

use serde_json::Value;

use super::Webhook;
use crate::finding::{Finding, Severity};

/// Group of OLM's kinds.
const GROUP: &str = "olm.operatorframework.io";
/// Groups and resources that the controllers, or their Deployments, write.
const WRITTEN: [(&str, &str); 5] = [
    ("", "pods"),
    ("", "secrets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("coordination.k8s.io", "leases"),
];
/// Webhook of upstream's catalogd.
const UPSTREAM: &str = "MutatingWebhookConfiguration catalogd-mutating-webhook-configuration";

/// Checks the webhooks.
pub(crate) fn check(webhooks: &[Webhook]) -> Vec<Finding> {
    webhooks.iter().filter_map(one).collect()
}

fn one(found: &Webhook) -> Option<Finding> {
    let required = found.definition["failurePolicy"] != "Ignore";
    if !required || found.answered || !concerns(&found.definition) {
        return None;
    }
    let service = &found.definition["clientConfig"]["service"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cause = format!(
        "webhook {} is required, but Service {}/{} has no ready endpoint, so the API server refuses writes",
        text(&found.definition["name"]),
        text(&service["namespace"]),
        text(&service["name"])
    );
    let next = if found.configuration == UPSTREAM {
        "it belongs to upstream's catalogd; delete it: docs/operations.md, Moving from upstream"
    } else {
        "start the pods of the Service, or delete the configuration if its owner is gone"
    };
    Some(if covers_group(&found.definition, GROUP) {
        Finding::new(Severity::Error, &found.configuration, cause, next)
    } else {
        // A namespace selector may leave out the namespaces of the controllers and extensions.
        Finding::new(Severity::Warning, &found.configuration, cause, next)
    })
}

/// Returns true if the webhook may be called for objects of OLM or of the controllers.
pub(crate) fn concerns(webhook: &Value) -> bool {
    covers_group(webhook, GROUP)
        || WRITTEN.iter().any(|(group, resource)| {
            rules(webhook).any(|rule| has(&rule["apiGroups"], group) && has(&rule["resources"], resource))
        })
}

fn covers_group(webhook: &Value, group: &str) -> bool {
    rules(webhook).any(|rule| has(&rule["apiGroups"], group))
}

fn rules(webhook: &Value) -> impl Iterator<Item = &Value> {
    webhook["rules"].as_array().into_iter().flatten()
}

fn has(list: &Value, item: &str) -> bool {
    let mut items = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.any(|found| found == "*" || found == "*/*" || found == item)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn severity(group: &str, resource: &str, policy: &str, answered: bool) -> Option<Severity> {
        let found = Webhook {
            configuration: "ValidatingWebhookConfiguration w".to_owned(),
            definition: json!({"name": "w", "failurePolicy": policy,
                "clientConfig": {"service": {"namespace": "n", "name": "s"}},
                "rules": [{"apiGroups": [group], "resources": [resource]}]}),
            answered,
        };
        one(&found).map(|finding| finding.severity)
    }

    #[test]
    fn only_required_webhooks_that_nobody_answers() {
        assert_eq!(
            severity(GROUP, "clusterextensions", "Fail", false),
            Some(Severity::Error)
        );
        assert_eq!(severity("*", "*", "Fail", false), Some(Severity::Error));
        assert_eq!(severity("", "pods", "Fail", false), Some(Severity::Warning));
        assert_eq!(severity("", "services", "Fail", false), None);
        assert_eq!(severity(GROUP, "*", "Ignore", false), None);
        assert_eq!(severity(GROUP, "*", "Fail", true), None);
    }
}
