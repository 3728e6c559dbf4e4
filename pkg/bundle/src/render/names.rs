//! Names of generated objects. Clusters hold objects under these names, so the names never change.

use num_bigint::BigUint;
use olm_text::head;
use serde_json::Value;
use sha2::{Digest, Sha224};

use crate::json_text;
use crate::model::{Permission, Rule};

/// Maximum length of a name of [`join`], plus one if base and suffix fill it exactly.
const MAX_NAME: usize = 63;

/// Returns `base-suffix`, with the base cut so that the suffix stays complete.
pub(super) fn join(base: &str, suffix: &str) -> String {
    if base.len() + suffix.len() > MAX_NAME {
        let room = MAX_NAME.saturating_sub(suffix.len()).saturating_sub(1);
        return format!("{}-{suffix}", head(base, room));
    }
    format!("{base}-{suffix}")
}

/// Returns the name of the role and binding that grant `permission`. It depends only on the CSV's name, the service
/// account and the rules.
pub(super) fn rbac(csv_name: &str, permission: &Permission) -> String {
    let base = format!("{csv_name}-{}", account(permission));
    join(&base, &suffix(&hashed_text(permission)))
}

/// Returns the service account of a permission: pods without an account run as `default`.
pub(super) fn account(permission: &Permission) -> &str {
    if permission.service_account.is_empty() {
        "default"
    } else {
        &permission.service_account
    }
}

fn suffix(text: &str) -> String {
    BigUint::from_bytes_be(&Sha224::digest(text.as_bytes())).to_str_radix(36)
}

/// Returns the text to hash: JSON with these keys in this order, and a line feed.
fn hashed_text(permission: &Permission) -> String {
    let rules = match &permission.rules {
        None => "null".to_owned(),
        Some(rules) => format!("[{}]", rules.iter().map(rule_text).collect::<Vec<_>>().join(",")),
    };
    format!(
        "{{\"serviceAccountName\":{},\"rules\":{rules}}}\n",
        text(&permission.service_account)
    )
}

fn rule_text(rule: &Rule) -> String {
    let verbs = rule.verbs.as_deref().map_or_else(|| "null".to_owned(), list_text);
    let mut text = format!("{{\"verbs\":{verbs}");
    for (key, list) in rule.lists() {
        if !list.is_empty() {
            text.extend([",\"", key, "\":", list_text(list).as_str()]);
        }
    }
    text.push('}');
    text
}

fn list_text(list: &[String]) -> String {
    format!(
        "[{}]",
        list.iter().map(|item| text(item)).collect::<Vec<_>>().join(",")
    )
}

fn text(text: &str) -> String {
    json_text::escaped_json(&Value::from(text))
}

/// Returns the name of the Service of a deployment that serves webhooks.
pub(super) fn service_name(deployment: &str) -> String {
    join(&deployment.replace('.', "-"), "service")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_names() {
        let rule = Rule {
            verbs: Some(vec!["list".to_owned()]),
            api_groups: vec![String::new()],
            resources: vec!["nodes".to_owned()],
            ..Rule::default()
        };
        let permission = Permission {
            service_account: "syn-sa".to_owned(),
            rules: Some(vec![rule]),
        };
        assert_eq!(
            rbac("syn.v1.0.0", &permission),
            "syn.v1.0.0-syn-sa-27ok5t1p22vjjcx1p3ogelmfdxwwlq9io7x3bu5vocms"
        );
    }

    #[test]
    fn join_keeps_the_suffix() {
        assert_eq!(
            join(&"a".repeat(80), "service"),
            format!("{}-service", "a".repeat(55))
        );
        assert_eq!(join(&"a".repeat(56), "service").len(), 64);
        assert_eq!(join("aä", &"s".repeat(61)), format!("a-{}", "s".repeat(61)));
    }
}
