//! Service account of an extension's installation. Pure.
//!
//! Invariant: every account has a name and a namespace, so no request ever impersonates an empty user.

use std::fmt;

use olm_api::{ClusterObjectSet, keys};
use olm_text::dns::{is_label, is_subdomain};

/// A service account that the controller impersonates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    namespace: String,
    name: String,
}

/// Invalid service account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// The revision has only one of the two annotations.
    #[error("revision \"{revision}\" is missing ServiceAccount {part} annotation")]
    Incomplete {
        /// Name of the revision.
        revision: String,
        /// `name` or `namespace`.
        part: &'static str,
    },
    /// The names are invalid.
    #[error("\"{0}\" is no name of a service account")]
    Malformed(String),
}

impl Account {
    /// Returns the account `name` in `namespace`.
    ///
    /// # Errors
    /// [`AccountError::Malformed`] for names that Kubernetes refuses, including empty ones.
    pub fn new(namespace: &str, name: &str) -> Result<Self, AccountError> {
        if !is_label(namespace) || !is_subdomain(name) {
            return Err(AccountError::Malformed(format!("{namespace}/{name}")));
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the account in the annotations of `set`; `None` if there is none and the controller uses its own
    /// rights.
    ///
    /// # Errors
    /// [`AccountError`] if the annotations are incomplete or invalid.
    pub fn from_annotations(set: &ClusterObjectSet) -> Result<Option<Self>, AccountError> {
        let annotation = |key: &str| set.metadata.annotations.as_ref().and_then(|all| all.get(key));
        let name = annotation(keys::SERVICE_ACCOUNT_NAME_ANNOTATION);
        let namespace = annotation(keys::SERVICE_ACCOUNT_NAMESPACE_ANNOTATION);
        let incomplete = |part| AccountError::Incomplete {
            revision: set.metadata.name.clone().unwrap_or_default(),
            part,
        };
        match (namespace, name) {
            (None, None) => Ok(None),
            (Some(namespace), Some(name)) => Self::new(namespace, name).map(Some),
            (None, Some(_)) => Err(incomplete("namespace")),
            (Some(_), None) => Err(incomplete("name")),
        }
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the user name, `system:serviceaccount:NAMESPACE:NAME`.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Returns the groups of every service account in the namespace.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".to_owned(),
        ]
    }
}

/// Formats the account for messages.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "service account \"{}\" in namespace \"{}\"",
            self.name, self.namespace
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(annotations: &serde_json::Value) -> ClusterObjectSet {
        serde_json::from_value(
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "annotations": annotations},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}}),
        )
        .unwrap()
    }

    #[test]
    fn account_names_are_validated() {
        for (namespace, name) in [
            ("", "a"),
            ("a", ""),
            ("a", "."),
            ("a.b", "c"),
            ("a", "b:c"),
            ("A", "b"),
            ("-a", "b"),
            ("a", "b\n"),
        ] {
            assert!(Account::new(namespace, name).is_err(), "{namespace}/{name}");
        }
        let account = Account::new("ns-1", "in.stall-er").unwrap();
        assert_eq!(account.user(), "system:serviceaccount:ns-1:in.stall-er");
        assert_eq!(account.groups()[1], "system:serviceaccounts:ns-1");
    }

    #[test]
    fn annotations_name_an_account_completely_or_not_at_all() {
        let (name, namespace) = (
            keys::SERVICE_ACCOUNT_NAME_ANNOTATION,
            keys::SERVICE_ACCOUNT_NAMESPACE_ANNOTATION,
        );
        assert_eq!(Account::from_annotations(&set(&json!({}))), Ok(None));
        let account = Account::from_annotations(&set(&json!({name: "a", namespace: "b"})));
        assert_eq!(account, Ok(Some(Account::new("b", "a").unwrap())));
        assert_eq!(
            Account::from_annotations(&set(&json!({name: "a"})))
                .unwrap_err()
                .to_string(),
            "revision \"x-1\" is missing ServiceAccount namespace annotation"
        );
        assert!(Account::from_annotations(&set(&json!({namespace: "a"}))).is_err());
        assert!(Account::from_annotations(&set(&json!({name: "", namespace: "b"}))).is_err());
    }
}
