//! One pass over an extension: the steps in order, each with the value that the step before returned.
//!
//! | step | does | returns |
//! |---|---|---|
//! | `namespaces` | lists the namespaces that the configuration selects by labels | [`Selected`](super::pass::Selected) |
//! | `observe` | reads the revisions | [`Observed`](gather::revisions::Observed) |
//! | `maintain` | writes what the revisions need whatever bundle is resolved | [`Maintained`](act::maintain::Maintained) |
//! | `lookup` | reads the catalogs | [`CatalogLookups`](decide::CatalogLookups) |
//! | `resolve` | decides the bundle | [`Resolved`] |
//! | `dependencies` | reads what the bundle needs of others, and others of the installed one | |
//! | `locate` | reads the digest of the bundle's image | [`Located`](gather::image::Located) |
//! | `compare` | decides between the newest and a new revision | [`DesiredState`](decide::DesiredState) |
//! | `target` | reads namespace and account | [`Target`](gather::target::Target) |
//! | `pull` | reads the image | [`Pulled`](gather::bundle::Pulled) |
//! | `render` | renders the objects | [`Rendered`](gather::render::Rendered) |
//! | `verify` | checks rights and CRDs | [`Verified`](gather::verify::Verified) |
//! | `admit` | compares with the newest revision, `spec.rollout` and the installed operator's condition | [`Admitted`](gather::admit::Admitted) |
//! | `write` | writes a new revision | [`Applied`] |
//! | `adjust` | writes the changes of the newest revision | [`Applied`] |
//!
//! A pass over an extension that rolls back has other steps after `resolve`; see [`rollback`](super::rollback). A pass that ends early
//! renews the certificates that are due; see [`renewal`](super::renewal).
//!
//! A pass over a paused extension only reads its revisions and tells them to pause.
//!
//! A pass that ends early is [`Stopped`]. Only [`Applied`] is reported as the state that the spec asks for.

use jiff::Timestamp;
use olm_api::rollback::RolloutAttempt;
use olm_decide::extension::joint::Move;
use olm_decide::extension::{self as decide, History, Resolved};
use olm_rollout::{Direction, State};
use olm_runtime::Feature;
use olm_runtime::workers::without_worker;
use olm_status::cluster_extension::{Outcome, Progress, Revisions};
use olm_status::upgrade::Upgrade;

use super::act::Applied;
use super::act::maintain::Maintained;
use super::call::chain;
use super::delays::Delays;
use super::failed::Failed;
use super::failure::Stopped;
use super::gather::joint::Joint;
use super::gather::release::RevisionsError;
use super::gather::revisions::Takeover;
use super::pass::Pass;
use super::{act, gather};
use crate::metrics::Step;

/// Why nothing is known to be installed for a paused extension with a Helm release.
const HELM_WHILE_PAUSED: &str = "the extension is installed by a Helm release of upstream's former runtime, which is taken over when the \
                                 extension is resumed; its version is read then";

/// Result of a pass, from which the reconcile writes the status and chooses its next time.
pub(crate) struct Report {
    /// Input of the status.
    pub outcome: Outcome,
    /// Failure of the pass, with the delays for its retry.
    pub stopped: Option<Stopped>,
    /// True if some read or deletion failed that does not stop the pass; the next pass repeats it.
    pub incomplete: bool,
    /// State of the windows of `spec.rollout`; a pass follows its change.
    pub windows: State,
    /// Time at which the support of the installed version changes; a pass follows.
    pub support_change: Option<Timestamp>,
}

