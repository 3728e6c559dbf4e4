//! Apply: read what may exist, decide, write, probe.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, PatchParams};
use olm_api::{CollisionProtection, keys};
use serde_json::{Value, json};

use super::adopted::after_apply;
use super::aggregated::REFRESH;
use super::call::{CallError, run_concurrently};
use super::endpoint::Endpoint;
use super::impersonate::RevisionClients;
use super::request::request_body;
use super::{
    Applied, AppliedObject, Engine, EngineError, Id, PreparedObject, Reads, Repairs, Revision, RevisionPhase,
};
use crate::applied::is_applied;
use crate::custom_resources::is_kept;
use crate::ownership::{Claim, Identity, claim, has_marks_of_another, is_of_sibling};
use crate::probe::ProbeResult;
use crate::watch::{WatchState, now, object_version};
use crate::workload::Workload;

/// Maximum number of times that fields are taken over from another field manager within [`REPAIR_WINDOW`].
const MAX_TAKEOVERS: usize = 5;
/// Maximum number of other repairs of an object within [`REPAIR_WINDOW`].
///
/// A client that removes a label or deletes the object causes no conflict of field managers. The event of each of its writes triggers the
/// next repair at once, so the repairs would go on at the speed of the requests.
const MAX_REPAIRS: usize = 5;
const REPAIR_WINDOW: Duration = Duration::from_mins(1);
/// Maximum number of retries for an object that others change at the same time.
const MAX_RETRIES: usize = 4;

/// State of an object before the write. No state holds the content of the object: a phase can have fifty CRDs of half a megabyte.
pub(super) enum ObjectState {
    /// The object needs no write, or the revision only observes it.
    Probed(ProbeResult),
    /// The object does not exist, or no watch shows it; the write fails if it exists.
    Absent,
    /// The object, given by its metadata alone, exists and may be written.
    Write(Box<DynamicObject>, Claim),
    /// A newer revision owns the object.
    Superseded,
    /// Another owner has the object; holds the report.
    Collision(String),
}

impl ObjectState {
    /// Returns true if the object is to be taken over from another revision of the extension.
    pub(super) fn is_of_sibling(&self, identity: &Identity) -> bool {
        matches!(self, Self::Write(live, Claim::Adopt) if is_of_sibling(&live.metadata, identity))
    }
}

/// Source of the state of an object that was not applied yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// A reliable watch that does not show the object.
    Watch,
    /// Only a read.
    Nothing,
}

impl Engine {
    /// Applies phases in order, up to the first one that is not ready. With [`Revision::observe`], the objects are read and
    /// probed, and nothing is written.
    pub async fn apply(&self, revision: &Revision) -> Result<Applied, EngineError> {
        self.record_completion(revision, false);
        let mut applied = Applied {
            complete: true,
            ..Applied::default()
        };
        let clients = RevisionClients::new(self, revision);
        let mut unready = Vec::new();
        for (index, phase) in revision.phases.iter().enumerate() {
            let outcome = self.phase(revision, phase, &clients).await?;
            applied.superseded |= outcome.superseded;
            applied.repaired.extend(outcome.repaired);
            unready.extend(outcome.workloads);
            applied.recheck = applied.recheck.or(outcome.recheck);
            if let Some(line) = outcome.failing {
                applied.failing.push(line);
                applied.complete = false;
            }
            applied.outdated = outdated_for(&outcome.outdated, now());
            if !outcome.collisions.is_empty() {
                applied.collision = Some((index, outcome.collisions));
                applied.complete = false;
            }
            if !applied.complete {
                break;
            }
        }
        applied.reason = self.reason(revision, &unready, &clients).await;
        let done = applied.complete && !applied.superseded && !revision.observe;
        self.record_completion(revision, done);
        Ok(applied)
    }

    /// Watches the pods of the workloads that are not ready, and no others. Returns the reason that they give so far; a
    /// change of the reason triggers the revision.
    async fn reason(
        &self,
        revision: &Revision,
        unready: &[Workload],
        clients: &RevisionClients<'_>,
    ) -> Option<String> {
        let uid = &revision.identity.uid;
        let missing = self.pods.keep(uid, unready);
        if !missing.is_empty() {
            // Without its account, the revision reports more than the reason of its pods.
            let client = clients.reader().await.ok()?;
            for workload in missing {
                let review = self.reads == Reads::AsAccount;
                self.pods.watch(&revision.identity, workload, client, review);
            }
        }
        self.pods.sentence(uid)
    }

