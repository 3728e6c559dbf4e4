//! The cluster of a run: the simulated API server, the open watches, the invariants that check every change, and the trace.

mod shown;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http_body_util::{Either, Full};
use jiff::Timestamp;
use olm_proof::{Change, Invariants, ObjectKey, Settings, Violation};
use olm_world::{Answer, Request};
use serde_json::Value;
use tokio::time::Instant;

use self::shown::{shown, told};
use self::watches::Watch;
use crate::account;
use crate::clock::VirtualClock;
use crate::content::SECRETS;
use crate::fault::Kind;
use crate::hash;
use crate::net::{AnswerBody, is_event};
use crate::planted::{self, Bug};
use crate::server::Server;
use crate::user;

/// Maximum number of lines of a trace.
const MAX_TRACE: usize = 200_000;

/// The cluster of a run.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) watches: Vec<Watch>,
    invariants: Invariants,
    pub(crate) violations: Vec<Violation>,
    start: Instant,
    /// Resource version before the last pass of the control plane.
    ticked: u64,
    /// Paths of the Deployments whose status may be outdated.
    deployments: BTreeSet<String>,
    /// Hash of each object, without fields that differ between equal runs.
    hashes: BTreeMap<ObjectKey, u64>,
    /// XOR of all hashes of objects.
    hash: u64,
    /// Stable names of events, by the names that processes gave them. Names by processes contain the time of the machine.
    events: BTreeMap<String, String>,
    /// Number of writes by controllers, accepted or refused. Events and dry runs do not count.
    pub(crate) writes: usize,
    /// Time of the last change of the cluster, apart from Events.
    pub(crate) changed: Instant,
    traced: bool,
    pub(crate) trace: Vec<String>,
    /// Planted bug between the controllers and the network, if any.
    pub(crate) bug: Option<Bug>,
}

impl Cluster {
    pub(crate) fn new(server: Server, traced: bool) -> Self {
        let secrets = SECRETS.map(str::to_owned).into();
        let mut out = Self {
            invariants: Invariants::new(Settings {
                secrets,
                exact_order: true,
                ..Settings::default()
            }),
            ticked: 0,
            server,
            watches: Vec::new(),
            violations: Vec::new(),
            start: Instant::now(),
            deployments: BTreeSet::new(),
            hashes: BTreeMap::new(),
            hash: 0,
            events: BTreeMap::new(),
            writes: 0,
            changed: Instant::now(),
            traced,
            trace: Vec::new(),
            bug: None,
        };
        for object in out.objects() {
            out.invariants.existing(key_of(&object), object);
        }
        out
    }

    /// Returns all objects.
    pub(crate) fn objects(&self) -> Vec<Arc<Value>> {
        let objects = self.server.world().objects();
        objects.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Returns the resource version of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.server.world().revision()
    }

    /// Returns the virtual time of day.
    pub(crate) fn now(&self) -> Timestamp {
        VirtualClock::at(self.start)
    }

    /// Adds a line to the trace.
    pub(crate) fn log(&mut self, text: impl FnOnce() -> String) {
        if self.traced && self.trace.len() < MAX_TRACE {
            let line = format!("{:>12.3} {}", self.start.elapsed().as_secs_f64(), text());
            self.trace.push(line);
        }
    }

    /// Records a violation of an invariant or a check.
    pub(crate) fn violate(&mut self, invariant: &str, text: String) {
        self.log(|| format!("VIOLATION {invariant}: {text}"));
        self.violations.push(Violation {
            invariant: invariant.to_owned(),
            seed: String::new(),
            text,
        });
    }

    /// Handles a call of a process and returns the answer. If the call starts a watch, the watch is added with this `lag`.
    pub(crate) fn handle(
        &mut self,
        process: u32,
        request: &Request,
        lag: usize,
    ) -> http::Response<AnswerBody> {
        let mut request = self.with_stable_name(request);
        if let Some(bug) = self.bug.filter(|_| !planted::spares(Kind::of(&request))) {
            bug.change(&mut request, self.writes);
        }
        let now = self.now();
        if request.method != "GET"
            && !request.query.contains("dryRun")
            && !is_event(&request)
            && !request.path.contains("reviews")
        {
            self.writes += 1;
        }
        match self.server.handle(&request, now) {
            Answer::Response {
                status,
                headers,
                body,
                changes,
            } => {
                self.log(|| {
                    format!(
                        "p{process} {} -> {status}{}",
                        shown(&request),
                        told(status, &body)
                    )
                });
                // A refused write, or a write without effect, leaves the cluster at rest.
                if !changes.is_empty() && !is_event(&request) {
                    self.changed = Instant::now();
                }
                for text in account::overstepped(&request, &changes) {
                    self.violate("account", text);
                }
                self.accept(&changes);
                let mut response = http::Response::builder().status(status);
                for (name, value) in &headers {
                    response = response.header(name, value);
                }
                complete(response, body)
            }
            Answer::Watch(watch) => {
                self.log(|| format!("p{process} {} -> watch", shown(&request)));
                self.open(process, watch, &request, lag)
            }
        }
    }