impl Pass<'_> {
    /// Runs the steps in order, up to the first that ends the pass early.
    pub(crate) async fn run(&self) -> Report {
        if self.is_paused() {
            return self.pause().await.unwrap_or_else(|error| self.unreadable(&error));
        }
        let Maintained { mut history, pruned } = match self.revisions().await {
            Ok(maintained) => maintained,
            Err(error) => return self.unreadable(&error),
        };
        let spec = &self.extension.spec;
        let reading = without_worker(gather::catalogs::lookups(self.context, spec));
        let lookups = self.step(Step::Lookup, reading).await;
        let releases = self.context.features.enabled(Feature::BundleReleaseSupport);
        let resolving = async {
            decide::desired_state::check_name(&self.name, &history)?;
            decide::resolve(spec, &history, &lookups, releases)
        };
        let resolved = self.step(Step::Resolve, resolving).await;
        let next = match &resolved {
            Ok(resolved) => self.attempt(resolved, &history, &lookups).await,
            Err(_) => None,
        };
        let direction = decide::rollback::direction(self.extension, &history, next.as_ref());
        if direction != Direction::Forward {
            // An extension that goes back takes no part in a joint plan.
            self.context.joint_moves.remove(&self.name);
        }
        let end = match direction {
            Direction::Forward => self.forward(&resolved, &history, next.as_ref()).await,
            Direction::StayRequested | Direction::StayFailed => self.stay(&history).await,
            Direction::Restore { to, automatic } => {
                match Box::pin(self.restore(to, automatic, &history)).await {
                    // A changed source or spec may mend what cannot be rolled back.
                    Err(refused) if automatic => {
                        let forward = self.forward(&resolved, &history, next.as_ref()).await;
                        let waits = |end: &Stopped| end.waiting.is_some() || end.superseded;
                        match forward {
                            Ok(applied) if !applied.is_unchanged() => Ok(applied),
                            Err(stopped) if waits(&stopped) => Err(stopped),
                            _ => Err(refused),
                        }
                    }
                    end => end,
                }
            }
        };
        let end = match end {
            Ok(applied) => {
                applied.record(&mut history);
                Ok(applied)
            }
            // An extension that stays has tried to renew them.
            Err(stopped) if matches!(direction, Direction::StayRequested | Direction::StayFailed) => {
                Err(stopped)
            }
            Err(stopped) => Err(self.renew_meanwhile(stopped, &history).await),
        };
        self.report(direction, &history, resolved.ok(), &lookups, end, pruned)
    }

    /// Goes on to the bundle that was resolved.
    async fn forward(
        &self,
        resolved: &Result<Resolved, decide::Refusal>,
        history: &History,
        attempt: Option<&RolloutAttempt>,
    ) -> Result<Applied, Stopped> {
        match resolved {
            Ok(resolved) => Box::pin(self.roll_out(resolved, history, attempt)).await,
            Err(refusal) => {
                self.context.joint_moves.remove(&self.name);
                self.context.shared.metrics.retried("resolution");
                Err(Stopped::refused(refusal.clone()))
            }
        }
    }

    /// Pauses the revisions, so that their objects are observed only.
    async fn pause(&self) -> Result<Report, RevisionsError> {
        let observed = self.step(Step::Observe, gather::revisions::observe(self)).await?;
        let pausing = act::pause::follow(&self.context.revisions, &observed.revisions, true);
        self.step(Step::Maintain, pausing).await?;
        let revisions = if matches!(observed.takeover, Takeover::None) {
            let history = History::read(&observed.revisions);
            self.context.note(self.extension, &history, Vec::new());
            history.view()
        } else {
            // The operator runs, and no revision says so yet.
            self.context
                .note_unread(self.extension, HELM_WHILE_PAUSED.to_owned());
            Revisions::Unreadable(HELM_WHILE_PAUSED.to_owned())
        };
        let windows = self.window_state();
        let text = format!(
            "Paused by spec.rollout.paused: nothing is resolved, applied or repaired. Resume with: kubectl olm resume {}",
            self.name
        );
        Ok(Report {
            outcome: Outcome {
                revisions,
                progress: Progress::Paused(text),
                deprecations: None,
                upgrade: Upgrade::Unknown,
                support: None,
                catalogs: None,
                pending: None,
                windows: decide::admission::window_status(windows),
                rolled_back: None,
            },
            stopped: None,
            incomplete: false,
            windows,
            support_change: None,
        })
    }

    /// Returns the state of the windows; invalid ones count as none, since the pass reports them.
    fn window_state(&self) -> State {
        let windows = self.windows.as_ref();
        windows.map_or(State::Unrestricted, |windows| windows.state(self.now))
    }

    async fn revisions(&self) -> Result<Maintained, RevisionsError> {
        let observed = self.step(Step::Observe, gather::revisions::observe(self)).await?;
        let read = matches!(observed.takeover, Takeover::None).then(|| History::read(&observed.revisions));
        let maintained = self
            .step(Step::Maintain, act::maintain::maintain(self, observed))
            .await;
        if let (Err(_), Some(history)) = (&maintained, &read) {
            // A failed write hides nothing that the verdict on cluster upgrades needs.
            self.context.note(self.extension, history, Vec::new());
        }
        maintained
    }

    /// Goes from a resolved bundle to a revision that holds it.
    async fn roll_out(
        &self,
        resolved: &Resolved,
        history: &History,
        attempt: Option<&RolloutAttempt>,
    ) -> Result<Applied, Stopped> {
        let rolling_out = async {
            let joint = Box::pin(self.permitted(resolved, history)).await?;
            Box::pin(self.apply(resolved, history, joint.as_ref(), attempt)).await
        };
        rolling_out.await.map_err(|failed: Failed| {
            if !matches!(failed, Failed::AwaitsPartners(_)) {
                self.context.joint_moves.unset_ready(&self.name);
            }
            failed.stopped(self, resolved, history)
        })
    }

    /// Checks the dependencies of the bundle and the dependents of the installed one. Returns the joint plan if the checks passed with the
    /// moves of its partners; its partners and its digest are still to be checked.
    async fn permitted(&self, resolved: &Resolved, history: &History) -> Result<Option<Joint>, Stopped> {
        if let Some(joint) = gather::joint::gather(self, resolved, history).await
            && self.check_others(resolved, history, &joint.moves).await.is_ok()
        {
            return Ok(Some(joint));
        }
        match self.check_others(resolved, history, &[]).await {
            Ok(()) => Ok(None),
            Err(stopped) => Err(gather::joint::soon(self, stopped)),
        }
    }

    pub(super) async fn check_others(
        &self,
        resolved: &Resolved,
        history: &History,
        moves: &[(String, Move)],
    ) -> Result<(), Stopped> {
        let checking = gather::dependencies::check(self, resolved, history, moves);
        self.step(Step::Dependencies, checking).await?;
        gather::dependents::check(self, resolved, history, moves).await
    }

    /// Turns the end of the pass into the input of the status.
    fn report(
        &self,
        direction: Direction,
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
        let support = decide::support::answer(history, lookups, self.now);
        if let Some(support) = &support {
            let end = decide::support::end(support);
            self.context.shared.inventory.note_support(&self.name, end);
        }
        let support_change = support.as_ref().and_then(decide::support::next_change);
        let unread_tag = end.as_ref().is_ok_and(|applied| self.warn_of_registry(applied));
        let left_out = resolved.as_ref().map(|resolved| resolved.left_out.as_slice());
        let catalogs = lookups.degraded(left_out.unwrap_or_default());
        let held = match &end {
            Err(_) if matches!(direction, Direction::Restore { .. }) => Direction::Forward,
            _ => direction,
        };
        let (deprecations, upgrade, rolled_back) = if let Some(mut resolved) = resolved {
            let upgrade = std::mem::take(&mut resolved.upgrade);
            let (upgrade, rolled_back) = self.rolled_back(held, history, Some(&resolved), upgrade);
            (resolved.deprecations, upgrade, rolled_back)
        } else {
            let (upgrade, rolled_back) = self.rolled_back(held, history, None, decide::unresolved(history));
            (None, upgrade, rolled_back)
        };
        let (progress, stopped) = match end {
            Ok(_) => (decide::rollback::progress(rolled_back.as_ref(), history), None),
            Err(stopped) => (stopped.progress.clone(), Some(stopped)),
        };
        let waiting = stopped.as_ref().and_then(|stopped| stopped.waiting.as_ref());
        let upgrade = match waiting {
            Some(waiting) => waiting.upgrade(history, upgrade),
            None => upgrade,
        };
        let windows = self.window_state();
        Report {
            outcome: Outcome {
                revisions: history.view(),
                progress,
                deprecations,
                upgrade,
                support,
                catalogs,
                pending: waiting.map(|waiting| waiting.pending.clone()),
                windows: decide::admission::window_status(windows),
                rolled_back,
            },
            stopped,
            incomplete: unread_tag || lookups.incomplete() || !pruned,
            windows,
            support_change,
        }
    }

    /// Records an extension whose revisions cannot be read or maintained. A failure that the next pass may not meet is not worth a
    /// verdict.
    fn unreadable(&self, error: &RevisionsError) -> Report {
        if error.lasts() {
            self.context.note_unread(self.extension, chain(error));
        }
        unreadable(error)
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
            support: None,
            catalogs: None,
            pending: None,
            windows: None,
            rolled_back: None,
        },
        stopped: Some(Stopped {
            progress: Progress::Retrying(text),
            delays: Delays::default(),
            superseded: false,
            waiting: None,
        }),
        incomplete: false,
        windows: State::Unrestricted,
        support_change: None,
    }
}