    async fn phase(
        &self,
        revision: &Revision,
        phase: &RevisionPhase,
        clients: &RevisionClients<'_>,
    ) -> Result<PhaseOutcome, EngineError> {
        let items = &phase.objects;
        let states = run_concurrently(
            items
                .iter()
                .map(|item| self.read_state(revision, clients, item, Trust::Watch).boxed())
                .collect(),
        )
        .await;
        let states = collect(states)?;
        self.check_takeover(revision, items.iter().zip(&states)).await?;

        let work = items
            .iter()
            .zip(states)
            .map(|(item, state)| self.write_with_retries(revision, clients, item, state).boxed());
        let written = run_concurrently(work.collect()).await;
        let mut outcome = PhaseOutcome::default();
        for (item, result) in items.iter().zip(collect(written)?) {
            let mut probe = match result {
                Written::Superseded => {
                    outcome.superseded = true;
                    continue;
                }
                Written::Done(probe) => probe,
                Written::Repaired(probe) => {
                    outcome.repaired.push(item.id.report());
                    probe
                }
                Written::Collision(report) => {
                    outcome.collisions.push(report);
                    continue;
                }
            };
            if probe.ready
                && let Some(missing) = self.undiscovered(&revision.identity.uid, item).await?
            {
                probe.ready = false;
                probe.messages.push(missing);
                outcome.recheck = Some(REFRESH);
            }
            if !probe.ready {
                let cached = self.applied_object(&revision.identity.uid, &item.id);
                outcome.outdated.push(cached.and_then(|cached| cached.outdated));
            }
            outcome.workloads.extend(probe.workload);
            if !probe.ready && outcome.failing.is_none() {
                let messages = probe.messages.join(" and ");
                outcome.failing = Some(format!("Object {}: {messages}", item.id.report()));
            }
        }
        Ok(outcome)
    }

    /// Returns the state of an object, from the watch or by a read.
    ///
    /// An object that a reliable watch does not show belongs to no extension, and most likely does not exist: it is not read,
    /// and [`request_body`] makes its write fail if it does.
    async fn read_state(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        item: &PreparedObject,
        trust: Trust,
    ) -> Result<ObjectState, EngineError> {
        let identity = &revision.identity;
        let endpoint = self.endpoint(&item.id).await?;
        self.watches
            .need(identity, &item.id.watch_kind(), &endpoint.resource);
        let cached = self
            .applied_object(&identity.uid, &item.id)
            .filter(|cached| cached.desired == item.hash);
        let id = &item.id;
        let watch_state = self.watches.state(&id.watch_kind(), &id.namespace, &id.name);
        if let Some(cached) = &cached {
            let interval = if watch_state == WatchState::Unknown {
                self.interval(&self.cache.lock())
            } else {
                Duration::ZERO
            };
            if cached.is_current(&watch_state, interval) {
                return Ok(ObjectState::Probed(cached.probe.clone()));
            }
        }
        if trust == Trust::Watch
            && !revision.observe
            && matches!(watch_state, WatchState::NeverSeen(_) | WatchState::Deleted)
        {
            return Ok(ObjectState::Absent);
        }
        self.watches
            .expect(identity, &id.watch_kind(), &id.namespace, &id.name);
        let endpoint = self.endpoint_as(clients.reader().await?, &item.id).await?;
        let live = endpoint.read().await.map_err(|source| {
            if source.code() == 404 {
                self.forget_kind(&item.id);
            }
            EngineError::object(&item.id, "getting resource", source)
        })?;
        let Some(live) = live else {
            return Ok(ObjectState::Absent);
        };
        if let Some(cached) = &cached {
            let now = object_version(&id.watch_kind(), &live.metadata);
            if now.uid == cached.uid && now.fingerprint == cached.fingerprint {
                // Only the status may have changed.
                let repairs = cached.repairs.clone();
                return Ok(ObjectState::Probed(
                    self.probe_and_record(revision, item, live, repairs),
                ));
            }
        }
        if live.metadata.deletion_timestamp.is_some() {
            let watched = matches!(watch_state, WatchState::Present(_));
            return Err(EngineError::going(&item.id, watched));
        }
        let kept = item.id.can_stay() && is_kept(&live.metadata);
        // A CRD or Namespace that another removal left with what it holds has no owner and waits for one.
        let protection = match item.protection {
            CollisionProtection::Prevent if kept => CollisionProtection::IfNoController,
            protection => protection,
        };
        Ok(match claim(&live.metadata, identity, protection) {
            Claim::Superseded => ObjectState::Superseded,
            Claim::Collision { controller } => {
                let probe = revision.prober.check(&probe_input(live, &item.id));
                ObjectState::Collision(collision_report(&item.id, controller.as_ref(), &probe))
            }
            // The common case after a restart: the object is as it was applied.
            Claim::Owned
                if after_apply(&item.id, &live.metadata, identity).is_none()
                    && is_applied(&live, &item.desired) =>
            {
                let repairs = cached.map(|cached| cached.repairs).unwrap_or_default();
                ObjectState::Probed(self.probe_and_record(revision, item, live, repairs))
            }
            _ if revision.observe => ObjectState::Probed(revision.prober.check(&probe_input(live, &item.id))),
            claim => {
                self.check_adoption(revision, item, &live, &claim).await?;
                let mut live = live;
                live.data = Value::Null;
                // Decoded managed fields take more memory than the content.
                live.metadata.managed_fields = None;
                ObjectState::Write(Box::new(live), claim)
            }
        })
    }

