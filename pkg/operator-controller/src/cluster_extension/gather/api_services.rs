//! Refuses a bundle that would take over groups and versions which another server serves.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Api, ResourceExt as _};
use olm_api::keys;
use olm_api::names::Segment;
use olm_text::object::ObjectId;
use serde_json::Value;

use crate::cluster_extension::account;
use crate::cluster_extension::call::call;
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Checks that no `APIService` among `objects` exists for another server. The phase that registers them is late, so the
/// collision would else be found after the server was rolled out.
pub(super) async fn check(pass: &Pass<'_>, objects: &[Value]) -> Result<(), Failure> {
    let names = objects
        .iter()
        .map(ObjectId::of)
        .filter(|id| (id.group, id.kind) == ("apiregistration.k8s.io", "APIService"))
        .filter_map(|id| Segment::new(id.name).ok());
    for name in names {
        let api: Api<APIService> = Api::all(account::reader(pass.context, pass.extension)?);
        let what = format!("reading APIService \"{}\"", &*name);
        let Some(found) = call(what, api.get_opt(&name)).await? else {
            continue;
        };
        if found.labels().get(keys::OWNER_NAME_LABEL) != Some(&pass.name) {
            return Err(Failure::ApiServiceTaken {
                name: found.name_any(),
                server: server(&found),
            });
        }
    }
    Ok(())
}

/// Returns what serves the group and version, as a phrase.
fn server(found: &APIService) -> String {
    let service = found.spec.as_ref().and_then(|spec| spec.service.as_ref());
    match service {
        Some(service) => format!(
            "Service {}/{}",
            service.namespace.as_deref().unwrap_or_default(),
            service.name.as_deref().unwrap_or_default()
        ),
        None => "the API server itself, built in or for a CustomResourceDefinition".to_owned(),
    }
}
