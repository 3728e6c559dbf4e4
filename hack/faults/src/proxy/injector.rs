//! The injector: chooses the fault of each request by rules, and keeps the log of requests.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch as signal;
use tokio::time::Instant;

use super::Gate;
use super::fault::{Class, Fault, Rule};
use super::request::Target;

/// Maximum number of lines in the log.
const LOG_LIMIT: usize = 200_000;

/// Numbers of injected faults, by name of the fault.
pub type Injected = BTreeMap<&'static str, u64>;

/// Source of the faults of a proxy.
#[derive(Debug)]
pub struct Injector {
    /// Switch of the proxy, which a kill shuts.
    gate: signal::Sender<Gate>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Rules whose fault has not happened yet.
    rules: Vec<Counted>,
    injected: Injected,
    requests: u64,
    /// True if a fault demands to kill the controller.
    kill: bool,
    log: Vec<String>,
    /// True if requests are logged.
    logs: bool,
    /// Start of the log.
    started: Instant,
}

/// A rule, and the number of members of its class so far.
#[derive(Debug)]
struct Counted {
    rule: Rule,
    seen: u32,
}

impl Injector {
    pub(crate) fn new(gate: signal::Sender<Gate>) -> Self {
        let state = State {
            rules: Vec::new(),
            injected: Injected::new(),
            requests: 0,
            kill: false,
            log: Vec::new(),
            logs: false,
            started: Instant::now(),
        };
        Self {
            gate,
            state: Mutex::new(state),
        }
    }

    /// Replaces all rules and starts counting anew. An empty list ends the faults.
    pub fn set_rules(&self, rules: &[Rule]) {
        let counted = |rule: &Rule| Counted { rule: *rule, seen: 0 };
        self.state.lock().rules = rules.iter().map(counted).collect();
    }

    /// Returns the number of rules that still wait for their request or event.
    pub fn pending(&self) -> usize {
        self.state.lock().rules.len()
    }

    /// Returns the number of requests and the numbers of injected faults, both since the last call.
    pub fn take_counts(&self) -> (u64, Injected) {
        let mut state = self.state.lock();
        (
            std::mem::take(&mut state.requests),
            std::mem::take(&mut state.injected),
        )
    }

    /// Starts an empty log of requests.
    pub fn start_log(&self) {
        let mut state = self.state.lock();
        state.logs = true;
        state.started = Instant::now();
        state.log.clear();
    }

    /// Adds a line to the log.
    pub fn note(&self, line: &str) {
        let mut state = self.state.lock();
        if state.logs && state.log.len() < LOG_LIMIT {
            let at = state.started.elapsed();
            state.log.push(format!("{:9.3} {line}", at.as_secs_f64()));
        }
    }

    /// Removes and returns the lines of the log.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().log)
    }

    /// Returns true once after a fault demanded to kill the controller. The proxy is shut then, and the caller opens it before
    /// the restart.
    pub fn take_kill(&self) -> bool {
        std::mem::take(&mut self.state.lock().kill)
    }

    /// Shuts the proxy and demands to kill the controller.
    pub(crate) fn kill(&self) {
        self.gate.send_replace(Gate::Shut);
        self.state.lock().kill = true;
    }

    /// Returns the fault of a request, if any.
    pub(crate) fn fault_of(&self, target: &Target) -> Option<Fault> {
        self.state.lock().requests += 1;
        self.choose(|class| class.has(target))
    }

    /// Returns the fault of an event in a watch on `resource`, if any.
    pub(crate) fn fault_of_event(&self, resource: &str) -> Option<Fault> {
        self.choose(|class| class.has_events(resource))
    }

    /// Counts a request or event in all rules whose class has it. Removes the first rule that is due, and returns its fault.
    fn choose(&self, has: impl Fn(Class) -> bool) -> Option<Fault> {
        let mut state = self.state.lock();
        let mut chosen = None;
        for (index, counted) in state.rules.iter_mut().enumerate() {
            if has(counted.rule.class) {
                counted.seen += 1;
                if counted.seen >= counted.rule.nth && chosen.is_none() {
                    chosen = Some(index);
                }
            }
        }
        let fault = state.rules.remove(chosen?).rule.fault;
        Some(fault)
    }

    /// Counts a fault that happened. A chosen fault may not fit its request, for example if there is no old answer.
    pub(crate) fn count(&self, fault: Fault) {
        *self.state.lock().injected.entry(fault.kind()).or_default() += 1;
    }
}
