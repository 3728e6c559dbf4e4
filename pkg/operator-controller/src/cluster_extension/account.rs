//! Service account whose rights write the objects of an extension.
//!
//! The present spec decides. The revisions carry the account in annotations, since their own controller writes the objects. The
//! account can therefore change while the extension is being deleted, which is the way out when the account or its rights are gone.

use kube::Client;
use olm_api::{ClusterExtension, keys};
use olm_applier::account::{Account, AccountError};
use olm_applier::engine::impersonate;

use super::Context;
use super::failure::Failure;
use crate::ServiceAccountPolicy;

/// Returns the account in the spec; `None` if the spec has none or the policy ignores it.
///
/// # Errors
/// [`Failure`] if the name is invalid, or if the policy requires an account and the spec has none.
pub(crate) fn wanted(
    policy: ServiceAccountPolicy,
    extension: &ClusterExtension,
) -> Result<Option<Account>, Failure> {
    let named = extension.spec.service_account.as_ref();
    let named = named.and_then(|account| account.name.as_deref());
    let named = named.filter(|name| !name.is_empty());
    if policy == ServiceAccountPolicy::Ignore
        || policy == ServiceAccountPolicy::Impersonate && named.is_none()
    {
        return Ok(None);
    }
    let Some(namespace) = &extension.spec.namespace else {
        return Err(Failure::AccountNeedsNamespace);
    };
    match named {
        None => Err(Failure::AccountRequired(namespace.clone())),
        Some(name) => Ok(Some(Account::new(namespace, name)?)),
    }
}

/// Returns the client that reads the objects of the extension: with the rights of its account if the policy requires one.
pub(crate) fn reader(context: &Context, extension: &ClusterExtension) -> Result<Client, Failure> {
    let client = &context.shared.client;
    match (
        context.shared.accounts,
        wanted(context.shared.accounts, extension)?,
    ) {
        (ServiceAccountPolicy::Require, Some(account)) => {
            impersonate(client, &account).map_err(|_| AccountError::Malformed(account.user()).into())
        }
        _ => Ok(client.clone()),
    }
}

/// Returns the annotations with the account of `extension`. They do not depend on the policy, which may change.
pub(crate) fn annotations(extension: &ClusterExtension) -> [(&'static str, Option<String>); 2] {
    let named = extension.spec.service_account.as_ref();
    let name = named
        .and_then(|account| account.name.clone())
        .filter(|name| !name.is_empty());
    let account = name.zip(extension.spec.namespace.clone());
    let (name, namespace) = account.unzip();
    [
        (keys::SERVICE_ACCOUNT_NAME_ANNOTATION, name),
        (keys::SERVICE_ACCOUNT_NAMESPACE_ANNOTATION, namespace),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extension(account: &serde_json::Value) -> ClusterExtension {
        serde_json::from_value(
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "x"}, "spec": {"namespace": "ns", "serviceAccount": account,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}}}),
        )
        .unwrap()
    }

    #[test]
    fn an_account_is_used_ignored_or_demanded() {
        use ServiceAccountPolicy::{Ignore, Impersonate, Require};
        let (named, none) = (json!({"name": "a"}), json!(null));
        let used = Account::new("ns", "a").unwrap();
        for (policy, account, expected) in [
            (Impersonate, &named, Some(&used)),
            (Require, &named, Some(&used)),
            (Ignore, &named, None),
            (Impersonate, &none, None),
            (Ignore, &none, None),
        ] {
            let found = wanted(policy, &extension(account)).unwrap();
            assert_eq!(found.as_ref(), expected, "{policy:?} {account}");
        }
        let refused = wanted(Require, &extension(&none)).unwrap_err();
        assert!(refused.terminal(false));
        assert!(
            refused
                .to_string()
                .starts_with("spec.serviceAccount.name is required:")
        );
    }

    #[test]
    fn an_account_needs_a_namespace_that_exists_before() {
        use ServiceAccountPolicy::{Ignore, Impersonate, Require};
        let mut named = extension(&json!({"name": "a"}));
        named.spec.namespace = None;
        assert_eq!(wanted(Ignore, &named).unwrap(), None);
        for policy in [Impersonate, Require] {
            let refused = wanted(policy, &named).unwrap_err();
            assert!(matches!(refused, Failure::AccountNeedsNamespace) && refused.terminal(false));
        }
        assert!(annotations(&named).iter().all(|(_, value)| value.is_none()));
        named.spec.service_account = None;
        assert_eq!(wanted(Impersonate, &named).unwrap(), None);
        assert!(wanted(Require, &named).is_err());
    }

    #[test]
    fn both_annotations_or_none() {
        let values = |account: serde_json::Value| annotations(&extension(&account)).map(|(_, value)| value);
        assert_eq!(values(json!(null)), [None, None]);
        assert_eq!(values(json!({"name": ""})), [None, None]);
        assert_eq!(
            values(json!({"name": "a"})),
            [Some("a".to_owned()), Some("ns".to_owned())]
        );
    }
}
