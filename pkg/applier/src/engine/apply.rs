//! Applying: look, decide, dry-run what is new, write, probe.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, PatchParams};
use olm_api::{CollisionProtection, keys};
use olm_bundle::escaped_json;
use serde_json::{Value, json};

use super::actor::Writer;
use super::call::{CallError, together};
use super::endpoint::Endpoint;
use super::{Applied, Engine, EngineError, Id, Remembered, Revision, RevisionPhase};
use crate::ownership::{Claim, Identity, claim};
use crate::probe::Verdict;
use crate::same::is_applied;
use crate::watch::{Sight, seen_of};

/// How often fields may be taken back from another field manager within [`FIGHT_WINDOW`].
const FIGHTS: usize = 5;
const FIGHT_WINDOW: Duration = Duration::from_mins(1);
/// How often an object that changes under our hands is looked at again before the attempt counts as failed.
const RACES: usize = 4;
/// The field manager of dry runs, so that they never meet a conflict with ourselves.
const DRY_RUN_MANAGER: &str = "dummy";

/// What was found of one object.
enum Look {
    /// Unchanged since it was applied.
    Idle(Verdict),
    /// Nothing to write, but its status may have changed.
    Status(Box<DynamicObject>),
    /// Not there.
    Absent,
    /// There, and it may be written.
    Write(Box<DynamicObject>, Claim),
    /// A newer revision has it.
    Progressed,
    /// Somebody else has it; the report says who.
    Collision(String),
}

struct Item<'a> {
    id: Id,
    desired: Value,
    hash: u64,
    protection: CollisionProtection,
    source: &'a Value,
}

impl Engine {
    /// Applies as many phases as are ready for it.
    pub async fn apply(&self, revision: &Revision) -> Result<Applied, EngineError> {
        self.settle(revision, false);
        let mut applied = Applied {
            complete: true,
            ..Applied::default()
        };
        let writer = Writer::new(self, revision);
        for (index, phase) in revision.phases.iter().enumerate() {
            let outcome = self.phase(revision, phase, &writer).await?;
            applied.superseded |= outcome.superseded;
            applied.repaired.extend(outcome.repaired);
            if let Some(line) = outcome.failing {
                applied.failing.push(line);
                applied.complete = false;
            }
            if !outcome.collisions.is_empty() {
                applied.collision = Some((index, outcome.collisions));
                applied.complete = false;
            }
            if !applied.complete {
                break;
            }
        }
        self.settle(revision, applied.complete && !applied.superseded);
        Ok(applied)
    }

    async fn phase(
        &self,
        revision: &Revision,
        phase: &RevisionPhase,
        writer: &Writer<'_>,
    ) -> Result<PhaseOutcome, EngineError> {
        let us = &revision.identity;
        let items: Vec<Item<'_>> = phase
            .objects
            .iter()
            .map(|(object, rule)| item(object, *rule, us))
            .collect();
        let looks = together(
            items
                .iter()
                .map(|item| self.look(revision, writer, item).boxed())
                .collect(),
        )
        .await;
        let looks = all(looks)?;

        let collisions: Vec<String> = looks
            .iter()
            .filter_map(|look| {
                if let Look::Collision(report) = look {
                    Some(report.clone())
                } else {
                    None
                }
            })
            .collect();
        let new = |look: &Look| matches!(look, Look::Absent | Look::Write(_, Claim::Adopt));
        let fresh: Vec<&Item<'_>> = items
            .iter()
            .zip(&looks)
            .filter_map(|(item, look)| new(look).then_some(item))
            .collect();
        // One object is written whole or not at all anyway.
        let checked = match fresh.as_slice() {
            [_] if collisions.is_empty() => Vec::new(),
            all => {
                together(
                    all.iter()
                        .map(|item| self.preflight(writer, item).boxed())
                        .collect(),
                )
                .await
            }
        };
        let refused = all(checked).err();

        // What is ours already is kept right even when the rest of the phase has to wait.
        let blocked = refused.is_some() || !collisions.is_empty();
        let work = items.iter().zip(looks).map(|(item, look)| {
            let skip = blocked && new(&look);
            async move {
                if skip {
                    Ok(None)
                } else {
                    self.write_current(revision, writer, item, look).await.map(Some)
                }
            }
            .boxed()
        });
        let written = together(work.collect()).await;
        if let Some(error) = refused {
            return Err(error);
        }
        let mut outcome = PhaseOutcome {
            collisions,
            ..PhaseOutcome::default()
        };
        for (item, result) in items.iter().zip(all(written)?) {
            let verdict = match result {
                Some(Written::Progressed) => {
                    outcome.superseded = true;
                    continue;
                }
                Some(Written::Done(verdict)) => verdict,
                Some(Written::Repaired(verdict)) => {
                    outcome.repaired.push(item.id.report());
                    verdict
                }
                Some(Written::Collision) | None => continue,
            };
            if !verdict.ready && outcome.failing.is_none() {
                let messages = verdict.messages.join(" and ");
                outcome.failing = Some(format!("Object {}: {messages}", item.id.report()));
            }
        }
        Ok(outcome)
    }

