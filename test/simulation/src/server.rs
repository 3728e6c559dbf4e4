//! API server of a run. Runs begin alike, so a run takes over the answers that earlier runs got.
//!
//! The simulated API server is a value without clock and IO: equal requests at equal times on equal servers get equal answers. What a server
//! is follows from its *past*: where it started, and the requests that changed it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use olm_proof::{Actor, Change};
use olm_world::{Answer, Request, World};
use parking_lot::Mutex;

/// Number of steps in a generation of the memory. A step takes tens of kilobytes, mostly for its answer and its history.
const GENERATION: usize = 20_000;

/// Steps of earlier runs. Steps that no run needs any more are forgotten: when the young generation is full, it replaces the old one.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u64, Arc<Step>>,
    old: HashMap<u64, Arc<Step>>,
}

/// A request, or a pass of the control plane, and what it did.
#[derive(Debug)]
struct Step {
    /// Sender of the request.
    actor: Actor,
    answer: Answer,
    /// Server after the step; `None` if the step changed nothing.
    after: Option<World>,
}

impl Memory {
    fn get(&self, key: u64) -> Option<Arc<Step>> {
        let mut generations = self.0.lock();
        if let Some(step) = generations.young.get(&key) {
            return Some(Arc::clone(step));
        }
        let step = generations.old.remove(&key)?;
        generations.put(key, Arc::clone(&step));
        Some(step)
    }

    fn put(&self, key: u64, step: Arc<Step>) {
        self.0.lock().put(key, step);
    }
}

impl Generations {
    fn put(&mut self, key: u64, step: Arc<Step>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, step);
    }
}

/// API server of a run.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    world: World,
    /// Hash of the start and of all steps that changed the server.
    past: u64,
    memory: Arc<Memory>,
}

impl Server {
    /// Returns a server that starts as `world`. The servers of a memory have the same world if they have the same `name`.
    pub(crate) fn new(world: World, name: &str, memory: Arc<Memory>) -> Self {
        Self {
            world,
            past: hash_of(name),
            memory,
        }
    }

    /// Returns the objects and their history.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Handles a request.
    pub(crate) fn handle(&mut self, request: &Request, now: Timestamp) -> Answer {
        let reads = request.method == "GET";
        let now = (!reads).then(|| whole_seconds(now));
        let key = hash_of((self.past, identity(request), now));
        let step = self.step(key, |world| {
            let answer = world.handle(request, now.unwrap_or_default());
            let changed = !reads && may_change(request, &answer);
            (request.actor.clone(), answer, changed)
        });
        let mut answer = step.answer.clone();
        // The earlier run may have sent the request from another process.
        if let Answer::Response { changes, .. } = &mut answer {
            for change in changes.iter_mut().filter(|change| change.actor == step.actor) {
                change.actor = request.actor.clone();
            }
        }
        answer
    }

    /// Runs one pass of the control plane.
    pub(crate) fn tick(&mut self, now: Timestamp) -> Vec<Change> {
        let now = whole_seconds(now);
        let step = self.step(hash_of((self.past, "tick", now)), |world| {
            let changes = world.tick(now);
            let has_effect = !changes.is_empty();
            let answer = Answer::Response {
                status: 200,
                headers: Vec::new(),
                body: Vec::new(),
                changes,
            };
            (Actor::Other("control plane".to_owned()), answer, has_effect)
        });
        match &step.answer {
            Answer::Response { changes, .. } => changes.clone(),
            Answer::Watch(_) => Vec::new(),
        }
    }

    /// Takes a step over from an earlier run, or does it with `act`, which returns the sender, the answer, and true if the step may have changed
    /// the world.
    fn step(&mut self, key: u64, act: impl FnOnce(&mut World) -> (Actor, Answer, bool)) -> Arc<Step> {
        let step = self.memory.get(key).unwrap_or_else(|| {
            let (actor, answer, changed) = act(&mut self.world);
            let after = changed.then(|| self.world.clone());
            let step = Arc::new(Step { actor, answer, after });
            self.memory.put(key, Arc::clone(&step));
            step
        });
        if let Some(after) = &step.after {
            self.world = after.clone();
            self.past = key;
        }
        step
    }
}

/// Returns false for an answer that proves that a request other than a read changed nothing. A creation draws a uid even if it is refused or a
/// dry run.
fn may_change(request: &Request, answer: &Answer) -> bool {
    let is_review = request.path.contains("reviews");
    let is_creation = request.method == "POST" && !is_review;
    match answer {
        Answer::Response {
            status: 200..=201,
            changes,
            ..
        } if is_review => !changes.is_empty(),
        Answer::Response {
            status: 200, changes, ..
        } => is_creation || !changes.is_empty(),
        _ => true,
    }
}

/// Returns the API server's view of a request: all but its sender, whom no answer depends on.
fn identity(request: &Request) -> impl Hash + '_ {
    let user = (&request.user.name, &request.user.groups);
    let account = (&request.impersonate_user, &request.impersonate_groups);
    let headers = (&request.content_type, &request.accept, &request.user_agent);
    (
        user,
        account,
        headers,
        &request.method,
        &request.path,
        &request.query,
        &request.body,
    )
}

