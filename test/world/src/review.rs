//! Reviews: questions about rights and identity, which are not stored.

use serde_json::{Value, json};

use crate::rbac::{self, Right};
use crate::request::User;
use crate::status::Refusal;
use crate::value::{as_map, items, text};
use crate::world::{Call, Target, World};

impl World {
    /// Answers a review.
    pub(crate) fn review(&self, call: &Call, target: &Target, mut review: Value) -> Result<Value, Refusal> {
        crate::decode::check(&mut review, target)?;
        let status = match target.resource.kind.as_str() {
            "SelfSubjectAccessReview" => self.access(&call.user, &review),
            "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                let mut groups: Vec<String> = items(&review, "/spec/groups")
                    .iter()
                    .filter_map(|group| group.as_str().map(ToOwned::to_owned))
                    .collect();
                let name = text(&review, "/spec/user").to_owned();
                groups.sort_unstable();
                self.access(&User { name, groups }, &review)
            }
            "SelfSubjectRulesReview" => self.own_rules(&call.user, text(&review, "/spec/namespace")),
            "SelfSubjectReview" => {
                json!({"userInfo": {"username": call.user.name, "groups": call.user.groups}})
            }
            // There are no tokens.
            _ => json!({"user": {}}),
        };
        let map = as_map(&mut review);
        map.entry("metadata").or_insert_with(|| json!({}));
        map.insert("status".into(), status);
        Ok(review)
    }

    fn access(&self, user: &User, review: &Value) -> Value {
        let asked = |name: &str| text(review, &format!("/spec/resourceAttributes/{name}"));
        let subresource = asked("subresource");
        let right = if review.pointer("/spec/nonResourceAttributes").is_some() {
            Right {
                verb: text(review, "/spec/nonResourceAttributes/verb"),
                path: text(review, "/spec/nonResourceAttributes/path"),
                ..Right::default()
            }
        } else {
            Right {
                verb: asked("verb"),
                group: asked("group"),
                resource: if subresource.is_empty() {
                    asked("resource").to_owned()
                } else {
                    format!("{}/{subresource}", asked("resource"))
                },
                namespace: asked("namespace"),
                name: asked("name"),
                path: "",
            }
        };
        json!({"allowed": self.allows(user, &right)})
    }

    fn own_rules(&self, user: &User, namespace: &str) -> Value {
        const GROUP: &str = "rbac.authorization.k8s.io";
        let mut found = Vec::new();
        if user.is_admin() {
            found.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
            found.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        }
        let bindings = self
            .store
            .list(GROUP, "clusterrolebindings", None)
            .map(|(_, binding)| (binding, ""))
            .chain(
                self.store
                    .list(GROUP, "rolebindings", Some(namespace))
                    .map(|(_, binding)| (binding, namespace)),
            );
        for (binding, home) in bindings {
            let subjects = items(binding, "/subjects");
            if subjects
                .iter()
                .any(|subject| rbac::is_subject(subject, user, home))
            {
                found.extend_from_slice(self.rules(binding, home));
            }
        }
        let (paths, resources): (Vec<Value>, Vec<Value>) = found
            .into_iter()
            .partition(|rule| rule.get("nonResourceURLs").is_some());
        json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
    }
}
