//! Reads where, and with whose rights, an extension is installed.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use olm_applier::account::Account;

use super::rights;
use crate::cluster_extension::account;
use crate::cluster_extension::call::call;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Existing namespace and account of an installation.
pub(crate) struct Target {
    /// Service account that writes the objects; `None` for the controller's own rights.
    pub account: Option<Account>,
}

/// Checks that the install namespace and the service account exist.
pub(crate) async fn target(pass: &Pass<'_>) -> Result<Target, Failure> {
    check_namespace(pass).await?;
    let shared = &pass.context.shared;
    let account = account::wanted(shared.accounts, pass.extension)?;
    if let Some(account) = &account {
        rights::present(&shared.client, shared.accounts, account).await?;
    }
    Ok(Target { account })
}

/// Checks the namespace that the spec names. One that is created with the extension is checked when its name is known.
async fn check_namespace(pass: &Pass<'_>) -> Result<(), Failure> {
    let Some(namespace) = &pass.extension.spec.namespace else {
        return Ok(());
    };
    // Registered before the read, so that the creation of the namespace in between wakes the extension.
    let waiters = &pass.context.namespace_waiters;
    waiters.insert(namespace, &pass.name);
    let api: Api<Namespace> = Api::all(pass.context.shared.client.clone());
    let found = call(
        format!("reading namespace \"{namespace}\""),
        api.get_metadata_opt(namespace),
    )
    .await?;
    match found {
        None => Err(Failure::NamespaceMissing(namespace.clone())),
        Some(found) if found.metadata.deletion_timestamp.is_some() => {
            Err(Failure::NamespaceGoing(namespace.clone()))
        }
        Some(_) => {
            waiters.remove(&pass.name);
            Ok(())
        }
    }
}