    async fn look(
        &self,
        revision: &Revision,
        writer: &Writer<'_>,
        item: &Item<'_>,
    ) -> Result<Look, EngineError> {
        let us = &revision.identity;
        let endpoint = self.endpoint(&item.id).await?;
        self.watches.need(us, &item.id.watch_kind(), &endpoint.resource);
        let known = self
            .recall(&us.uid, &item.id)
            .filter(|known| known.desired == item.hash);
        if let Some(known) = &known {
            let id = &item.id;
            let sight = self.watches.sight(&id.watch_kind(), &id.namespace, &id.name);
            let interval = if sight == Sight::Unknown {
                self.interval(&self.memory.lock())
            } else {
                Duration::ZERO
            };
            if known.stands(&sight, interval) {
                return Ok(Look::Idle(known.verdict.clone()));
            }
        }
        let endpoint = self.endpoint_of(writer.reader().await?, &item.id).await?;
        let live = endpoint.read().await.map_err(|source| {
            if source.code() == 404 {
                self.forget_kind(&item.id);
            }
            EngineError::object(&item.id, "getting resource", source)
        })?;
        let Some(live) = live else { return Ok(Look::Absent) };
        if let Some(known) = &known {
            let now = seen_of(&live.metadata);
            if now.uid == known.uid && now.fingerprint == known.fingerprint {
                return Ok(Look::Status(Box::new(live)));
            }
        }
        if live.metadata.deletion_timestamp.is_some() {
            return Err(EngineError::invalid(
                &item.id,
                "the object is being deleted; it is made anew when it is gone".to_owned(),
            ));
        }
        Ok(match claim(&live.metadata, us, item.protection) {
            Claim::Progressed => Look::Progressed,
            Claim::Collision { controller } => {
                let probe = revision.prober.check(&value_of(&live, &item.id));
                Look::Collision(collision_report(&item.id, controller.as_ref(), &probe))
            }
            // After a restart, mostly: all is as it was applied.
            Claim::Ours if is_applied(&live, &item.desired) => Look::Status(Box::new(live)),
            claim => Look::Write(Box::new(live), claim),
        })
    }

    /// Asks the API server whether it would take the object. Nothing is written.
    async fn preflight(&self, writer: &Writer<'_>, item: &Item<'_>) -> Result<(), EngineError> {
        let endpoint = self.endpoint_of(writer.client().await?, &item.id).await?;
        let params = PatchParams::apply(DRY_RUN_MANAGER).dry_run().force();
        match endpoint.apply(&params, &item.desired).await {
            Ok(_) => Ok(()),
            Err(source) => {
                if source.code() == 404 {
                    self.forget_kind(&item.id);
                }
                Err(EngineError::validating(&item.id, source))
            }
        }
    }

