//! The way back: the steps that give an extension the content of a former revision, and those that keep it there.
//!
//! | step | does | returns |
//! |---|---|---|
//! | `restore` | reads the content of the former revision | [`Former`](gather::former::Former) |
//! | `target` | reads namespace and account | [`Target`](gather::target::Target) |
//! | `verify` | checks rights, CRDs and stored objects | [`Restorable`](gather::former::Restorable) |
//! | `write` | writes the content as a new revision | [`Applied`] |
//!
//! Approvals and windows do not hold a rollback: it returns to what was rolled out before.

use olm_api::rollback::{Rollback, RolloutAttempt};
use olm_decide::extension::desired_state::{NewRevision, Settings, next_revision};
use olm_decide::extension::{self as decide, CatalogLookups, History, Refusal, Resolved, Revision};
use olm_rollout::Direction;
use olm_status::upgrade::Upgrade;

use super::act::Applied;
use super::failure::{Failure, Stopped};
use super::pass::Pass;
use super::{account, act, gather};
use crate::metrics::Step;

impl Pass<'_> {
    /// Returns the inputs of the rollout of the resolved bundle; `None` if no catalog was read.
    pub(super) async fn attempt(
        &self,
        resolved: &Resolved,
        history: &History,
        lookups: &CatalogLookups,
    ) -> Option<RolloutAttempt> {
        let reference = resolved.bundle.image.reference().ok();
        let mut image = reference.and_then(olm_image::Reference::canonical);
        // A moved tag is a reason to try a failed version again. The registry is asked once per interval of the cache.
        if image.is_none() && decide::rollback::holds_failure(history) {
            image = gather::image::digest(self, &resolved.bundle).await.ok();
        }
        // Namespaces that just changed count as unchanged until they are worth a rollout.
        let selected = self.selected().filter(|selected| selected.settles.is_none());
        let namespaces = selected.map(|selected| selected.names.as_slice());
        decide::rollback::attempt(
            &self.extension.spec,
            resolved,
            image.as_ref(),
            namespaces,
            lookups,
        )
    }

    /// Keeps the newest revision, which has the content of a former one. Only its certificates are renewed.
    pub(super) async fn stay(&self, history: &History) -> Result<Applied, Stopped> {
        let Some(newest) = history.newest() else {
            return Err(Stopped::refused(Refusal {
                message: "there is no revision to keep".to_owned(),
                terminal: false,
            }));
        };
        if let Some(renewed) = self.renew(history, true).await? {
            return Ok(renewed);
        }
        let current = Settings::of(self.extension).adjust(newest);
        let adjusting = act::revision::adjust(self, current, None, None);
        let adjusted = self.step(Step::Adjust, adjusting).await;
        adjusted.map_err(|failure| Stopped::failed(&failure, &newest.bundle))
    }

    /// Gives the extension the content of revision `to`.
    pub(super) async fn restore(
        &self,
        to: i64,
        automatic: bool,
        history: &History,
    ) -> Result<Applied, Stopped> {
        let former = decide::rollback::former(history, to).map_err(Stopped::refused)?;
        let new = next_revision(&self.name, history).map_err(Stopped::refused)?;
        let rollback = decide::rollback::record(&self.extension.spec, history, former, automatic);
        // A bundle without recorded properties shows nothing that others could lack.
        if former.catalog_properties.is_some() {
            gather::dependents::check(self, &stand_in(former), history, &[]).await?;
        }
        tracing::info!(
            to,
            version = former.bundle.version.as_str(),
            from = rollback.from_version,
            automatic,
            revision = new.name,
            "rolling back"
        );
        let restoring = self.restore_content(&new, former, history, &rollback);
        Box::pin(restoring).await.map_err(|failure| {
            self.context.shared.metrics.retried(failure.label());
            Stopped::not_rolled_back(&failure, &refusal(&rollback, former))
        })
    }

    async fn restore_content(
        &self,
        new: &NewRevision,
        former: &Revision,
        history: &History,
        rollback: &Rollback,
    ) -> Result<Applied, Failure> {
        account::wanted(self.context.shared.accounts, self.extension)?;
        let reading = gather::former::read(self, former);
        let content = self.step(Step::Restore, reading).await?;
        let target = self.step(Step::Target, gather::target::target(self)).await?;
        let verifying = gather::former::verify(self, &target, history.newest(), content);
        let restorable = self.step(Step::Verify, verifying).await?;
        let writing = act::revision::restore(self, new, history, restorable, rollback);
        self.step(Step::Write, writing).await
    }

    /// Returns the upgrade and the rollback for the status.
    pub(super) fn rolled_back(
        &self,
        direction: Direction,
        history: &History,
        resolved: Option<&Resolved>,
        upgrade: Upgrade,
    ) -> (Upgrade, Option<olm_status::rolled_back::RolledBack>) {
        let view = decide::rollback::view(direction, self.extension, history);
        let upgrade = match resolved.filter(|resolved| resolved.deprecations.is_some()) {
            Some(resolved) => decide::rollback::upgrade(view.as_ref(), &resolved.bundle, history, upgrade),
            None => upgrade,
        };
        (upgrade, view)
    }
}

/// Sentence about a rollback that is refused, without the reason.
fn refusal(rollback: &Rollback, former: &Revision) -> String {
    let to = format!("revision {} (version {})", rollback.to, former.bundle.version);
    match &rollback.failure {
        Some(failure) => format!(
            "Version {} failed ({}) and is not rolled back to {to}",
            rollback.from_version, failure.message
        ),
        None => format!(
            "Version {} is not rolled back to {to}, as spec.rollout.rollBackTo requests",
            rollback.from_version
        ),
    }
}

/// Returns the bundle of a revision in the place of a resolved one.
pub(super) fn stand_in(revision: &Revision) -> Resolved {
    let properties = revision.catalog_properties.as_deref();
    Resolved {
        bundle: revision.bundle.clone(),
        properties: properties
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default(),
        min_kube_version: None,
        deprecations: None,
        moved_from: None,
        upgrade: Upgrade::Unknown,
        successors: Vec::new(),
        left_out: Vec::new(),
    }
}
