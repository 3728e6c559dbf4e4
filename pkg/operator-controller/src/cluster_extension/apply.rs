//! The steps from a resolved bundle to its revision; the table in [`steps`](super::steps) lists them.

use olm_api::rollback::RolloutAttempt;
use olm_decide::extension::desired_state::{NewRevision, Settings};
use olm_decide::extension::{DesiredState, History, Resolved};
use olm_rollout::Windows;

use super::act::Applied;
use super::act::revision::Record;
use super::failed::Failed;
use super::failure::Failure;
use super::gather::image::Located;
use super::gather::joint::Joint;
use super::pass::Pass;
use super::{account, act, gather};
use crate::metrics::Step;

impl Pass<'_> {
    /// Makes the newest revision the one that `resolved` asks for.
    pub(super) async fn apply(
        &self,
        resolved: &Resolved,
        history: &History,
        joint: Option<&Joint>,
        attempt: Option<&RolloutAttempt>,
    ) -> Result<Applied, Failed> {
        // Without an account that the policy requires, nothing is written.
        account::wanted(self.context.shared.accounts, self.extension)?;
        let settings = Settings::of(self.extension);
        self.windows()?;
        settings
            .soak
            .map(olm_rollout::soak)
            .transpose()
            .map_err(Failure::from)?;
        let locating = gather::image::locate(self, resolved, history);
        let mut located = self.step(Step::Locate, locating).await?;
        let (desired, namespaces) = self.desired(resolved, history, &located, settings)?;
        match desired {
            DesiredState::Current(current) => {
                let (catalog, error) = (resolved.bundle.catalog.as_ref(), located.registry_error);
                let adjusting = act::revision::adjust(self, current, catalog, error);
                Ok(self.step(Step::Adjust, adjusting).await?)
            }
            DesiredState::New(new) => {
                if let Some(failure) = located.registry_error.take() {
                    return Err(Failed::Unlocated(failure));
                }
                let attempt = attempt.map(|attempt| RolloutAttempt {
                    image: Some(located.image.to_string()),
                    ..attempt.clone()
                });
                let record = Record::Attempt(attempt.as_ref());
                let bundle = &resolved.bundle;
                tracing::info!(
                    bundle = bundle.name.as_str(),
                    version = bundle.version.as_str(),
                    catalog = bundle.catalog.as_deref(),
                    revision = new.name,
                    "rolling out"
                );
                self.write(&new, located, namespaces, history, joint, record)
                    .await
            }
        }
    }

    /// Renders the located bundle and writes it as the revision `new`, if all checks pass.
    pub(super) async fn write(
        &self,
        new: &NewRevision,
        located: Located<'_>,
        namespaces: Option<Vec<String>>,
        history: &History,
        joint: Option<&Joint>,
        record: Record<'_>,
    ) -> Result<Applied, Failed> {
        let (windows, resolved) = (self.windows()?, located.resolved);
        let target = self.step(Step::Target, gather::target::target(self)).await?;
        let pulled = self.step(Step::Pull, gather::bundle::pull(self, located)).await?;
        let rendering = gather::render::render(self, pulled, history, namespaces);
        let rendered = self.step(Step::Render, rendering).await?;
        let verifying = gather::verify::verify(self, &target, new, rendered);
        let verified = self.step(Step::Verify, verifying).await?;
        let admitting = gather::admit::admit(self, windows, new, history, verified);
        let admitted = self
            .step(Step::Admit, admitting)
            .await?
            .map_err(Failed::Waiting)?;
        if let Some(joint) = joint {
            let digest = admitted.digest.as_deref();
            if digest.is_some_and(|digest| joint.approves(digest)) {
                let awaited = joint.await_partners(self);
                awaited.map_err(|stopped| Failed::AwaitsPartners(Box::new(stopped)))?;
            } else {
                // The joint plan approves another plan, and permits nothing.
                self.check_others(resolved, history, &[]).await?;
            }
        }
        let writing = act::revision::create(self, new, history, admitted, record);
        Ok(self.step(Step::Write, writing).await?)
    }

    /// Returns the windows of `spec.rollout`; invalid ones block new revisions.
    fn windows(&self) -> Result<&Windows, Failure> {
        self.windows.as_ref().map_err(|error| error.clone().into())
    }
}