    /// Writes one object. One that was changed between the look and the write, as a Deployment's status often is in a
    /// rollout, is looked at again at once: that is no failure that anybody should read of.
    async fn write_current(
        &self,
        revision: &Revision,
        writer: &Writer<'_>,
        item: &Item<'_>,
        mut look: Look,
    ) -> Result<Written, EngineError> {
        let mut races = 0;
        loop {
            match self.write(revision, writer, item, look).await {
                Err(error) if races < RACES && error.is_race() => {
                    races += 1;
                    look = match self.look(revision, writer, item).await? {
                        // To be reported with its phase, by the next attempt.
                        Look::Collision(_) => return Err(error),
                        again => again,
                    };
                }
                done => return done,
            }
        }
    }

    async fn write(
        &self,
        revision: &Revision,
        writer: &Writer<'_>,
        item: &Item<'_>,
        look: Look,
    ) -> Result<Written, EngineError> {
        let (live, step) = match look {
            Look::Idle(verdict) => return Ok(Written::Done(verdict)),
            Look::Progressed => return Ok(Written::Progressed),
            Look::Collision(_) => return Ok(Written::Collision),
            Look::Status(live) => {
                let forced = self
                    .recall(&revision.identity.uid, &item.id)
                    .map(|r| r.forced)
                    .unwrap_or_default();
                return Ok(Written::Done(self.conclude(revision, item, &live, forced)));
            }
            Look::Absent => (None, "creating resource"),
            Look::Write(live, Claim::Adopt) => (Some(live), "patching (owner change)"),
            Look::Write(live, _) => (Some(live), "patching (modified)"),
        };
        let before = self.recall(&revision.identity.uid, &item.id);
        let drifted = before.as_ref().is_some_and(|known| known.desired == item.hash);
        let endpoint = self.endpoint_of(writer.client().await?, &item.id).await?;
        let body = body_of(item, live.as_deref(), &revision.identity);
        let mut forced = before.map(|known| known.forced).unwrap_or_default();
        let result = match apply(&endpoint, &body, false).await {
            // Only what is ours is taken back by force; a race on an absent object is looked at again.
            Err(error) if live.is_some() && !error.field_conflicts().is_empty() => {
                let now = Instant::now();
                forced.retain(|at| now.duration_since(*at) < FIGHT_WINDOW);
                if forced.len() >= FIGHTS {
                    let conflicts = error.field_conflicts().join("; ");
                    return Err(EngineError::invalid(
                        &item.id,
                        format!(
                            "another field manager keeps changing what this revision sets ({conflicts}); make it stop, or leave the field to this extension"
                        ),
                    ));
                }
                forced.push(now);
                tracing::info!(object = item.id.report(), conflicts = ?error.field_conflicts(), "taking fields back");
                let again = apply(&endpoint, &body, true).await;
                again.map_err(|source| EngineError::object(&item.id, "patching (conflict)", source))
            }
            other => other.map_err(|source| EngineError::object(&item.id, step, source)),
        };
        let object = result.inspect_err(|error| {
            if let EngineError::Object { source, .. } = error
                && source.code() == 404
            {
                self.forget_kind(&item.id);
            }
        })?;
        let verdict = self.conclude(revision, item, &object, forced);
        Ok(if drifted {
            Written::Repaired(verdict)
        } else {
            Written::Done(verdict)
        })
    }

    /// Probes the object and remembers how it is now.
    fn conclude(
        &self,
        revision: &Revision,
        item: &Item<'_>,
        object: &DynamicObject,
        forced: Vec<Instant>,
    ) -> Verdict {
        let verdict = revision.prober.check(&value_of(object, &item.id));
        let seen = seen_of(&object.metadata);
        let remembered = Remembered {
            desired: item.hash,
            uid: seen.uid,
            version: seen.version,
            fingerprint: seen.fingerprint,
            verdict: verdict.clone(),
            probed: revision.prober.selects(item.source),
            at: Instant::now(),
            forced,
        };
        self.remember(&revision.identity.uid, &item.id, remembered);
        verdict
    }
}

