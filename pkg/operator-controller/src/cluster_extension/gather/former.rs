//! Reads the content of a former revision, and checks that it can be rolled out again without a loss of data.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, ResourceExt as _};
use olm_api::names::Segment;
use olm_api::{CustomResourcePolicy, keys};
use olm_applier::custom_resources::HeldCrd;
use olm_applier::engine::count_custom_resources;
use olm_decide::extension::Revision;
use olm_decide::extension::crd_findings::CrdChange;
use olm_plan::dropped_crds;
use serde_json::Value;

use super::previous::previous;
use super::target::Target;
use super::{crds, rights};
use crate::cluster_extension::account;
use crate::cluster_extension::call::{call, chain};
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;
use crate::cluster_extension::revisions::RevisionStore as _;

/// Annotations that describe the content of a revision.
const CONTENT: [&str; 15] = [
    keys::BUNDLE_NAME_ANNOTATION,
    keys::BUNDLE_VERSION_ANNOTATION,
    keys::BUNDLE_RELEASE_ANNOTATION,
    keys::BUNDLE_REFERENCE_ANNOTATION,
    keys::PACKAGE_NAME_ANNOTATION,
    keys::PROPERTIES_ANNOTATION,
    keys::CATALOG_NAME_ANNOTATION,
    keys::CATALOG_PROPERTIES_ANNOTATION,
    keys::WEBHOOK_CERTIFICATES_ANNOTATION,
    keys::WEBHOOK_CERTIFICATES_RENEWAL_ANNOTATION,
    keys::INSTALL_NAMESPACE_ANNOTATION,
    keys::UPGRADEABLE_CONDITION_ANNOTATION,
    keys::REVISION_IDENTITY_ANNOTATION,
    keys::RESOLVED_IMAGE_ANNOTATION,
    keys::SELECTED_NAMESPACES_ANNOTATION,
];

/// Content of a former revision.
pub(crate) struct Former<'a> {
    /// The revision.
    pub revision: &'a Revision,
    /// Its objects.
    pub objects: Vec<Value>,
    /// Annotations that describe the content.
    pub annotations: BTreeMap<&'static str, String>,
}

/// Content that may be rolled out again; the only value that [`act`](super::super::act) restores a revision from.
pub(crate) struct Restorable<'a>(Former<'a>);

impl<'a> Restorable<'a> {
    /// Returns the content.
    pub(crate) fn into_former(self) -> Former<'a> {
        self.0
    }
}

/// Reads the content of `revision`.
pub(crate) async fn read<'a>(pass: &Pass<'_>, revision: &'a Revision) -> Result<Former<'a>, Failure> {
    let Some(found) = pass.context.revisions.content(&revision.name).await? else {
        let gone = format!("ClusterObjectSet \"{}\" is gone", revision.name);
        return Err(Failure::Former(gone));
    };
    let annotations = CONTENT.into_iter().filter_map(|key| {
        let value = found.revision.annotations().get(key)?;
        Some((key, value.clone()))
    });
    let annotations = annotations.collect();
    if let Some(missing) = found.missing.into_iter().next() {
        return Err(Failure::Former(missing));
    }
    Ok(Former {
        revision,
        objects: found.objects,
        annotations,
    })
}

/// Checks the rights of the service account, and that no data would be lost: the CRDs of the former revision must be safe for the
/// stored objects, and no CRD that holds custom resources may be deleted.
pub(crate) async fn verify<'a>(
    pass: &Pass<'_>,
    target: &Target,
    newest: Option<&Revision>,
    former: Former<'a>,
) -> Result<Restorable<'a>, Failure> {
    if let Some(account) = &target.account {
        rights::check(pass.context, account, &former.objects).await?;
    }
    crds::check(pass.context, pass.extension, &former.objects, CrdChange::Rollback).await?;
    check_dropped(pass, newest, &former).await?;
    Ok(Restorable(former))
}

/// Refuses the rollback if it would delete custom resources together with a CRD that only the newest revision has.
async fn check_dropped(
    pass: &Pass<'_>,
    newest: Option<&Revision>,
    former: &Former<'_>,
) -> Result<(), Failure> {
    let deletion = pass.extension.spec.deletion.as_ref();
    let named = deletion.and_then(|deletion| deletion.custom_resources);
    let policy = named.unwrap_or(pass.context.shared.custom_resources);
    let Some(newest) = newest.filter(|_| policy == CustomResourcePolicy::Delete) else {
        return Ok(());
    };
    let newest = previous(&pass.context.revisions, newest).await?;
    let client = account::reader(pass.context, pass.extension)?;
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    for name in dropped_crds(&newest.objects, &former.objects) {
        let Ok(segment) = Segment::new(name) else { continue };
        let what = format!("reading CustomResourceDefinition \"{name}\"");
        let Some(live) = call(what, api.get_opt(&segment)).await? else {
            continue;
        };
        let count = count_custom_resources(&client, &live).await.map_err(|source| {
            let why = chain(&source);
            Failure::CustomResourcesLost(format!("counting the custom resources of CRD \"{name}\": {why}"))
        })?;
        if count.may_hold() {
            let held = HeldCrd {
                name: name.to_owned(),
                count,
                readable_in: None,
            };
            return Err(Failure::CustomResourcesLost(format!(
                "it would delete CustomResourceDefinition {held}, because spec.deletion.customResources is Delete; set it to Keep, or \
                 delete the custom resources"
            )));
        }
    }
    Ok(())
}
