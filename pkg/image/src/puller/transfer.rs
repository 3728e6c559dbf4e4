//! Transfer of an image from one source.

use std::{ffi::OsString, pin::pin, time::Instant};

use super::{Failure, PullJob, Puller, blocking};
use crate::{
    cache::CachedImage,
    error::Error,
    layers::Transferred,
    policy::Verdict,
    reference::CanonicalRef,
    registry::{Image, RegistryError, Session},
    unpack::Budget,
};

impl Puller {
    /// Transfers an image, and unpacks it within the time limit.
    pub(super) async fn pull_in_time(
        &self,
        session: Session,
        job: PullJob<'_>,
    ) -> Result<CachedImage, Failure> {
        let transferred = self.transfer_in_time(session, job).await?;
        let limit = self.config.limits.pull;
        let budget = Budget::until(Instant::now() + limit);
        // Stops work on other threads when this future is dropped.
        let _guard = budget.guard();
        let unpacking = self.unpack(transferred, budget.clone());
        let unpacked = tokio::time::timeout(limit, unpacking).await.unwrap_or_else(|_| {
            Err(Error::TooSlow {
                reference: job.reference.clone(),
                limit,
            })
        });
        unpacked.map_err(Failure::Final)
    }

    /// Transfers an image as long as the source makes progress, see [`crate::Limits::pull`].
    pub(super) async fn transfer_in_time(
        &self,
        session: Session,
        job: PullJob<'_>,
    ) -> Result<Transferred, Failure> {
        let least = self.config.limits.progress();
        let mut transfer = pin!(self.transfer(&session, job));
        let mut before = 0;
        loop {
            if let Ok(done) = tokio::time::timeout(least.window, &mut transfer).await {
                return done;
            }
            let received = session.received();
            if received - before < least.bytes {
                return Err(Failure::Source(RegistryError::TooSlow {
                    host: session.host().to_owned(),
                    what: format!("image {}", job.reference),
                    least,
                }));
            }
            before = received;
        }
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

    async fn unpack(&self, transferred: Transferred, budget: Budget) -> Result<CachedImage, Error> {
        let slot = self.slots.unpack().await?;
        let unpack = move || {
            let _slot = slot;
            transferred.unpack(budget)
        };
        blocking(unpack).await
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
