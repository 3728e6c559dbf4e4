//! Check of the account: the controllers write the objects of an extension with the rights of the service account that its spec
//! names.

use olm_api::keys;
use olm_proof::Change;
use olm_world::Request;
use serde_json::Value;

/// Account with the rights to write objects. Extensions of the small world name this account, or one without any rights.
const INSTALLER: &str = "system:serviceaccount:ops:installer";

/// Returns a sentence for each object of an extension that the request changed without the rights of the extension's account.
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

/// Returns true for an object that an extension installs. Revisions and the Secrets with their objects belong to the controllers,
/// which write them with their own rights.
fn is_installed(kind: &str, object: &Value) -> bool {
    let marked = !object["metadata"]["labels"][keys::OWNER_NAME_LABEL].is_null();
    marked && kind != "ClusterObjectSet" && object["type"] != keys::OBJECT_DATA_SECRET_TYPE
}
