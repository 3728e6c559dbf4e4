//! Judges stored content by the signature policy. The reference of the content counts, whatever the spec asks for now.

use std::sync::Arc;

use jiff::Timestamp;
use olm_image::CanonicalRef;
use tokio::sync::OwnedMutexGuard;

use super::{ActError, blocking, lock, pull::pull_again};
use crate::{
    controller::{Context, Loss, decide::verification_due, images::is_refusal},
    storage::{Origin, ValidCatalogName},
};

/// Image whose pull failed.
#[derive(Clone, Copy)]
pub(super) struct FailedImage<'a> {
    pub(super) requested: &'a str,
    pub(super) resolved: &'a CanonicalRef,
    pub(super) error: &'a olm_image::Error,
}

impl FailedImage<'_> {
    fn is(self, origin: &Origin) -> bool {
        origin.requested == self.requested && origin.resolved == self.resolved.to_string()
    }
}

/// Judges stored content that no pull judges, such as that of a former spec. Verifies its signatures if the policy requires them, at
/// most once per interval. Returns the refusal if the content is no longer served.
pub(in crate::controller) async fn judge_stored(
    context: &Arc<Context>,
    name: &ValidCatalogName,
) -> Option<ActError> {
    let stored = context.store.get(name)?;
    let origin = &stored.manifest().origin;
    match context.images.accepts(origin).await {
        Ok(true) => {
            context.update_history(name, |history| history.unjudged = None);
            None
        }
        Ok(false) => verify(context, name, origin).await,
        Err(error) if is_refusal(&error) => discard_rejected(context, name).await,
        Err(error) => {
            log_unjudged(context, name, &error.message());
            None
        }
    }
}

/// Stops serving stored content that the policy rejects whatever its signatures. Asks no registry. Returns the refusal if the content
/// is no longer served.
pub(in crate::controller) async fn reject_stored(
    context: &Arc<Context>,
    name: &ValidCatalogName,
) -> Option<ActError> {
    let stored = context.store.get(name)?;
    let judged = context.images.accepts(&stored.manifest().origin).await;
    judged.err().filter(is_refusal)?;
    discard_rejected(context, name).await
}

/// Stops serving the stored content and removes it, if the policy still rejects it once its lock is held. Returns the refusal if the
/// content is no longer served.
pub(super) async fn discard_rejected(context: &Arc<Context>, name: &ValidCatalogName) -> Option<ActError> {
    let guard = lock(context, name).await;
    discard_refused(context, name, guard, None).await
}

/// Pulls the image of stored content again to verify its signatures. A refusal removes the content.
async fn verify(context: &Arc<Context>, name: &ValidCatalogName, origin: &Origin) -> Option<ActError> {
    if !verification_due(&context.history_of(name), Timestamp::now()) {
        return None;
    }
    let pulled = pull_again(context, name, origin).await;
    context.update_history(name, |history| history.verification = Some(Timestamp::now()));
    match pulled {
        Ok(()) => context.update_history(name, |history| history.unjudged = None),
        Err(ActError::Interrupted) => {}
        Err(error) if context.loss(name).is_some() => return Some(error),
        Err(error) => log_unjudged(context, name, &error.to_string()),
    }
    None
}

/// Logs why stored content cannot be judged, once for the same cause in a row. The status need not have the cause: it may be about the
/// image of a newer spec.
fn log_unjudged(context: &Context, name: &ValidCatalogName, cause: &str) {
    let mut former = None;
    context.update_history(name, |history| {
        former = history.unjudged.replace(cause.to_owned());
    });
    if former.as_deref() != Some(cause) {
        tracing::warn!(
            error = cause,
            "could not judge the stored content, which is still served"
        );
    }
}

/// Judges the stored content after the pull of an image failed. `guard` is the lock of the content.
pub(super) async fn pull_failed(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    guard: OwnedMutexGuard<()>,
    failed: FailedImage<'_>,
) {
    if is_refusal(failed.error) {
        discard_refused(context, name, guard, Some(failed)).await;
        return;
    }
    // The pull was an attempt to verify the stored content if that is the same image.
    let stored = context.store.get(name);
    if stored.is_some_and(|stored| failed.is(&stored.manifest().origin)) {
        context.update_history(name, |history| history.verification = Some(Timestamp::now()));
    }
}

/// Stops serving the stored content and removes it if the policy refuses it, or if it is the image that the policy `refused`. Returns
/// the refusal if the content is no longer served. Content that the present policy accepts stays: the policy may have refused only a
/// newer image.
async fn discard_refused(
    context: &Arc<Context>,
    name: &ValidCatalogName,
    guard: OwnedMutexGuard<()>,
    refused: Option<FailedImage<'_>>,
) -> Option<ActError> {
    let stored = context.store.get(name)?;
    let origin = &stored.manifest().origin;
    let (refusal, cause) = match context.images.accepts(origin).await {
        // Signatures of another image say nothing about those of the stored one.
        Ok(false) => {
            let error = refused.filter(|refused| refused.is(origin))?.error;
            (ActError::refused(error), error.message())
        }
        Err(error) if is_refusal(&error) => (ActError::refused(&error), error.message()),
        Ok(true) | Err(_) => return None,
    };
    let image = &origin.resolved;
    tracing::warn!(
        image,
        "the signature policy does not accept the stored content, which is no longer served"
    );
    let message = format!(
        "The content of {image} is no longer served, because the signature policy refuses it: {cause}"
    );
    context.update_history(name, |history| history.loss = Some(Loss::Refused(message)));
    let removed = blocking(context, name, move |context, name| {
        let _guard = guard;
        context.store.remove(name)
    });
    if let Err(error) = removed.await {
        let error = olm_text::chain(&error);
        tracing::warn!(
            error,
            "could not remove refused content; a restart judges it again"
        );
    }
    Some(refusal)
}
