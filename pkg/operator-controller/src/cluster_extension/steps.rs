//! One pass over an extension: the steps in order, each with the value that the step before returned.
//!
//! | step | does | returns |
//! |---|---|---|
//! | `observe` | reads the revisions | [`Observed`](gather::revisions::Observed) |
//! | `maintain` | writes what the revisions need whatever bundle is resolved | [`Maintained`](act::maintain::Maintained) |
//! | `lookup` | reads the catalogs | [`CatalogLookups`](decide::CatalogLookups) |
//! | `resolve` | decides the bundle | [`Resolved`] |
//! | `dependencies` | reads what the bundle needs of others | |
//! | `locate` | reads the digest of the bundle's image | [`Located`](gather::image::Located) |
//! | `compare` | decides between the newest and a new revision | [`DesiredState`] |
//! | `target` | reads namespace and account | [`Target`](gather::target::Target) |
//! | `pull` | reads the image | [`Pulled`](gather::bundle::Pulled) |
//! | `render` | renders the objects | [`Rendered`](gather::render::Rendered) |
//! | `verify` | checks rights and CRDs | [`Verified`](gather::verify::Verified) |
//! | `write` | writes a new revision | [`Applied`] |
//! | `adjust` | writes the changes of the newest revision | [`Applied`] |
//!
//! A pass that ends early is [`Stopped`]. Only [`Applied`] is reported as the state that the spec asks for.

use std::time::Duration;

use olm_runtime::Feature;
use olm_runtime::workers::without_worker;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use olm_status::upgrade::Upgrade;

use super::act::Applied;
use super::act::maintain::Maintained;
use super::call::chain;
use super::decide::desired_state::deadline;
use super::decide::identity::config;
use super::decide::{DesiredState, History, RenderInputs, Resolved};
use super::failure::{Failure, Stopped};
use super::gather::release::RevisionsError;
use super::pass::Pass;
use super::{account, act, decide, gather};
use crate::metrics::Step;

/// Result of a pass, from which the reconcile writes the status and chooses its next time.
pub(crate) struct Report {
    /// Input of the status.
    pub outcome: Outcome,
    /// Failure of the pass, with the delays for its retry.
    pub stopped: Option<Stopped>,
    /// True if some read or deletion failed that does not stop the pass; the next pass repeats it.
    pub incomplete: bool,
}