/// Returns a time as the API server writes it, in whole seconds.
fn whole_seconds(time: Timestamp) -> Timestamp {
    let round = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Trunc);
    time.round(round).unwrap_or(time)
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fault::{Deposed, Fault, Schedule};
    use crate::run::Outcome;
    use crate::scenario::all;
    use crate::simulate::{Ending, Stage};

    fn create(actor: Actor, name: &str) -> Request {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        Request::new(actor, "POST", "/api/v1/namespaces/default/configmaps").with_body(&object)
    }

    /// Returns the sender that the only change of an answer names.
    fn sender(answer: &Answer) -> Option<&Actor> {
        match answer {
            Answer::Response { changes, .. } => changes.first().map(|change| &change.actor),
            Answer::Watch(_) => None,
        }
    }

    fn object(server: &Server, name: &str) -> String {
        let mut objects = server.world().objects();
        let found = objects.find(|(key, _)| key.plural == "configmaps" && key.name == name);
        found.map(|(_, object)| object.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_run_with_the_answers_of_others_equals_one_without() {
        let scenarios = all();
        let shared = Stage::new().unwrap();
        let faults = |faults: &[(usize, Fault)]| Schedule {
            faults: faults.iter().copied().collect(),
            ..Schedule::default()
        };
        let schedules = [
            Schedule::default(),
            faults(&[(70, Fault::CrashAfter)]),
            faults(&[(70, Fault::CrashAfter), (110, Fault::Conflict)]),
            faults(&[(71, Fault::LostCut)]),
            faults(&[(90, Fault::AppliedTimeout)]),
            Schedule {
                seed: 7,
                lag: 2,
                ..Schedule::default()
            },
            Schedule {
                deposed: Some(Deposed {
                    at: 80,
                    after: 10,
                    life: 30,
                    steps: 0,
                }),
                ..Schedule::default()
            },
        ];
        let parts = |outcome: &Outcome| {
            let Outcome {
                calls,
                violations,
                states,
                end,
                ..
            } = outcome.clone();
            (calls, violations, states, end)
        };
        for name in ["upgrade", "delete", "helm"] {
            let scenario = scenarios.iter().find(|scenario| scenario.name == name).unwrap();
            for schedule in &schedules {
                let alone = Stage::new().unwrap();
                let run = |stage: &Stage| stage.run(scenario, schedule, Ending::Short, true).unwrap();
                let (expected, first, again) = (run(&alone), run(&shared), run(&shared));
                for outcome in [first, again] {
                    assert_eq!(outcome.trace, expected.trace, "{name} {schedule}");
                    assert_eq!(parts(&outcome), parts(&expected), "{name} {schedule}");
                }
            }
        }
    }

    #[test]
    fn a_step_is_taken_over_only_by_a_server_with_the_same_past() {
        let memory = Arc::new(Memory::default());
        let start = |name: &str| Server::new(World::with_olm_crds(), name, Arc::clone(&memory));
        let time = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let (mut first, mut second, mut third, mut other) = (start(""), start(""), start(""), start("other"));
        let known = || memory.0.lock().young.len();
        first.handle(&create(Actor::Controller(0), "a"), time(5000));
        let taken = second.handle(&create(Actor::Controller(1), "a"), time(5700));
        assert_eq!((known(), sender(&taken)), (1, Some(&Actor::Controller(1))));
        assert_eq!(object(&second, "a"), object(&first, "a"));
        third.handle(&create(Actor::Controller(0), "a"), time(6000));
        other.handle(&create(Actor::Controller(0), "a"), time(5000));
        assert_eq!(known(), 3, "another second, and another start");
        assert_ne!(object(&third, "a"), object(&first, "a"));
        // A refused creation draws a uid, so the next object gets another one.
        first.handle(&create(Actor::Controller(0), "a"), time(5000));
        for server in [&mut first, &mut second] {
            server.handle(&create(Actor::Controller(0), "b"), time(5000));
        }
        assert_ne!(object(&first, "b"), object(&second, "b"));
    }

    #[test]
    fn reads_and_writes_without_effect_leave_the_past_as_it_is() {
        let mut server = Server::new(World::with_olm_crds(), "", Arc::default());
        server.handle(&create(Actor::Controller(0), "a"), Timestamp::UNIX_EPOCH);
        let past = server.past;
        let path = "/api/v1/namespaces/default/configmaps/a";
        let read = Request::new(Actor::Controller(0), "GET", path);
        server.handle(&read, Timestamp::UNIX_EPOCH);
        let merge = |data: &str| {
            let body = json!({"data": {"key": data}});
            Request::new(Actor::Controller(0), "PATCH", path)
                .with_body(&body)
                .with_content_type("application/merge-patch+json")
        };
        server.tick(Timestamp::UNIX_EPOCH);
        assert_eq!(server.past, past);
        server.handle(&merge("value"), Timestamp::UNIX_EPOCH);
        let written = server.past;
        assert_ne!(written, past);
        server.handle(&merge("value"), Timestamp::UNIX_EPOCH);
        assert_eq!(server.past, written);
    }

    #[test]
    fn steps_that_no_run_needs_are_forgotten() {
        let memory = Memory::default();
        let step = Arc::new(Step {
            actor: Actor::Controller(0),
            answer: Answer::Response {
                status: 200,
                headers: Vec::new(),
                body: Vec::new(),
                changes: Vec::new(),
            },
            after: None,
        });
        for key in 0..=GENERATION as u64 {
            memory.put(key, Arc::clone(&step));
        }
        assert!(memory.get(0).is_some(), "the old generation");
        let last = 3 * GENERATION as u64;
        for key in GENERATION as u64..=last {
            memory.put(key, Arc::clone(&step));
        }
        assert!(memory.get(0).is_none() && memory.get(last).is_some());
    }
}
