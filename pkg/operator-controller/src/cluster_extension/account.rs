//! Whose rights an extension's objects are written with.
//!
//! The extension's spec decides, always as it is now; its revisions carry the answer in annotations, as their own controller does
//! the writing. So the answer can still be changed while the extension is being deleted: that is the way out when the account or its
//! rights are gone.

use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::account::{Account, AccountError};
use olm_applier::engine::acting_as;
use serde_json::json;

use super::Context;
use super::call::{CallError, call};
use super::failure::Failure;
use crate::ServiceAccountPolicy;

/// The account that `extension` names; `None` when it names none, or when the policy is to ignore it.
///
/// # Errors
/// [`Failure`] when the name cannot be one, or when there is none and the policy demands one.
pub(crate) fn wanted(
    policy: ServiceAccountPolicy,
    extension: &ClusterExtension,
) -> Result<Option<Account>, Failure> {
    let named = extension.spec.service_account.as_ref();
    let named = named.and_then(|account| account.name.as_deref());
    let namespace = &extension.spec.namespace;
    match (policy, named.filter(|name| !name.is_empty())) {
        (ServiceAccountPolicy::Ignore, _) | (ServiceAccountPolicy::Impersonate, None) => Ok(None),
        (ServiceAccountPolicy::Require, None) => Err(Failure::AccountRequired(namespace.clone())),
        (_, Some(name)) => Ok(Some(Account::new(namespace, name)?)),
    }
}

/// The client to read objects with that the extension is about: with the rights of its account where the policy demands one.
pub(crate) fn reader(context: &Context, extension: &ClusterExtension) -> Result<Client, Failure> {
    let client = &context.shared.client;
    match (
        context.shared.accounts,
        wanted(context.shared.accounts, extension)?,
    ) {
        (ServiceAccountPolicy::Require, Some(account)) => {
            acting_as(client, &account).map_err(|_| AccountError::Malformed(account.user()).into())
        }
        _ => Ok(client.clone()),
    }
}

/// The annotations that name the account of `extension`, whatever the policy: it may change.
pub(crate) fn annotations(extension: &ClusterExtension) -> [(&'static str, Option<String>); 2] {
    let named = extension.spec.service_account.as_ref();
    let name = named
        .and_then(|account| account.name.clone())
        .filter(|name| !name.is_empty());
    let namespace = name.is_some().then(|| extension.spec.namespace.clone());
    [
        (keys::SERVICE_ACCOUNT_NAME_ANNOTATION, name),
        (keys::SERVICE_ACCOUNT_NAMESPACE_ANNOTATION, namespace),
    ]
}

/// Makes the revisions name the account that the spec names now.
pub(crate) async fn follow(
    context: &Context,
    extension: &ClusterExtension,
    revisions: &[ClusterObjectSet],
) -> Result<(), CallError> {
    let wanted = annotations(extension);
    let differs = |revision: &ClusterObjectSet| {
        wanted
            .iter()
            .any(|(key, value)| revision.annotations().get(*key) != value.as_ref())
    };
    // Without its finalizer nothing of a revision is left that anybody could write.
    let held = |revision: &ClusterObjectSet| {
        revision
            .finalizers()
            .iter()
            .any(|f| f == keys::TEARDOWN_FINALIZER)
    };
    let api: Api<ClusterObjectSet> = Api::all(context.shared.client.clone());
    for revision in revisions.iter().filter(|r| held(r) && differs(r)) {
        let name = revision.name_any();
        let map: serde_json::Map<_, _> = wanted
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let patch = json!({"metadata": {"uid": revision.metadata.uid, "annotations": map}});
        let params = PatchParams {
            field_manager: Some(keys::EXTENSION_FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let what = format!("naming the service account of ClusterObjectSet \"{name}\"");
        match call(what, api.patch_metadata(&name, &params, &Patch::Merge(&patch))).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
