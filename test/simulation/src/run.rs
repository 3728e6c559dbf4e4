//! A run: the processes of the controllers, the scheduler that answers their calls, and the steps of users. `simulate` drives it
//! through a scenario; the cluster behind it is in `cluster`. `answer` answers the calls of the processes.

mod answer;
mod outcome;

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use olm_api::CustomResourcePolicy;
use olm_operator_controller::{Parts, ServiceAccountPolicy, Settings};
use olm_runtime::FeatureGates;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::outcome::Outcome;
pub(crate) use self::outcome::{Call, Options, States};
use crate::cluster::Cluster;
use crate::content::Content;
use crate::fault::{Kind, Schedule};
use crate::net::{Net, Pending, Reply};
use crate::rng::Rng;
use crate::seams::Outside;
use crate::server::Server;
use crate::user::{self, Action};

/// Delay between the end of a process and the start of the next.
const RESTART: Duration = Duration::from_secs(1);
/// Maximum number of calls in a run. A run with more calls counts as an endless loop. The longest scenario has fewer than a tenth of them.
pub(crate) const MAX_CALLS: usize = 10_000;

thread_local! {
    /// Messages of the panics on this thread that the run has not reported yet.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Installs a panic hook, so that a run reports each panic on its thread as a violation.
pub fn watch_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.with_borrow_mut(|panics| panics.push(info.to_string()));
        before(info);
    }));
}

/// Returns the settings of the controllers: the defaults of their flags.
pub(crate) fn settings() -> Settings {
    Settings {
        system_namespace: "olmv1-system".into(),
        concurrency: 8,
        accounts: ServiceAccountPolicy::Impersonate,
        custom_resources: CustomResourcePolicy::Keep,
        crd_roles: false,
        features: FeatureGates::default(),
    }
}

/// Reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The cluster was quiet: nothing was written to it for the requested time.
    Quiet,
    /// The requested number of calls was answered.
    Calls,
    /// The time limit or [`MAX_CALLS`] was reached first.
    Limit,
    /// The run reached a state from which another run has shown the rest.
    Known,
}

/// A process of the controllers.
struct Process {
    number: u32,
    task: JoinHandle<anyhow::Result<()>>,
    /// True while the scheduler answers no call of the process, as if the process stood still.
    frozen: bool,
    /// Number of calls after which the process ends; `None` if it does not end by itself. A deposed leader has a number once it
    /// goes on.
    life: Option<usize>,
}

impl Process {
    /// Returns false for a deposed leader, whether it stands still or goes on.
    fn leads(&self) -> bool {
        !self.frozen && self.life.is_none()
    }
}

/// A run in progress.
pub(crate) struct Run {
    pub(crate) cluster: Cluster,
    content: Arc<Content>,
    /// New calls of the processes.
    net: Arc<Net>,
    schedule: Schedule,
    /// Source of the scheduler's choices.
    rng: Rng,
    processes: Vec<Process>,
    /// Number of processes started so far.
    started: u32,
    /// Calls that wait for an answer, in an order that does not depend on their arrival.
    waiting: Vec<Pending>,
    /// Call of a deposed leader that misses steps of users, while the leader stands still.
    held: Option<Pending>,
    /// Number of steps of users up to which the deposed leader stands still at least.
    held_until: usize,
    /// Calls that get no answer, with the time at which their connections end.
    late: Vec<(Instant, oneshot::Sender<Reply>)>,
    /// Time at which the next process starts, while there is none.
    restart: Option<Instant>,
    /// Answered calls, in the order of their answers.
    pub(crate) calls: Vec<Call>,
    /// Moment of the last call (see [`Call::moment`]), with the resource version and the number of steps at which the moment
    /// began.
    moment: (usize, u64, usize),
    /// Number of steps that users have carried out.
    steps: usize,
    /// Objects that users could not apply: a fault had held up the CRD of their kind.
    pub(crate) refused: Vec<serde_json::Value>,
    /// Number of calls after which the next step of users began to wait for a number of further calls; `None` while no step does.
    counting: Option<usize>,
    /// Number of calls of the process that took over from a deposed leader.
    successor_calls: usize,
    /// Number of faults so far, a deposition included.
    pub(crate) met: usize,
    /// Hashes of the states that the run passed. See [`Self::state`].
    pub(crate) states: HashSet<u64>,
    /// States from which other runs have shown the rest, if the run ends in such a state once all its faults have happened.
    known: Option<Arc<States>>,
    /// True once the run has reached a state of `known`.
    pub(crate) is_known: bool,
    /// Hash of the state after the last fault of the schedule, once this fault has happened.
    pub(crate) after_fault: Option<u64>,
    /// Number of actions of the scheduler.
    pub(crate) depth: usize,
    /// True while faults of the schedule may happen.
    pub(crate) faulty: bool,
}

