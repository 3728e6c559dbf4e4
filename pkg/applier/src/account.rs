//! The service account that an extension is installed with. Pure.
//!
//! Invariant: there is no account without a name and a namespace, so no request ever asks to be an empty user.

use std::fmt;

use olm_api::{ClusterObjectSet, keys};
use olm_text::dns::{is_label, is_subdomain};

/// A service account that the controller acts as.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    namespace: String,
    name: String,
}

/// What names no service account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// A revision says whose rights to use, but not all of it.
    #[error("revision \"{revision}\" is missing ServiceAccount {part} annotation")]
    Incomplete {
        /// Name of the revision.
        revision: String,
        /// `name` or `namespace`.
        part: &'static str,
    },
    /// It cannot be the name of one.
    #[error("\"{0}\" is no name of a service account")]
    Malformed(String),
}

impl Account {
    /// The account `name` in `namespace`.
    ///
    /// # Errors
    /// [`AccountError::Malformed`] for what Kubernetes would not take as the names, the empty text included.
    pub fn new(namespace: &str, name: &str) -> Result<Self, AccountError> {
        if !is_label(namespace) || !is_subdomain(name) {
            return Err(AccountError::Malformed(format!("{namespace}/{name}")));
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The account that `set` names in its annotations; `None` when it names none and the controller acts as itself.
    ///
    /// # Errors
    /// [`AccountError`] when only a part is named, or what is named cannot be.
    pub fn of(set: &ClusterObjectSet) -> Result<Option<Self>, AccountError> {
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

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name as a user, `system:serviceaccount:NAMESPACE:NAME`.
    #[must_use]
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups that every service account of the namespace is in.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".to_owned(),
        ]
    }
}

/// As messages name it.
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
    fn no_account_has_an_empty_or_odd_name() {
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
    fn a_revision_names_all_of_it_or_nothing() {
        let (name, namespace) = (
            keys::SERVICE_ACCOUNT_NAME_ANNOTATION,
            keys::SERVICE_ACCOUNT_NAMESPACE_ANNOTATION,
        );
        assert_eq!(Account::of(&set(&json!({}))), Ok(None));
        let both = Account::of(&set(&json!({name: "a", namespace: "b"})));
        assert_eq!(both, Ok(Some(Account::new("b", "a").unwrap())));
        assert_eq!(
            Account::of(&set(&json!({name: "a"}))).unwrap_err().to_string(),
            "revision \"x-1\" is missing ServiceAccount namespace annotation"
        );
        assert!(Account::of(&set(&json!({namespace: "a"}))).is_err());
        assert!(Account::of(&set(&json!({name: "", namespace: "b"}))).is_err());
    }
}