    /// Writes one object. If the object changed between read and write, as a Deployment's status often does in a
    /// rollout, or if it exists although no watch shows it, the function reads and writes again at once, without an error for
    /// the user.
    async fn write_with_retries(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        item: &PreparedObject,
        mut state: ObjectState,
    ) -> Result<Written, EngineError> {
        let mut retries = 0;
        loop {
            let absent = matches!(state, ObjectState::Absent);
            match self.write(revision, clients, item, state).await {
                // An object that is not absent has field managers of its own.
                Err(error) if retries < MAX_RETRIES && (error.is_race() || absent && error.is_conflict()) => {
                    retries += 1;
                    state = self.read_state(revision, clients, item, Trust::Nothing).await?;
                    self.check_takeover(revision, [(item, &state)]).await?;
                }
                done => return done,
            }
        }
    }

    async fn write(
        &self,
        revision: &Revision,
        clients: &RevisionClients<'_>,
        item: &PreparedObject,
        state: ObjectState,
    ) -> Result<Written, EngineError> {
        let (live, call) = match state {
            ObjectState::Probed(probe) => return Ok(Written::Done(probe)),
            ObjectState::Superseded => return Ok(Written::Superseded),
            ObjectState::Collision(report) => return Ok(Written::Collision(report)),
            ObjectState::Absent if revision.observe => return Ok(Written::Done(absent())),
            ObjectState::Absent => (None, "creating resource"),
            ObjectState::Write(live, Claim::Adopt) => (Some(live), "patching (owner change)"),
            ObjectState::Write(live, _) => (Some(live), "patching (modified)"),
        };
        let before = self.applied_object(&revision.identity.uid, &item.id);
        // An object that a newer revision had taken over and handed back has not drifted.
        let handed_back = live
            .as_ref()
            .is_some_and(|live| has_marks_of_another(&live.metadata, &revision.identity));
        let drifted = !handed_back && before.as_ref().is_some_and(|cached| cached.desired == item.hash);
        let now = now();
        let mut repairs = before.map(|cached| cached.repairs).unwrap_or_default();
        for times in [&mut repairs.takeovers, &mut repairs.others] {
            times.retain(|at| now.duration_since(*at) < REPAIR_WINDOW);
        }
        if drifted && repairs.others.len() >= MAX_REPAIRS {
            let reason = format!(
                "another client keeps changing or deleting the object, which was repaired {MAX_REPAIRS} times within a minute; stop that client"
            );
            return Err(EngineError::invalid(&item.id, reason));
        }
        let mut taken_over = false;
        let endpoint = self.endpoint_as(clients.writer().await?, &item.id).await?;
        let body = request_body(item, live.as_deref(), &revision.identity);
        let result = match apply(&endpoint, &body, false).await {
            // Force only for own objects.
            Err(error) if live.is_some() && !error.field_conflicts().is_empty() => {
                if repairs.takeovers.len() >= MAX_TAKEOVERS {
                    let conflicts = error.field_conflicts().join("; ");
                    return Err(EngineError::invalid(
                        &item.id,
                        format!(
                            "another field manager keeps changing fields of this revision ({conflicts}); stop it, or leave the fields to this extension"
                        ),
                    ));
                }
                repairs.takeovers.push(now);
                taken_over = true;
                tracing::info!(object = item.id.report(), conflicts = ?error.field_conflicts(), "taking fields over");
                let again = apply(&endpoint, &body, true).await;
                again.map_err(|source| EngineError::object(&item.id, "patching (conflict)", source))
            }
            other => other.map_err(|source| EngineError::object(&item.id, call, source)),
        };
        let object = result.inspect_err(|error| {
            if let EngineError::Object { source, .. } = error
                && source.code() == 404
            {
                self.forget_kind(&item.id);
            }
        })?;
        if let Some(change) = after_apply(&item.id, &object.metadata, &revision.identity) {
            let params = PatchParams {
                field_manager: Some(keys::OBJECT_FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let changed = endpoint.merge_metadata(&params, &change).await;
            changed.map_err(|source| {
                EngineError::object(&item.id, "patching (adopting what another owner left)", source)
            })?;
        }
        // An apply that changes nothing keeps the resource version. It is common: the API server never returns some fields, such as
        // `stringData`, so that any change of the metadata by others leads to an apply.
        let before = live.and_then(|live| live.metadata.resource_version);
        let repaired = drifted && object.metadata.resource_version != before;
        if repaired && !taken_over {
            repairs.others.push(now);
        }
        let probe = self.probe_and_record(revision, item, object, repairs);
        Ok(if repaired {
            Written::Repaired(probe)
        } else {
            Written::Done(probe)
        })
    }

    /// Probes the object and records its state.
    fn probe_and_record(
        &self,
        revision: &Revision,
        item: &PreparedObject,
        object: DynamicObject,
        repairs: Repairs,
    ) -> ProbeResult {
        let version = object_version(&item.id.watch_kind(), &object.metadata);
        let input = probe_input(object, &item.id);
        let probe = revision.prober.check(&input);
        let before = probe
            .outdated
            .then(|| self.applied_object(&revision.identity.uid, &item.id))
            .flatten()
            .filter(|before| before.uid == version.uid);
        let applied = AppliedObject {
            desired: item.hash,
            uid: version.uid,
            resource_version: version.resource_version,
            fingerprint: version.fingerprint,
            probe: probe.clone(),
            outdated: outdated_since(&probe, before.and_then(|before| before.outdated), now()),
            // Probes can select by labels that others set.
            probed: revision.prober.selects(&input),
            at: now(),
            repairs,
        };
        self.record(&revision.identity.uid, &item.id, applied);
        probe
    }
}

/// Returns the time since which nothing but the age of the status fails; `before` is that time at the read before.
///
/// The API server keeps no such time: `metadata.managedFields` has the last write of each manager only, so frequent writes
/// would hide that nobody updates the status. After a restart, the time starts again.
fn outdated_since(probe: &ProbeResult, before: Option<Instant>, now: Instant) -> Option<Instant> {
    probe.outdated.then(|| before.unwrap_or(now))
}

/// Returns the longest time for which a status of a phase is outdated, given the time of each unready object; `None` if all objects
/// are ready or one of them is unready for another reason.
fn outdated_for(unready: &[Option<Instant>], now: Instant) -> Option<Duration> {
    let since: Option<Vec<Instant>> = unready.iter().copied().collect();
    let oldest = since?.into_iter().min()?;
    Some(now.duration_since(oldest))
}

/// Returns the probe of an object that does not exist, and that the revision only observes.
fn absent() -> ProbeResult {
    ProbeResult {
        ready: false,
        messages: vec!["the object does not exist".to_owned()],
        outdated: false,
        workload: None,
    }
}

#[derive(Default)]
struct PhaseOutcome {
    superseded: bool,
    repaired: Vec<String>,
    failing: Option<String>,
    /// For each object that is not ready, the time since which nothing but the age of its status fails.
    outdated: Vec<Option<Instant>>,
    /// Workloads that are not ready.
    workloads: Vec<Workload>,
    collisions: Vec<String>,
    /// Delay before the phase is to be looked at again without an event.
    recheck: Option<Duration>,
}

enum Written {
    Done(ProbeResult),
    /// The object was applied before, had drifted, and was changed back or created again.
    Repaired(ProbeResult),
    Superseded,
    /// Another owner has the object; holds the report.
    Collision(String),
}

fn collect<T>(results: Vec<Result<T, EngineError>>) -> Result<Vec<T>, EngineError> {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    match (errors.len(), errors.pop()) {
        (1, Some(only)) => Err(only),
        (_, Some(last)) => {
            errors.push(last);
            Err(EngineError::Multiple(errors))
        }
        (_, None) => Ok(values),
    }
}

async fn apply(endpoint: &Endpoint, body: &Value, force: bool) -> Result<DynamicObject, CallError> {
    let mut params = PatchParams::apply(keys::OBJECT_FIELD_MANAGER);
    params.force = force;
    endpoint.apply(&params, body).await
}

/// Returns the object for the probes, with its kind, which the API server's response may omit, and without managed fields.
fn probe_input(object: DynamicObject, id: &Id) -> Value {
    let DynamicObject { metadata, data, .. } = object;
    let mut value = if data.is_object() { data } else { json!({}) };
    value["apiVersion"] = json!(id.api_version());
    value["kind"] = json!(id.kind);
    let mut shown = json!({
        "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid,
        "generation": metadata.generation, "resourceVersion": metadata.resource_version,
        "creationTimestamp": metadata.creation_timestamp, "deletionTimestamp": metadata.deletion_timestamp,
        "labels": metadata.labels, "annotations": metadata.annotations, "finalizers": metadata.finalizers,
        "ownerReferences": metadata.owner_references,
    });
    if let Some(fields) = shown.as_object_mut() {
        // An absent field must be absent, for expressions that ask `has(self.metadata.labels)`.
        fields.retain(|_, field| !field.is_null());
    }
    value["metadata"] = shown;
    value
}

fn collision_report(id: &Id, controller: Option<&OwnerReference>, probe: &ProbeResult) -> String {
    let progress = if probe.ready {
        "Succeeded".to_owned()
    } else {
        format!("Failed\n  - {}", probe.messages.join("\n  - "))
    };
    let mut text = format!(
        "Object {}\nAction: \"Collision\"\nProbes:\n- Progress: {progress}",
        id.report()
    );
    match controller {
        Some(owner) => {
            let _ = std::fmt::Write::write_fmt(&mut text, format_args!(
                "\nConflicting Owner: {}, Kind={} {} (uid {})",
                owner.api_version, owner.kind, owner.name, owner.uid
            ));
        }
        None => text.push_str("\nIt exists already and belongs to no revision of this extension; delete it, or relax collisionProtection."),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outdated_status_has_the_time_of_its_first_read() {
        let first = now();
        let later = first + Duration::from_secs(20);
        let probe = |outdated| ProbeResult {
            ready: false,
            messages: Vec::new(),
            outdated,
            workload: None,
        };
        assert_eq!(outdated_since(&probe(true), None, first), Some(first));
        assert_eq!(outdated_since(&probe(true), Some(first), later), Some(first));
        assert_eq!(outdated_since(&probe(false), Some(first), later), None);
    }

    #[test]
    fn a_phase_is_outdated_if_all_its_unready_objects_are() {
        let first = now();
        let (second, third) = (first + Duration::from_secs(5), first + Duration::from_secs(20));
        assert_eq!(outdated_for(&[], third), None);
        assert_eq!(outdated_for(&[Some(second), None], third), None);
        assert_eq!(
            outdated_for(&[Some(second), Some(first)], third),
            Some(Duration::from_secs(20))
        );
    }
}