impl Run {
    /// Starts a run on `server` with one process of the controllers. Must be called within the runtime.
    pub(crate) fn start(content: Arc<Content>, server: Server, schedule: Schedule, options: Options) -> Self {
        let mut cluster = Cluster::new(server, options.traced);
        cluster.bug = options.bug;
        let mut run = Self {
            cluster,
            content,
            net: Arc::default(),
            rng: Rng::new(schedule.seed),
            schedule,
            processes: Vec::new(),
            started: 0,
            waiting: Vec::new(),
            held: None,
            held_until: 0,
            late: Vec::new(),
            restart: None,
            calls: Vec::new(),
            moment: (0, 0, 0),
            steps: 0,
            refused: Vec::new(),
            counting: None,
            successor_calls: 0,
            met: 0,
            states: HashSet::new(),
            known: options.known,
            is_known: false,
            after_fault: None,
            depth: 0,
            faulty: true,
        };
        PANICS.take();
        run.start_process();
        run
    }

    /// Returns true if the schedule has neither a fault nor a deposed leader.
    pub(crate) fn is_faultless(&self) -> bool {
        self.schedule.faults.is_empty() && self.schedule.deposed.is_none()
    }

    /// Starts a process of the controllers, whose calls go to the scheduler.
    fn start_process(&mut self) {
        let number = self.started;
        self.started += 1;
        let outside = Arc::new(Outside {
            net: Some(Arc::clone(&self.net)),
            process: number,
            content: Arc::clone(&self.content),
        });
        let parts = Parts::new(self.net.client(number), outside.clone(), outside);
        let task = tokio::spawn(parts.run(settings(), CancellationToken::new()));
        self.cluster.log(|| format!("p{number} starts"));
        self.processes.push(Process {
            number,
            task,
            frozen: false,
            life: None,
        });
    }

