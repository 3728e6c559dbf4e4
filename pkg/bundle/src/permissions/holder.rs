//! Holders of rights.

use std::fmt;

use olm_text::object::text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RBAC;

/// Start of the name of a service account's user, and of the group of a namespace's accounts.
const ACCOUNT_USER: &str = "system:serviceaccount:";
const ACCOUNTS: &str = "system:serviceaccounts";
const AUTHENTICATED: &str = "system:authenticated";
/// User and group of requests without credentials; neither is in [`AUTHENTICATED`].
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Kubernetes' `ClusterRole`s for users; each one includes those before it.
const USER_ROLES: [&str; 3] = ["view", "edit", "admin"];
/// Start of the name of a label by which an aggregated role finds the roles that it includes.
const AGGREGATE_TO: &str = "aggregate-to-";

/// Kind of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HolderKind {
    /// A user.
    User,
    /// A group of users.
    Group,
    /// A service account.
    ServiceAccount,
    /// `ClusterRole`s with the labels, whose rules an aggregated role among the objects includes.
    Selector,
    /// `ClusterRole`s of others that aggregate roles with the label.
    Label,
    /// Subjects of other bindings to the `ClusterRole`.
    ClusterRole,
    /// Subjects of other bindings to the `Role`.
    Role,
}

/// Holder of rights: a subject of bindings, or all subjects of a role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Kind of the holder.
    pub kind: HolderKind,
    /// Namespace of a service account or a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the holder; the labels of a selector.
    pub name: String,
}

impl Holder {
    pub(super) fn new(kind: HolderKind, name: &str) -> Self {
        Self {
            kind,
            namespace: None,
            name: name.to_owned(),
        }
    }

    fn within(kind: HolderKind, namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            ..Self::new(kind, name)
        }
    }

    /// Returns the service account `name` of `namespace`.
    pub fn account(namespace: &str, name: &str) -> Self {
        Self::within(HolderKind::ServiceAccount, namespace, name)
    }

    /// Returns the holders of a role by its kind.
    pub(super) fn of_role(kind: &str, namespace: &str, name: &str) -> Self {
        match kind {
            "Role" => Self::within(HolderKind::Role, namespace, name),
            _ => Self::new(HolderKind::ClusterRole, name),
        }
    }

    /// Reads a subject of a binding; none if its kind is unknown to the API.
    pub(super) fn of_subject(subject: &Value) -> Option<Self> {
        let name = text(subject, "/name");
        match text(subject, "/kind") {
            "ServiceAccount" => Some(Self::account(text(subject, "/namespace"), name)),
            "Group" => Some(Self::new(HolderKind::Group, name)),
            "User" => {
                let account = name
                    .strip_prefix(ACCOUNT_USER)
                    .and_then(|account| account.split_once(':'));
                Some(match account {
                    Some((namespace, name)) => Self::account(namespace, name),
                    None => Self::new(HolderKind::User, name),
                })
            }
            _ => None,
        }
    }

    /// Returns the holders of the `ClusterRole`s that aggregate roles with a label; none if the label is not named as Kubernetes names such
    /// labels.
    pub(super) fn of_label(key: &str, value: &str) -> Option<Self> {
        let (group, name) = key.split_once('/')?;
        let role = name.strip_prefix(AGGREGATE_TO)?;
        Some(match (group, value) {
            (RBAC, "true") => Self::new(HolderKind::ClusterRole, role),
            _ => Self::new(HolderKind::Label, &format!("{key}={value}")),
        })
    }

    /// Returns the holder, and those whose rights it has as well: the groups of an account, the roles that a role includes.
    pub(super) fn including(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        let mut group = |name: &str| all.push(Self::new(HolderKind::Group, name));
        match (self.kind, self.name.as_str()) {
            (HolderKind::User, ANONYMOUS)
            | (HolderKind::Group, UNAUTHENTICATED)
            | (HolderKind::Selector | HolderKind::Label | HolderKind::Role, _) => {}
            (HolderKind::User, _) => group(AUTHENTICATED),
            (HolderKind::Group, name) => {
                if name.starts_with(&format!("{ACCOUNTS}:")) {
                    group(ACCOUNTS);
                }
                group(AUTHENTICATED);
            }
            (HolderKind::ServiceAccount, _) => {
                if let Some(namespace) = &self.namespace {
                    group(&format!("{ACCOUNTS}:{namespace}"));
                }
                group(ACCOUNTS);
                group(AUTHENTICATED);
            }
            (HolderKind::ClusterRole, role) => {
                let included = USER_ROLES.iter().position(|name| *name == role).unwrap_or(0);
                let roles = USER_ROLES.iter().take(included);
                all.extend(roles.map(|role| Self::new(HolderKind::ClusterRole, role)));
            }
        }
        all
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.namespace {
            Some(namespace) => &format!("{namespace}/{}", self.name),
            None => &self.name,
        };
        match self.kind {
            HolderKind::User => write!(f, "User {name}"),
            HolderKind::Group => write!(f, "Group {name}"),
            HolderKind::ServiceAccount => write!(f, "ServiceAccount {name}"),
            HolderKind::Selector if name.is_empty() => f.write_str("all ClusterRoles"),
            HolderKind::Selector => write!(f, "ClusterRoles labelled {name}"),
            HolderKind::Label => write!(f, "holders of ClusterRoles that aggregate {name}"),
            HolderKind::ClusterRole => write!(f, "holders of ClusterRole {name}"),
            HolderKind::Role => write!(f, "holders of Role {name}"),
        }
    }
}
