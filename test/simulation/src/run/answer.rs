//! Answers to the calls of processes: with and without faults, and from deposed leaders.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{Call, Run};
use crate::cluster::complete;
use crate::fault::{Deposed, Fault, Kind};
use crate::net::{CATALOG, IMAGE, Pending, Reply};

/// Time after which the connection of an unanswered call ends: the read timeout of the production client. The client gives up a
/// call to the API server earlier.
const READ_TIMEOUT: Duration = Duration::from_secs(330);

impl Run {
    /// Answers a call, or lets its fault of the schedule happen.
    pub(super) fn answer(&mut self, call: Pending) {
        let number = self.calls.len();
        let kind = Kind::of(&call.request);
        let moment = self.moment();
        let step = self.steps;
        let state = self.state(Some(&call));
        self.calls.push(Call {
            kind,
            moment,
            step,
            state,
        });
        let is_over = self.met == self.schedule.faults.len();
        if is_over && self.known.as_ref().is_some_and(|known| known.has(state)) {
            self.is_known = true;
            return;
        }
        let fault = self.schedule.faults.get(&number).copied();
        let fault = fault.filter(|fault| self.faulty && fault.applies(kind));
        if let Some(fault) = fault {
            self.met += 1;
            self.cluster.log(|| format!("FAULT {number}={fault}"));
        }
        if let Some(deposed) = self
            .schedule
            .deposed
            .filter(|deposed| deposed.at == number && self.faulty)
        {
            self.depose(call, deposed);
            return;
        }
        let process = call.process;
        self.count_life(process);
        let Pending { request, reply, .. } = call;
        let lag = if self.schedule.lag == 0 {
            0
        } else {
            self.rng.below(self.schedule.lag + 1)
        };
        let answer = |code: u16, reason: &str| {
            let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
                "message": format!("simulated {reason}"), "code": code});
            let mut builder = http::Response::builder()
                .status(code)
                .header("content-type", "application/json");
            if code == 429 {
                builder = builder.header("retry-after", "1");
            }
            Some(Reply::Response(complete(builder, body.to_string().into_bytes())))
        };
        let response = match fault {
            None => Some(self.respond(process, &request, lag)),
            Some(Fault::CrashBefore) => {
                self.end_process(process);
                None
            }
            Some(Fault::CrashAfter) => {
                self.respond(process, &request, lag);
                self.end_process(process);
                None
            }
            Some(Fault::AppliedTimeout) => {
                self.respond(process, &request, lag);
                self.late.push((Instant::now() + READ_TIMEOUT, reply));
                return;
            }
            Some(Fault::LostTimeout) => {
                self.late.push((Instant::now() + READ_TIMEOUT, reply));
                return;
            }
            Some(Fault::AppliedCut) => {
                self.respond(process, &request, lag);
                Some(Reply::Cut)
            }
            Some(Fault::LostCut) => Some(Reply::Cut),
            Some(Fault::Conflict) => answer(409, "Conflict"),
            Some(Fault::Gone) => answer(410, "Expired"),
            Some(Fault::TooManyRequests) => answer(429, "TooManyRequests"),
            Some(Fault::Internal) => answer(500, "InternalError"),
            Some(Fault::Former) => Some(Reply::Former),
        };
        if let Some(response) = response {
            // The caller may have given up.
            let _ = reply.send(response);
        }
    }

    /// Handles a call without a fault. If the call starts a watch, `lag` is the lag of the watch.
    fn respond(&mut self, process: u32, request: &olm_world::Request, lag: usize) -> Reply {
        if matches!(request.method.as_str(), CATALOG | IMAGE) {
            self.cluster
                .log(|| format!("p{process} {} {}", request.method, request.path));
            let bug = self.cluster.bug.and_then(|bug| bug.catalog(request));
            return bug.unwrap_or(Reply::Content);
        }
        Reply::Response(self.cluster.handle(process, request, lag))
    }

    /// Freezes the process of a call that is in flight, and starts a process that takes over.
    fn depose(&mut self, call: Pending, deposed: Deposed) {
        self.met += 1;
        if let Some(process) = self
            .processes
            .iter_mut()
            .find(|process| process.number == call.process)
        {
            process.frozen = true;
        }
        self.cluster.log(|| {
            format!(
                "p{} stands still, at {} {}",
                call.process, call.request.method, call.request.path
            )
        });
        self.held_until = self.steps + deposed.steps;
        if deposed.steps == 0 {
            self.waiting.insert(0, call);
        } else {
            self.held = Some(call);
        }
        self.start_process();
    }

    /// Counts a call of a process. Enough calls of the process that took over resume the deposed one; the last call that a
    /// deposed process has left ends it.
    fn count_life(&mut self, number: u32) {
        let Some(deposed) = self.schedule.deposed else {
            return;
        };
        let last = self.processes.last().map(|process| process.number);
        if self.processes.len() > 1 && Some(number) == last {
            if self.steps >= self.held_until {
                self.successor_calls += 1;
            }
            if self.successor_calls >= deposed.after {
                self.resume_deposed();
            }
            return;
        }
        let mut ended = false;
        if let Some(process) = self.processes.iter_mut().find(|process| process.number == number)
            && let Some(life) = &mut process.life
        {
            *life = life.saturating_sub(1);
            ended = *life == 0;
        }
        if ended {
            self.end_process(number);
        }
    }

    /// Resumes the frozen process and limits the number of its calls. Returns true if there was a frozen process that has missed
    /// enough steps.
    pub(super) fn resume_deposed(&mut self) -> bool {
        if self.steps < self.held_until {
            return false;
        }
        let life = self.schedule.deposed.map_or(0, |deposed| deposed.life);
        let Some(process) = self.processes.iter_mut().find(|process| process.frozen) else {
            return false;
        };
        process.frozen = false;
        process.life = Some(life.max(1));
        let number = process.number;
        self.cluster.changed = Instant::now();
        self.cluster.log(|| format!("p{number} goes on"));
        if let Some(held) = self.held.take() {
            // Timers of the process have fired meanwhile, and a process that stands still sends nothing.
            self.take_arrivals();
            self.waiting.retain(|call| call.process != number);
            self.answer(held);
        }
        true
    }

    /// Ends the deposed leader, if there is one.
    pub(crate) fn end_deposed(&mut self) {
        while let Some(deposed) = self.processes.iter().find(|process| !process.leads()) {
            self.end_process(deposed.number);
        }
    }
}