    /// Ends a process as `kill -9` does, with its calls and watches. If no process leads any more, another one starts after [`RESTART`].
    fn end_process(&mut self, number: u32) {
        self.cluster.log(|| format!("p{number} ends"));
        let Some(at) = self.processes.iter().position(|process| process.number == number) else {
            return;
        };
        let process = self.processes.remove(at);
        process.task.abort();
        self.take_arrivals();
        // Writes in flight may still arrive.
        let (own, others) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|call| call.process == number);
        self.waiting = others;
        let own: Vec<Pending> = own;
        for call in own {
            if self.schedule.seed != 0 && Kind::of(&call.request) == Kind::Write && self.rng.chance(2) {
                self.cluster.log(|| "on its way at the end:".to_owned());
                self.cluster.handle(number, &call.request, 0);
            }
        }
        self.cluster.watches.retain(|watch| watch.process != number);
        if !self.processes.iter().any(Process::leads) {
            self.restart = Some(Instant::now() + RESTART);
        }
    }

    /// Carries out the actions of one step of users.
    pub(crate) fn act(&mut self, actions: &[Action]) {
        self.steps += 1;
        for action in actions {
            let accepted = self.cluster.act(&user::request(action));
            if let Action::Apply(object) = action
                && !accepted
            {
                self.refused.push(object.clone());
            }
        }
    }

    /// Sends a request of a user and returns the status code.
    pub(crate) fn send(&mut self, request: &olm_world::Request) -> u16 {
        self.cluster.send(request)
    }

    /// Returns the objects of the cluster.
    pub(crate) fn objects(&self) -> Vec<Arc<serde_json::Value>> {
        self.cluster.objects()
    }

    /// Runs until nothing was written for `quiet`, until `calls` more calls were answered, or for `limit` at most.
    pub(crate) async fn wait(&mut self, quiet: Duration, calls: Option<usize>, limit: Duration) -> Waited {
        let from = self.calls.len();
        self.counting = calls.map(|_| from);
        let end = Instant::now() + limit;
        self.cluster.changed = Instant::now();
        loop {
            // Virtual time passes only when every task waits.
            tokio::time::sleep(Duration::from_millis(1)).await;
            if self.is_known {
                return Waited::Known;
            }
            self.take_arrivals();
            self.look_after_processes();
            if calls.is_some_and(|calls| self.calls.len() >= from + calls) {
                return Waited::Calls;
            }
            if self.calls.len() > MAX_CALLS || Instant::now() >= end {
                return Waited::Limit;
            }
            if self.step() {
                self.depth += 1;
                self.note_state();
                continue;
            }
            let quiet_at = self.cluster.changed + quiet;
            if Instant::now() >= quiet_at && self.resume_deposed() {
                continue;
            }
            if Instant::now() >= quiet_at {
                return Waited::Quiet;
            }
            let ends = self.cluster.watches.iter().map(|watch| watch.ends);
            let late = self.late.iter().map(|(at, _)| *at);
            let next = ends.chain(late).chain(self.restart).chain([quiet_at, end]).min();
            tokio::select! {
                biased;
                () = self.net.arrival() => {}
                () = tokio::time::sleep_until(next.unwrap_or(end)) => {}
            }
        }
    }

    /// Runs until nothing was written for `quiet` and no connection hangs without an answer, or for `limit` at most.
    pub(crate) async fn wait_for_answers(&mut self, quiet: Duration, limit: Duration) -> Waited {
        let end = Instant::now() + limit;
        loop {
            let calm = self.late.is_empty();
            let waited = self.wait(quiet, None, end - Instant::now()).await;
            if matches!(waited, Waited::Limit | Waited::Known) || calm && self.late.is_empty() {
                return waited;
            }
        }
    }

    /// Moves new calls to the waiting ones, and drops those of processes that have ended.
    fn take_arrivals(&mut self) {
        let came = self.net.take();
        if came.is_empty() {
            return;
        }
        let alive = |number: u32| self.processes.iter().any(|process| process.number == number);
        let came: Vec<Pending> = came.into_iter().filter(|call| alive(call.process)).collect();
        self.waiting.extend(came);
        self.waiting
            .sort_by(|a, b| (a.process, &a.order).cmp(&(b.process, &b.order)));
    }

    /// Reports panics and processes that ended by themselves, starts a process if there is none, and ends connections that are
    /// due.
    fn look_after_processes(&mut self) {
        let now = Instant::now();
        for panic in PANICS.take() {
            self.cluster.violate("panic", panic);
        }
        for index in 0..self.processes.len() {
            if self
                .processes
                .get(index)
                .is_some_and(|process| process.task.is_finished())
            {
                let process = self.processes.remove(index);
                self.cluster
                    .violate("process", format!("process {} ended by itself", process.number));
                break;
            }
        }
        if !self.processes.iter().any(Process::leads) && self.restart.is_none_or(|at| at <= now) {
            self.restart = None;
            self.start_process();
        }
        self.late.retain(|(at, reply)| *at > now && !reply.is_closed());
        self.cluster.end_watches();
    }

    /// Carries out one action of the scheduler: a pass of the control plane, the delivery of an event, or the answer to a call.
    /// Returns false if there is nothing to do. With seed 0, the order of the actions is fixed.
    fn step(&mut self) -> bool {
        self.cluster.fan_out();
        if self.cluster.is_dirty()
            && (self.schedule.seed == 0 || self.rng.chance(2) || self.waiting.is_empty())
        {
            self.cluster.tick();
            return true;
        }
        let eligible: Vec<usize> = (0..self.waiting.len())
            .filter(|at| self.is_eligible(*at))
            .collect();
        let behind: Vec<usize> = (0..self.cluster.watches.len())
            .filter(|at| self.is_behind(*at, !eligible.is_empty()))
            .collect();
        let deliver =
            !behind.is_empty() && (self.schedule.seed == 0 || eligible.is_empty() || self.rng.chance(2));
        if deliver {
            let at = if self.schedule.seed == 0 {
                0
            } else {
                self.rng.below(behind.len())
            };
            let all = self.schedule.lag == 0;
            self.cluster
                .deliver(behind.get(at).copied().unwrap_or_default(), all);
            return true;
        }
        if eligible.is_empty() {
            return false;
        }
        let at = if self.schedule.seed == 0 {
            0
        } else {
            self.rng.below(eligible.len())
        };
        let call = self.waiting.remove(eligible.get(at).copied().unwrap_or_default());
        self.answer(call);
        true
    }

    /// Returns true if the scheduler may answer the waiting call with index `at`: its process exists and is not frozen.
    fn is_eligible(&self, at: usize) -> bool {
        let process = self.waiting.get(at).map(|call| call.process);
        self.processes
            .iter()
            .any(|known| Some(known.number) == process && !known.frozen)
    }

    /// Returns true if the watch with index `at` has an event to deliver now. While calls can be answered (`busy`), the watch
    /// keeps as many events back as its lag says.
    fn is_behind(&self, at: usize, busy: bool) -> bool {
        let Some(watch) = self.cluster.watches.get(at) else {
            return false;
        };
        let frozen = self
            .processes
            .iter()
            .any(|known| known.number == watch.process && known.frozen);
        !frozen && self.cluster.behind(at) > if busy { watch.lag } else { 0 }
    }

    /// Returns the moment of the next call. A process that ends before any of the calls of a moment leaves the same cluster
    /// behind.
    fn moment(&mut self) -> usize {
        let (moment, version, steps) = self.moment;
        let now = (self.cluster.revision(), self.steps);
        if self.counting.is_some() || now != (version, steps) {
            self.moment = (moment + 1, now.0, now.1);
        }
        self.moment.0
    }

    /// Returns the hash of the current state, or of the state before the call `next`. A state is the cluster, the steps of users, the
    /// processes, and their watches and calls.
    fn state(&self, next: Option<&Pending>) -> u64 {
        let oldest = self.processes.first().map_or(0, |process| process.number);
        let counted = self.counting.map(|from| self.calls.len() - from);
        let mut hasher = DefaultHasher::new();
        self.cluster.hash().hash(&mut hasher);
        self.cluster.watching(oldest).hash(&mut hasher);
        (self.steps, counted, self.late.len(), self.restart.is_some()).hash(&mut hasher);
        for process in &self.processes {
            (process.number - oldest, process.leads()).hash(&mut hasher);
        }
        for call in next.into_iter().chain(&self.waiting) {
            (call.process.saturating_sub(oldest), call.hash).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Records the hash of the current state.
    fn note_state(&mut self) {
        let state = self.state(None);
        self.states.insert(state);
        if self.met == self.schedule.faults.len() && self.after_fault.is_none() && self.met > 0 {
            self.after_fault = Some(state);
        }
    }

    /// Ends the run.
    pub(crate) fn stop(&mut self) {
        for process in &self.processes {
            process.task.abort();
        }
        self.waiting.clear();
    }
}
