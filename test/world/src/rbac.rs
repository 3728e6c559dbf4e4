//! Rights: roles, bindings and impersonation.

use serde_json::Value;

use crate::request::{Request, User};
use crate::status::Refusal;
use crate::value::{items, text};
use crate::world::{Call, Target, World};

/// One question about a right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Right<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    /// Resource; `RESOURCE/SUBRESOURCE` for a subresource.
    pub resource: String,
    /// Namespace; empty for the cluster.
    pub namespace: &'a str,
    pub name: &'a str,
    /// Path of a request that is about no resource.
    pub path: &'a str,
}

const GROUP: &str = "rbac.authorization.k8s.io";

impl World {
    /// Replaces the user of a call by the one that the request impersonates.
    pub(crate) fn impersonate(&self, call: &mut Call, request: &Request) -> Result<(), Refusal> {
        let Some(name) = &request.impersonate_user else {
            return Ok(());
        };
        let account = name
            .strip_prefix("system:serviceaccount:")
            .and_then(|account| account.split_once(':'));
        let (resource, namespace, object) = match account {
            Some((namespace, account)) => ("serviceaccounts", namespace, account),
            None => ("users", "", name.as_str()),
        };
        self.allowed_to_impersonate(call, resource, namespace, object)?;
        for group in &request.impersonate_groups {
            self.allowed_to_impersonate(call, "groups", "", group)?;
        }
        let mut user = User::named(name);
        if !request.impersonate_groups.is_empty() {
            user.groups.clone_from(&request.impersonate_groups);
            user.groups.push("system:authenticated".into());
        }
        call.user = user;
        Ok(())
    }

    fn allowed_to_impersonate(
        &self,
        call: &Call,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Refusal> {
        let right = Right {
            verb: "impersonate",
            resource: resource.into(),
            namespace,
            name,
            ..Right::default()
        };
        if self.allows(&call.user, &right) {
            return Ok(());
        }
        Err(refusal(&call.user, &right))
    }

    /// Refuses a request that the user has no right to.
    pub(crate) fn authorize(&self, call: &Call, target: &Target, verb: &str) -> Result<(), Refusal> {
        let resource = &target.resource;
        let right = Right {
            verb,
            group: &resource.group,
            resource: if target.subresource.is_empty() {
                resource.plural.clone()
            } else {
                format!("{}/{}", resource.plural, target.subresource)
            },
            namespace: if resource.is("", "Namespace") {
                &target.name
            } else {
                &target.namespace
            },
            name: &target.name,
            path: "",
        };
        if self.allows(&call.user, &right) {
            return Ok(());
        }
        Err(refusal(&call.user, &right))
    }

    /// Returns true if some role grants the right to the user.
    pub(crate) fn allows(&self, user: &User, right: &Right<'_>) -> bool {
        if user.is_admin() || basic(user, right) {
            return true;
        }
        let cluster = self.store.list(GROUP, "clusterrolebindings", None);
        let granted = |binding: &Value, namespace: &str| {
            items(binding, "/subjects")
                .iter()
                .any(|subject| is_subject(subject, user, namespace))
                && self
                    .rules(binding, namespace)
                    .iter()
                    .any(|rule| grants(rule, right))
        };
        if cluster.into_iter().any(|(_, binding)| granted(binding, "")) {
            return true;
        }
        !right.namespace.is_empty()
            && self
                .store
                .list(GROUP, "rolebindings", Some(right.namespace))
                .any(|(_, binding)| granted(binding, right.namespace))
    }

    /// Returns the rules of the role that a binding refers to.
    pub(crate) fn rules(&self, binding: &Value, namespace: &str) -> &[Value] {
        let (plural, namespace) = match text(binding, "/roleRef/kind") {
            "ClusterRole" => ("clusterroles", ""),
            _ => ("roles", namespace),
        };
        let role = self.store.get(&crate::Key {
            group: GROUP.into(),
            plural: plural.into(),
            namespace: namespace.into(),
            name: text(binding, "/roleRef/name").into(),
        });
        role.map(|role| items(role, "/rules")).unwrap_or_default()
    }
}

/// Rights of every authenticated user.
fn basic(user: &User, right: &Right<'_>) -> bool {
    let authenticated = user.groups.iter().any(|group| group == "system:authenticated");
    let own_review = right.verb == "create"
        && matches!(
            (right.group, right.resource.as_str()),
            (
                "authorization.k8s.io",
                "selfsubjectaccessreviews" | "selfsubjectrulesreviews"
            ) | ("authentication.k8s.io", "selfsubjectreviews")
        );
    authenticated && (own_review || right.verb == "get" && is_public(right.path))
}

fn is_public(path: &str) -> bool {
    [
        "/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version",
    ]
    .iter()
    .any(|known| path == *known || path.starts_with(&format!("{known}/")))
}

pub(crate) fn is_subject(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = text(subject, "/name");
    match text(subject, "/kind") {
        "User" => user.name == name,
        "Group" => user.groups.iter().any(|group| group == name),
        "ServiceAccount" => {
            let home = match text(subject, "/namespace") {
                "" => namespace,
                home => home,
            };
            user.name == format!("system:serviceaccount:{home}:{name}")
        }
        _ => false,
    }
}

/// Returns true if a rule of a role grants a right.
pub(crate) fn grants(rule: &Value, right: &Right<'_>) -> bool {
    let has = |field: &str, wanted: &str| {
        let all = items(rule, field);
        all.iter().any(|value| value == "*" || value == wanted)
    };
    if !has("/verbs", right.verb) {
        return false;
    }
    if !right.path.is_empty() {
        return items(rule, "/nonResourceURLs")
            .iter()
            .filter_map(Value::as_str)
            .any(|url| {
                url == right.path
                    || url
                        .strip_suffix('*')
                        .is_some_and(|prefix| right.path.starts_with(prefix))
            });
    }
    let subresource = right
        .resource
        .split_once('/')
        .map(|(_, subresource)| format!("*/{subresource}"));
    let names = items(rule, "/resourceNames");
    has("/apiGroups", right.group)
        && (has("/resources", &right.resource) || subresource.is_some_and(|any| has("/resources", &any)))
        && (names.is_empty() || !right.name.is_empty() && names.iter().any(|name| name == right.name))
}

fn refusal(user: &User, right: &Right<'_>) -> Refusal {
    let plural = right.resource.split('/').next().unwrap_or_default();
    let place = if right.namespace.is_empty()
        || plural == "namespaces" && right.resource == plural && right.name.is_empty()
    {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", right.namespace)
    };
    let why = format!(
        "User {:?} cannot {} resource {:?} in API group {:?} {place}",
        user.name, right.verb, right.resource, right.group
    );
    Refusal::forbidden_right(right.group, plural, right.name, &why)
}