#[derive(Default)]
struct PhaseOutcome {
    superseded: bool,
    repaired: Vec<String>,
    failing: Option<String>,
    collisions: Vec<String>,
}

enum Written {
    Done(Verdict),
    /// It had been applied, and was not as it was to be any more.
    Repaired(Verdict),
    Progressed,
    Collision,
}

fn all<T>(results: Vec<Result<T, EngineError>>) -> Result<Vec<T>, EngineError> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => good.push(value),
            Err(error) => bad.push(error),
        }
    }
    match (bad.len(), bad.pop()) {
        (1, Some(only)) => Err(only),
        (_, Some(last)) => {
            bad.push(last);
            Err(EngineError::Many(bad))
        }
        (_, None) => Ok(good),
    }
}

async fn apply(endpoint: &Endpoint, body: &Value, force: bool) -> Result<DynamicObject, CallError> {
    let mut params = PatchParams::apply(keys::OBJECT_FIELD_MANAGER);
    params.force = force;
    endpoint.apply(&params, body).await
}

fn item<'a>(object: &'a Value, protection: CollisionProtection, us: &Identity) -> Item<'a> {
    let id = Id::of(object);
    let mut desired = object.clone();
    if let Some(meta) = desired.get_mut("metadata") {
        if id.namespace.is_empty()
            && let Some(meta) = meta.as_object_mut()
        {
            meta.remove("namespace");
        }
        // Indexing a JSON object by a key that is missing makes it.
        if !meta.get("labels").is_some_and(Value::is_object) {
            meta["labels"] = json!({});
        }
        if !meta.get("annotations").is_some_and(Value::is_object) {
            meta["annotations"] = json!({});
        }
        meta["labels"][keys::MANAGED_BY_LABEL] = json!(keys::MANAGED_BY_VALUE);
        meta["labels"][keys::OWNER_NAME_LABEL] = json!(us.owner_name);
        meta["annotations"][keys::REVISION_ANNOTATION] = json!(us.number.to_string());
    }
    let mut hasher = DefaultHasher::new();
    escaped_json(&desired).hash(&mut hasher);
    Item {
        id,
        hash: hasher.finish(),
        desired,
        protection,
        source: object,
    }
}

/// The object as it is applied: with our controller reference, other owners kept as plain ones, and bound to the state that was looked at.
fn body_of(item: &Item<'_>, live: Option<&DynamicObject>, us: &Identity) -> Value {
    let mut body = item.desired.clone();
    let mut owners = vec![json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet", "name": us.name, "uid": us.uid,
        "controller": true, "blockOwnerDeletion": true,
    })];
    if let Some(live) = live {
        for owner in live.metadata.owner_references.iter().flatten() {
            let sibling = us.siblings.iter().any(|s| s.uid == owner.uid);
            if owner.uid != us.uid && (owner.controller == Some(true) || sibling) {
                owners.push(json!({
                    "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid,
                    "controller": false, "blockOwnerDeletion": owner.block_owner_deletion.unwrap_or(false),
                }));
            }
        }
        if let Some(meta) = body.get_mut("metadata") {
            meta["resourceVersion"] = json!(live.metadata.resource_version);
            meta["uid"] = json!(live.metadata.uid);
        }
    }
    if let Some(meta) = body.get_mut("metadata") {
        meta["ownerReferences"] = Value::Array(owners);
    }
    body
}

/// The object for the probes, with its kind, which the API server's answer may leave out.
fn value_of(object: &DynamicObject, id: &Id) -> Value {
    let mut value = object.data.clone();
    if !value.is_object() {
        value = json!({});
    }
    value["apiVersion"] = json!(id.api_version());
    value["kind"] = json!(id.kind);
    value["metadata"] = json!({
        "generation": object.metadata.generation, "labels": object.metadata.labels,
        "annotations": object.metadata.annotations, "name": object.metadata.name,
        "namespace": object.metadata.namespace,
    });
    value
}

fn collision_report(id: &Id, controller: Option<&OwnerReference>, probe: &Verdict) -> String {
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
