//! Accounts: the objects of an extension are written with the rights of the account that its spec names.

use olm_api::keys;
use olm_proof::Change;
use olm_world::Request;
use serde_json::Value;

/// Account that every extension of the small world names, if it may write at all.
const INSTALLER: &str = "system:serviceaccount:ops:installer";

/// Returns a sentence for each object of an extension that the request changed with other rights than those of its account.
pub(crate) fn overstepped(request: &Request, changes: &[Change]) -> Vec<String> {
    if request.impersonate_user.as_deref() == Some(INSTALLER) {
        return Vec::new();
    }
    let written = changes.iter().filter(|change| {
        let object = change.after.as_ref().or(change.before.as_ref());
        object.is_some_and(|object| is_installed(&change.object.kind, object))
    });
    let user = request.impersonate_user.as_deref().unwrap_or("the controller");
    written
        .map(|change| format!("{} was written with the rights of {user}", change.object))
        .collect()
}

/// Revisions and the Secrets with their objects are the controllers' own.
fn is_installed(kind: &str, object: &Value) -> bool {
    let marked = !object["metadata"]["labels"][keys::OWNER_NAME_LABEL].is_null();
    marked && kind != "ClusterObjectSet" && object["type"] != keys::OBJECT_DATA_SECRET_TYPE
}
