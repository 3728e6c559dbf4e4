//! Runs a scenario under a schedule and checks the state of the cluster at the end.

use std::sync::Arc;
use std::time::Duration;

use olm_proof::Violation;
use olm_runtime::clock;
use olm_world::World;
use serde_json::Value;

use crate::check;
use crate::clock::VirtualClock;
use crate::content::Content;
use crate::fault::Schedule;
use crate::run::{MAX_CALLS, Options, Outcome, Run, Waited};
use crate::scenario::{Scenario, When, helm};
use crate::server::{Memory, Server};
use crate::subject;

/// Virtual time without a write after which the controllers count as done with a step.
const STEP_QUIET: Duration = Duration::from_secs(40);
/// Maximum virtual time of a step.
const STEP_LIMIT: Duration = Duration::from_mins(30);
/// Virtual time within which the cluster must reach its goal after the last step: two of the longest backoffs.
const CONVERGENCE: Duration = Duration::from_mins(40);
/// Virtual time at the end in which nothing may be written.
const QUIET_HOUR: Duration = Duration::from_hours(1);

/// Check at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The goal is reached, and a minute passes without a write.
    Short,
    /// The goal is reached, and an hour passes without a write.
    QuietHour,
}

/// The small world and its content, which every run starts from. A clone is cheap.
#[derive(Clone)]
pub struct Stage {
    /// Bundles and catalogs.
    pub content: Arc<Content>,
    /// API server before the first step.
    pub world: World,
    /// Answers of the API server in the runs so far.
    memory: Arc<Memory>,
}

impl Stage {
    /// Writes the content and creates the objects of the small world.
    ///
    /// # Errors
    /// The content cannot be written, or the API server refuses an object.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            content: Arc::new(Content::write()?),
            world: crate::scenario::small_world()?,
            memory: Arc::default(),
        })
    }

    /// Returns the API server at the start of a run, on which Helm has installed an extension if one is given.
    ///
    /// # Errors
    /// The API server refuses an object of the release.
    pub(crate) fn server(&self, helm: Option<&Value>) -> anyhow::Result<Server> {
        let mut world = self.world.clone();
        let mut name = String::new();
        if let Some(extension) = helm {
            helm::install(&mut world, &self.content, extension)?;
            name = extension.to_string();
        }
        Ok(Server::new(world, &name, Arc::clone(&self.memory)))
    }

    /// Runs a scenario under a schedule. Equal arguments give equal outcomes.
    ///
    /// # Errors
    /// The runtime cannot be built, or the API server refuses an object that exists before the run.
    pub fn run(
        &self,
        scenario: &Scenario,
        schedule: &Schedule,
        ending: Ending,
        traced: bool,
    ) -> anyhow::Result<Outcome> {
        let options = Options {
            traced,
            ..Options::default()
        };
        self.run_with(scenario, schedule, ending, options)
    }

    /// Runs a scenario with further options, on a new runtime with virtual time.
    ///
    /// # Errors
    /// The runtime cannot be built.
    pub(crate) fn run_with(
        &self,
        scenario: &Scenario,
        schedule: &Schedule,
        ending: Ending,
        options: Options,
    ) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        fastrand::seed(schedule.seed);
        let server = self.server(scenario.helm.as_ref())?;
        let _subjects = subject::follow();
        let outcome = runtime.block_on(async {
            let _clock = clock::replace(Box::new(VirtualClock::start(schedule.seed)));
            let run = Run::start(Arc::clone(&self.content), server, schedule.clone(), options);
            self.perform(scenario, run, ending).await
        });
        runtime.shutdown_background();
        let mut outcome = outcome;
        for violation in &mut outcome.violations {
            violation.seed = format!("{} {schedule}", scenario.name);
        }
        Ok(outcome)
    }

    /// Carries out the steps of a scenario, waits until the cluster reaches its goal, and runs the checks. A run that ends in a known
    /// state skips what is left.
    async fn perform(&self, scenario: &Scenario, mut run: Run, ending: Ending) -> Outcome {
        let (mut first, mut last) = (0, 0);
        for (at, (when, actions)) in scenario.steps.iter().enumerate() {
            match when {
                When::AtRest => run.wait(STEP_QUIET, None, STEP_LIMIT).await,
                When::Answered => run.wait_for_answers(STEP_QUIET, STEP_LIMIT).await,
                When::AfterCalls(calls) => run.wait(STEP_QUIET, Some(*calls), STEP_LIMIT).await,
            };
            if run.is_known {
                break;
            }
            if at > 0 && at == scenario.prepared {
                first = run.calls.len();
            }
            run.act(actions);
        }
        if !run.is_known {
            last = self.converge(scenario, &mut run).await;
        }
        if !run.is_known && ending == Ending::QuietHour {
            quiet_hour(&mut run).await;
        }
        run.stop();
        let mut violations: Vec<Violation> = std::mem::take(&mut run.cluster.violations);
        violations.sort();
        violations.dedup();
        Outcome {
            active: first..last,
            calls: std::mem::take(&mut run.calls),
            met: run.met,
            violations,
            states: std::mem::take(&mut run.states),
            after_fault: run.after_fault,
            depth: run.depth,
            trace: std::mem::take(&mut run.cluster.trace),
            end: run.cluster.hash(),
            is_known: run.is_known,
        }
    }

    /// Waits until the cluster reaches its goal, and checks it. Returns the number of calls until the cluster first came to rest.
    async fn converge(&self, scenario: &Scenario, run: &mut Run) -> usize {
        let mut expected = check::of(&self.content, scenario);
        expected.faultless = run.is_faultless();
        expected.forget(&run.refused);
        let mut left = CONVERGENCE;
        let mut found = Vec::new();
        let mut last = None;
        // The faults and the deposed leader end when the cluster first comes to rest.
        for round in 0..60 {
            let before = tokio::time::Instant::now();
            let waited = run.wait(Duration::from_mins(1), None, left).await;
            last.get_or_insert(run.calls.len());
            if run.is_known {
                return last.unwrap_or_default();
            }
            if round == 0 {
                run.end_deposed();
                run.faulty = false;
            }
            left = left.saturating_sub(before.elapsed());
            found = expected.differences(&run.objects());
            if waited == Waited::Limit || left.is_zero() || found.is_empty() && round > 0 {
                break;
            }
        }
        if left.is_zero() || run.calls.len() > MAX_CALLS {
            run.cluster
                .violate("rest", "the cluster does not come to rest".to_owned());
        }
        for text in found {
            run.cluster.violate("convergence", text);
        }
        let late = run.cluster.left_over();
        run.cluster.violations.extend(late);
        last.unwrap_or_default()
    }
}

/// Waits for an hour and checks that nothing is written.
async fn quiet_hour(run: &mut Run) {
    let (writes, revision) = (run.cluster.writes, run.cluster.revision());
    run.wait(QUIET_HOUR, None, QUIET_HOUR).await;
    if run.calls.len() > MAX_CALLS {
        run.cluster.violate(
            "quiet-hour",
            format!("more than {MAX_CALLS} calls until the end of the quiet hour"),
        );
    }
    if (run.cluster.writes, run.cluster.revision()) != (writes, revision) {
        let count = run.cluster.writes - writes;
        run.cluster.violate(
            "quiet-hour",
            format!("{count} writes in an hour without a reason"),
        );
    }
}
