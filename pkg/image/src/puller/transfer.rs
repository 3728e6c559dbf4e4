//! Transfer of an image from one source.

use std::{ffi::OsString, time::Instant};

use super::{Failure, PullJob, Puller, blocking};
use crate::{
    cache::CachedImage,
    error::Error,
    layers::Transferred,
    policy::Verdict,
    reference::CanonicalRef,
    registry::{Image, Session},
    unpack::Budget,
};

impl Puller {
    /// Transfers and unpacks an image within the time limit.
    pub(super) async fn pull_in_time(
        &self,
        session: Session,
        job: PullJob<'_>,
    ) -> Result<CachedImage, Failure> {
        let budget = Budget::until(Instant::now() + self.config.limits.pull);
        // Stops work on other threads when this future is dropped.
        let _guard = budget.guard();
        self.in_time(job, self.transfer_and_unpack(&session, job, &budget))
            .await
    }

    /// Transfers an image within the time limit.
    pub(super) async fn transfer_in_time(
        &self,
        session: Session,
        job: PullJob<'_>,
    ) -> Result<Transferred, Failure> {
        self.in_time(job, self.transfer(&session, job)).await
    }

    async fn in_time<T>(
        &self,
        job: PullJob<'_>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = self.config.limits.pull;
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
            Err(Failure::Final(Error::TooSlow {
                reference: job.reference.clone(),
                limit,
            }))
        })
    }

    /// Transfers and verifies the layers of an image.
    async fn transfer(&self, session: &Session, job: PullJob<'_>) -> Result<Transferred, Failure> {
        let PullJob {
            owner_dir,
            reference,
            label,
            verdict,
            ..
        } = job;
        let limits = &self.config.limits;
        let image = session.image(reference.digest()).await?;
        if let Some(verdict) = verdict.filter(|verdict| verdict.requires_signatures()) {
            verify_signatures(session, verdict, reference, &image).await?;
        }
        let policy = verdict.map(Verdict::fingerprint);
        let filter = label
            .map(|label| directory(label, &image))
            .transpose()
            .map_err(Failure::Final)?;
        let for_temporary = owner_dir.clone();
        let temporary = blocking(move || for_temporary.temporary())
            .await
            .map_err(Failure::Final)?;
        let mut layers = Vec::new();
        let mut left = limits.total;
        for (index, layer) in image.layers.iter().enumerate() {
            let file = temporary.path().join(format!("layer-{index}"));
            session.download(layer, &file, limits.layer.min(left)).await?;
            left = left.saturating_sub(layer.size);
            layers.push((file, layer.size));
        }
        tracing::debug!(%reference, registry = session.host(), layers = layers.len(), "transferred");
        Ok(Transferred {
            temporary,
            layers,
            owner_dir: owner_dir.clone(),
            digest: reference.digest().clone(),
            labels: image.labels,
            filter,
            policy,
            limits: limits.clone(),
        })
    }

    async fn transfer_and_unpack(
        &self,
        session: &Session,
        job: PullJob<'_>,
        budget: &Budget,
    ) -> Result<CachedImage, Failure> {
        let transferred = self.transfer(session, job).await?;
        let slot = self.slots.unpack().await.map_err(Failure::Final)?;
        let budget = budget.clone();
        let unpack = move || {
            let _slot = slot;
            transferred.unpack(budget)
        };
        blocking(unpack).await.map_err(Failure::Final)
    }
}

/// Verifies the signatures of the image that the policy requires: of its index or of its own manifest.
async fn verify_signatures(
    session: &Session,
    verdict: &Verdict,
    reference: &CanonicalRef,
    image: &Image,
) -> Result<(), Failure> {
    let mut digests = vec![reference.digest()];
    if image.digest != *reference.digest() {
        digests.push(&image.digest);
    }
    let mut signatures = Vec::new();
    for digest in &digests {
        signatures.extend(session.signatures(digest).await?);
    }
    let refused = |source| Error::Refused {
        reference: reference.clone(),
        source: Box::new(source),
    };
    verdict
        .check(&digests, &signatures)
        .map_err(|source| Failure::Final(refused(source)))
}

/// Returns the directory that a label of the image names.
fn directory(label: &'static str, image: &Image) -> Result<(&'static str, Vec<OsString>), Error> {
    let value = image.labels.get(label).ok_or(Error::MissingLabel { label })?;
    let parts = value.split('/').filter(|part| !part.is_empty() && *part != ".");
    if value.contains('\0') || parts.clone().any(|part| part == "..") {
        return Err(Error::LabelDirectory {
            label,
            directory: value.clone(),
        });
    }
    Ok((label, parts.map(OsString::from).collect()))
}