    /// Sends a request of a user or of a stand-in, and returns true if the API server accepts it. A refusal is a defect of the scenario, so
    /// it is recorded as a violation; the object, or the CRD of its kind, may be absent, because a fault held the controllers up.
    pub(crate) fn act(&mut self, request: &Request) -> bool {
        let status = self.send(request);
        if status >= 400 && status != 404 {
            self.violate(
                "scenario",
                format!("{} {} failed: {status}", request.method, request.path),
            );
        }
        status < 400
    }

    /// Sends a request of a user or of a stand-in, and returns the status code.
    pub(crate) fn send(&mut self, request: &Request) -> u16 {
        let now = self.now();
        let Answer::Response {
            status,
            body,
            changes,
            ..
        } = self.server.handle(request, now)
        else {
            return 0;
        };
        self.log(|| {
            format!(
                "{:?} {} -> {status}{}",
                request.actor,
                shown(request),
                told(status, &body)
            )
        });
        self.changed = Instant::now();
        self.accept(&changes);
        status
    }

    /// Checks the invariants on accepted changes and updates the hashes.
    fn accept(&mut self, changes: &[Change]) {
        for change in changes {
            for mut violation in self.invariants.observe(change) {
                self.log(|| format!("VIOLATION {}: {}", violation.invariant, violation.text));
                violation.seed.clear();
                self.violations.push(violation);
            }
            let old = self.hashes.remove(&change.object).unwrap_or_default();
            self.hash ^= old;
            if let Some(after) = &change.after {
                let new = hash::object(&change.object, after);
                self.hashes.insert(change.object.clone(), new);
                self.hash ^= new;
                if change.object.kind == "Deployment" && change.object.group == "apps" {
                    self.deployments.insert(user::path_of(after));
                }
            }
        }
    }

    /// Returns a hash of all objects, without fields that differ between equal runs.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns true if the control plane has work to do.
    pub(crate) fn is_dirty(&self) -> bool {
        self.ticked != self.revision() || !self.deployments.is_empty()
    }

    /// Runs one pass of the control plane: garbage collection, namespaces, CRDs, and the status of Deployments.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        // What one controller of the control plane changes can be work for another, so another pass follows a pass with changes.
        self.ticked = self.revision();
        let changes = self.server.tick(now);
        if !changes.is_empty() {
            self.changed = Instant::now();
            for change in &changes {
                self.log(|| {
                    format!(
                        "control plane: {}{}",
                        change.object,
                        if change.after.is_none() { " is gone" } else { "" }
                    )
                });
            }
            self.accept(&changes);
        }
        for path in std::mem::take(&mut self.deployments) {
            let deployment = self
                .objects()
                .into_iter()
                .find(|object| object["kind"] == "Deployment" && user::path_of(object) == path);
            if let Some(request) = deployment.and_then(|deployment| user::deployment_status(&deployment)) {
                self.act(&request);
                self.deployments.remove(&path);
            }
        }
    }

    /// Returns the request with a stable name and the virtual time if it writes an Event. kube puts the time of the machine into
    /// both, so runs would differ.
    fn with_stable_name(&mut self, request: &Request) -> Request {
        let mut request = request.clone();
        if !is_event(&request) {
            return request;
        }
        let mut event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let name = event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let next = format!("event-{}", self.events.len());
        let stable = self.events.entry(name.clone()).or_insert(next).clone();
        event["metadata"]["name"] = stable.clone().into();
        // kube writes the time of the machine here too. In whole seconds, more runs write equal events and share their answers.
        let now = self.now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
        for pointer in ["/eventTime", "/series/lastObservedTime"] {
            if let Some(time) = event.pointer_mut(pointer) {
                *time = now.clone().into();
            }
        }
        request.path = request.path.replace(&name, &stable);
        request.body = event.to_string().into_bytes();
        request
    }

    /// Returns a violation for each object that outlived its extension.
    pub(crate) fn left_over(&self) -> Vec<Violation> {
        self.invariants.finish()
    }
}

/// Builds an answer with a complete body.
pub(crate) fn complete(builder: http::response::Builder, body: Vec<u8>) -> http::Response<AnswerBody> {
    builder
        .body(Either::Left(Full::from(body)))
        .unwrap_or_default_body()
}

/// Turns an invalid answer into an empty one.
trait OrEmpty {
    fn unwrap_or_default_body(self) -> http::Response<AnswerBody>;
}

impl OrEmpty for Result<http::Response<AnswerBody>, http::Error> {
    fn unwrap_or_default_body(self) -> http::Response<AnswerBody> {
        self.unwrap_or_else(|_| http::Response::new(Either::Left(Full::default())))
    }
}

fn key_of(object: &Value) -> ObjectKey {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ObjectKey {
        group: api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
            .to_owned(),
        kind: text(&object["kind"]),
        namespace: object["metadata"]["namespace"].as_str().map(ToOwned::to_owned),
        name: text(&object["metadata"]["name"]),
    }
}