impl Pass<'_> {
    /// Runs the steps in order, up to the first that ends the pass early.
    pub(crate) async fn run(&self) -> Report {
        let Maintained { mut history, pruned } = match self.revisions().await {
            Ok(maintained) => maintained,
            Err(error) => return unreadable(&error),
        };
        let spec = &self.extension.spec;
        let reading = without_worker(gather::catalogs::lookups(self.context, spec));
        let lookups = self.step(Step::Lookup, reading).await;
        let releases = self.context.features.enabled(Feature::BundleReleaseSupport);
        let resolving = async { decide::resolve(spec, &history, &lookups, releases) };
        let resolved = self.step(Step::Resolve, resolving).await;
        let end = match &resolved {
            Ok(resolved) => Box::pin(self.roll_out(resolved, &history)).await,
            Err(refusal) => {
                self.context.shared.metrics.retried("resolution");
                Err(Stopped::refused(refusal.clone()))
            }
        };
        if let Ok(applied) = &end {
            applied.record(&mut history);
        }
        self.report(&history, resolved.ok(), &lookups, end, pruned)
    }

    async fn revisions(&self) -> Result<Maintained, RevisionsError> {
        let observed = self.step(Step::Observe, gather::revisions::observe(self)).await?;
        self.step(Step::Maintain, act::maintain::maintain(self, observed))
            .await
    }

    /// Goes from a resolved bundle to a revision that holds it.
    async fn roll_out(&self, resolved: &Resolved, history: &History) -> Result<Applied, Stopped> {
        let checking = gather::dependencies::check(self, resolved, history);
        self.step(Step::Dependencies, checking).await?;
        let applying = Box::pin(self.apply(resolved, history));
        applying.await.map_err(|failed| match failed {
            Failed::Refused(refusal) => Stopped::refused(refusal),
            Failed::Failure(failure) => {
                self.context.shared.metrics.retried(failure.label());
                Stopped::failed(&failure, &resolved.bundle)
            }
            Failed::Unlocated(failure) => {
                self.context.shared.metrics.retried(failure.label());
                let stopped = Stopped::failed(&failure, &resolved.bundle);
                stopped.while_image_is_unavailable(history.newest())
            }
        })
    }

    async fn apply(&self, resolved: &Resolved, history: &History) -> Result<Applied, Failed> {
        // Without an account that the policy requires, nothing is written.
        account::wanted(self.context.shared.accounts, self.extension)?;
        let locating = gather::image::locate(self, resolved, history);
        let mut located = self.step(Step::Locate, locating).await?;
        let config = config(self.extension);
        let inputs = RenderInputs {
            bundle: &resolved.bundle,
            canonical_image: &located.image,
            namespace: &self.extension.spec.namespace,
            config: config.as_ref(),
            provider: located.provider,
        };
        let moved_from = resolved.moved_from.as_ref();
        let minutes = deadline(self.extension);
        match decide::desired_state(&self.name, minutes, &inputs, moved_from, history, self.now)
            .map_err(Failed::Refused)?
        {
            DesiredState::Current(current) => {
                let adjusting = act::revision::adjust(self, current, located);
                Ok(self.step(Step::Adjust, adjusting).await?)
            }
            DesiredState::New(new) => {
                if let Some(failure) = located.registry_error.take() {
                    return Err(Failed::Unlocated(failure));
                }
                let bundle = &resolved.bundle;
                tracing::info!(
                    bundle = bundle.name.as_str(),
                    version = bundle.version.as_str(),
                    catalog = bundle.catalog.as_deref(),
                    revision = new.name,
                    "rolling out"
                );
                let target = self.step(Step::Target, gather::target::target(self)).await?;
                let pulled = self.step(Step::Pull, gather::bundle::pull(self, located)).await?;
                let rendering = gather::render::render(self, pulled, history);
                let rendered = self.step(Step::Render, rendering).await?;
                let verifying = gather::verify::verify(self, &target, rendered);
                let verified = self.step(Step::Verify, verifying).await?;
                let writing = act::revision::create(self, &new, verified);
                Ok(self.step(Step::Write, writing).await?)
            }
        }
    }

    /// Turns the end of the pass into the input of the status.
    fn report(
        &self,
        history: &History,
        resolved: Option<Resolved>,
        lookups: &decide::CatalogLookups,
        end: Result<Applied, Stopped>,
        pruned: bool,
    ) -> Report {
        let successors = resolved
            .as_ref()
            .map(|resolved| resolved.successors.clone())
            .unwrap_or_default();
        self.context.note(self.extension, history, successors);
        let unread_tag = end.as_ref().is_ok_and(|applied| self.warn_of_registry(applied));
        let left_out = resolved.as_ref().map(|resolved| resolved.left_out.as_slice());
        let catalogs = lookups.degraded(left_out.unwrap_or_default());
        let (deprecations, upgrade) = match resolved {
            Some(resolved) => (resolved.deprecations, resolved.upgrade),
            None => (None, decide::unresolved(history)),
        };
        let (progress, stopped) = match end {
            Ok(_) => (Progress::Mirrored, None),
            Err(stopped) => (stopped.progress.clone(), Some(stopped)),
        };
        Report {
            outcome: Outcome {
                revisions: history.view(),
                progress,
                deprecations,
                upgrade,
                catalogs,
            },
            stopped,
            incomplete: unread_tag || lookups.incomplete() || !pruned,
        }
    }

    /// Counts and logs a tag that the registry did not answer for. Returns false if there is none.
    fn warn_of_registry(&self, applied: &Applied) -> bool {
        let Some(failure) = applied.registry_error() else {
            return false;
        };
        self.context.shared.metrics.retried(failure.label());
        tracing::warn!(
            error = chain(failure),
            "the bundle's image cannot be found; the installed revision stays"
        );
        true
    }
}

/// Reason why [`Pass::apply`] did not reach [`Applied`].
enum Failed {
    /// No revision can hold the bundle.
    Refused(decide::Refusal),
    /// A step failed.
    Failure(Failure),
    /// The spec needs a new revision, and the registry does not answer for the image of its bundle.
    Unlocated(Failure),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Report of a pass that could not read or maintain the revisions.
fn unreadable(error: &RevisionsError) -> Report {
    let text = chain(error);
    tracing::warn!(error = text, "revisions cannot be read");
    Report {
        outcome: Outcome {
            revisions: Revisions::Unreadable(text.clone()),
            progress: Progress::Mirrored,
            deprecations: None,
            upgrade: Upgrade::Unknown,
            catalogs: None,
        },
        stopped: Some(Stopped {
            progress: Progress::Retrying(text),
            max_delay: None,
            min_delay: Duration::ZERO,
            superseded: false,
        }),
        incomplete: false,
    }
}
