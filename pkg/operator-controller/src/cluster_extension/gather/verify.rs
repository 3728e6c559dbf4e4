//! Checks rendered objects against the cluster before anything is written.

use olm_decide::extension::crd_findings::CrdChange;
use olm_decide::extension::desired_state::NewRevision;

use super::render::Rendered;
use super::target::Target;
use super::{api_services, crd_roles, crds, own_namespace, rights};
use crate::cluster_extension::failure::Failure;
use crate::cluster_extension::pass::Pass;

/// Rendered objects that passed all checks; the only value that [`act`](super::super::act) creates a revision from.
pub(crate) struct Verified<'a>(Rendered<'a>);

impl<'a> Verified<'a> {
    /// Returns the objects.
    pub(crate) fn into_rendered(self) -> Rendered<'a> {
        self.0
    }
}

/// Checks the rights of the service account, the namespace that is created with the extension, the groups and versions of API services and the safety of CRD upgrades, and adds the
/// roles for custom resources.
pub(crate) async fn verify<'a>(
    pass: &Pass<'_>,
    target: &Target,
    new: &NewRevision,
    mut rendered: Rendered<'a>,
) -> Result<Verified<'a>, Failure> {
    // Rights come first, so that one message lists all missing ones: the account also reads the CRDs.
    if let Some(account) = &target.account {
        rights::check(pass.context, account, &rendered.objects).await?;
    }
    own_namespace::check(pass, &rendered).await?;
    api_services::check(pass, &rendered.objects).await?;
    crds::check(
        pass.context,
        pass.extension,
        &rendered.objects,
        CrdChange::Upgrade,
    )
    .await?;
    // A revision from a Helm release is compared with the objects of the bundle alone.
    if new.taken_over.is_none() {
        let roles = crd_roles::roles(pass, target, &rendered.objects).await?;
        rendered.objects.extend(roles);
    }
    Ok(Verified(rendered))
}
