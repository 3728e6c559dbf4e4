//! Renewal of the certificates that operator-controller issues, without any other change.
//!
//! Every new revision renews the certificates that are due. Some extensions get none for years: their upgrade waits or is refused, their
//! package is gone, or they are rolled back. For these, the bundle of the newest revision is rendered again.

use olm_decide::extension::desired_state::{Renewal, renewal, renewal_due};
use olm_decide::extension::rollback::stays;
use olm_decide::extension::{CertificateProvider, History};

use super::account;
use super::act::Applied;
use super::act::revision::Record;
use super::failed::Failed;
use super::failure::Stopped;
use super::gather::image::Located;
use super::pass::Pass;
use super::rollback::stand_in;

impl Pass<'_> {
    /// Renews the certificates that are due although the pass was `stopped`, and returns its end. After a renewal, the next pass follows at
    /// once: a plan that waits depends on the newest revision.
    pub(super) async fn renew_meanwhile(&self, stopped: Stopped, history: &History) -> Stopped {
        if stopped.superseded {
            return stopped;
        }
        let superseded = match self.renew(history, false).await {
            Ok(renewed) => renewed.is_some(),
            Err(failed) => {
                tracing::warn!(
                    progress = ?failed.progress,
                    "the certificates of webhooks and API services are due and cannot be renewed; trying again"
                );
                failed.superseded
            }
        };
        Stopped {
            superseded,
            ..stopped
        }
    }

    /// Renews the certificates of the newest revision, if they are due and the configuration is still that of the revision. `stays` is true
    /// if a rollback keeps the newest revision.
    pub(super) async fn renew(&self, history: &History, stays: bool) -> Result<Option<Applied>, Stopped> {
        let Some(renewal) = renewal(self.extension, history, self.now).map_err(Stopped::refused)? else {
            if history
                .newest()
                .is_some_and(|newest| renewal_due(newest, self.now))
            {
                tracing::warn!(
                    "the certificates of webhooks and API services are due; they are renewed when the configuration is rolled out"
                );
            }
            return Ok(None);
        };
        let renewing = self.write_renewal(&renewal, history, stays);
        match Box::pin(renewing).await {
            Ok(applied) => Ok(Some(applied)),
            Err(failed) => Err(failed.stopped(self, &stand_in(renewal.of), history)),
        }
    }

    async fn write_renewal(
        &self,
        Renewal { of, image, new }: &Renewal<'_>,
        history: &History,
        stays: bool,
    ) -> Result<Applied, Failed> {
        account::wanted(self.context.shared.accounts, self.extension)?;
        let resolved = stand_in(of);
        let located = Located {
            resolved: &resolved,
            // The tag may point to another image now.
            image: (*image).clone(),
            provider: CertificateProvider::Own,
            registry_error: None,
        };
        let rollback = if stays {
            Some(self::stays(of))
        } else {
            of.rollback.clone()
        };
        let record = match &rollback {
            Some(rollback) => Record::Rollback(rollback),
            None => Record::Attempt(of.attempt.as_ref()),
        };
        tracing::info!(
            version = of.bundle.version.as_str(),
            revision = new.name,
            "renewing certificates"
        );
        self.write(new, located, of.namespaces.clone(), history, None, record)
            .await
    }
}
