//! Sequences that the control plane's controllers act on: garbage collection and namespaces. Both servers are compared after they
//! have come to rest.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use olm_world::World;
use serde_json::{Value, json};

use crate::rng::Rng;
use crate::run::{Pair, ask_real, ask_world};
use crate::step::Step;

/// Limit for the real controllers to come to rest.
const LIMIT: Duration = Duration::from_secs(30);
/// Limit for the removal of what a sequence has left, on a busy machine.
pub(crate) const CLEANED: Duration = Duration::from_mins(5);
/// Time without a change after which the real garbage collector is taken to be at rest. The namespace controller has longer rests.
const STUCK: Duration = Duration::from_secs(5);
/// Time without a difference after which the real controllers are taken to be at rest.
const QUIET: Duration = Duration::from_millis(600);
/// First pause between two looks at the real server; each is twice as long as the one before, up to the longest.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// Beginning of the lists of a sequence that only the garbage collector acts on.
const LISTS: &str = "/api/v1/namespaces/{ns}/";
/// Namespace of a sequence that deletes one.
const HOME: &str = "/api/v1/namespaces/{w}-home";
/// Limit for the states of a world on the way to its outcomes, and for the rounds of its controllers.
const OUTCOMES: usize = 20_000;
const ROUNDS: usize = 50;
/// Namespaced kinds of owners and dependents.
const PLURALS: [(&str, &str); 2] = [("ConfigMap", "configmaps"), ("Secret", "secrets")];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Returns the steps of a seed.
pub(crate) fn sequence(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed ^ 0x5e77_1e00);
    let mut out = Vec::new();
    let namespaced = rng.chance(25);
    let home = if namespaced { "{w}-home" } else { "{ns}" };
    if namespaced {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}});
        out.push(Step::new("POST", "/api/v1/namespaces").body(body));
    }
    let mut made: Vec<(&str, &str)> = Vec::new();
    for name in NAMES {
        let (kind, plural) = rng.pick(&PLURALS);
        let mut metadata = json!({"name": format!("t-{name}")});
        let mut owners = Vec::new();
        for (kind, owner) in &made {
            if rng.chance(55) {
                owners.push(
                    json!({"apiVersion": "v1", "kind": kind, "name": format!("t-{owner}"),
                    "uid": format!("${{uid:{kind}/{owner}}}"), "blockOwnerDeletion": rng.chance(60)}),
                );
            }
        }
        // The garbage collector drops owners of an object that is not yet being deleted, and a namespace deletes its kinds in
        // random order: which owners a held object keeps there is chance.
        let holds = rng.chance(20) && (owners.is_empty() || !namespaced);
        if !owners.is_empty() {
            metadata["ownerReferences"] = json!(owners);
        }
        if holds {
            metadata["finalizers"] = json!(["world.test/f1"]);
        }
        let body = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        out.push(Step::new("POST", format!("/api/v1/namespaces/{home}/{plural}")).body(body));
        made.push((kind, name));
    }
    if namespaced {
        out.push(Step::new("DELETE", format!("/api/v1/namespaces/{home}")));
        return out;
    }
    for _ in 0..=rng.below(2) {
        let (kind, name) = made[rng.below(2)];
        let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
        let policy = rng.pick(&["Foreground", "Background", "Orphan"]);
        let step = Step::new("DELETE", format!("/api/v1/namespaces/{home}/{plural}/t-{name}"));
        out.push(step.body(json!({"propagationPolicy": policy})));
    }
    out
}

impl Pair {
    /// Runs a sequence on both servers, and returns the differences after both came to rest.
    pub(crate) async fn settle(&self, steps: &[Step]) -> Result<Vec<String>> {
        let read = reads(steps);
        let found = self.settled(steps, &read).await;
        self.sweep_settled(&read).await?;
        found
    }

    async fn settled(&self, steps: &[Step], read: &[Step]) -> Result<Vec<String>> {
        let mut worlds = vec![self.world.clone()];
        let (mut seen_world, mut seen_real) = (self.seen(), self.seen());
        for step in steps {
            let theirs = ask_real(&self.client, step, &seen_real).await?;
            seen_real.record(&theirs.body);
            let seen = seen_world.clone();
            for world in &mut worlds {
                let ours = ask_world(world, step, &seen);
                seen_world.record(&ours.body);
                if ours.status != theirs.status {
                    return Ok(vec![format!("{step}: {} and {}", ours.status, theirs.status)]);
                }
            }
            if step.method == "DELETE" {
                worlds = worlds.iter().flat_map(|world| rests(world, read)).collect();
                let found = self.at_rest(&mut worlds, read).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Waits until the real server is as one of the worlds, and stays so, and keeps the worlds that are like it. Returns the
    /// differences after a time limit.
    pub(crate) async fn at_rest(&self, worlds: &mut Vec<World>, read: &[Step]) -> Result<Vec<String>> {
        let mut ours: Vec<Value> = Vec::new();
        worlds.retain_mut(|world| {
            let state = self.state_of_world(world, read);
            let new = !ours.contains(&state);
            if new {
                ours.push(state);
            }
            new
        });
        let limit = if collects(read) { STUCK } else { LIMIT };
        let mut changed = tokio::time::Instant::now();
        let end = changed + LIMIT;
        let mut last = Value::Null;
        let mut pause = PAUSE;
        loop {
            let theirs = self.state_of_real(read).await?;
            if theirs != last {
                changed = tokio::time::Instant::now();
                last.clone_from(&theirs);
            }
            if let Some(at) = ours.iter().position(|ours| *ours == theirs) {
                tokio::time::sleep(QUIET).await;
                if self.state_of_real(read).await? == theirs {
                    *worlds = vec![worlds.swap_remove(at)];
                    return Ok(Vec::new());
                }
            }
            if changed.elapsed() > limit || tokio::time::Instant::now() > end {
                let mut lines: Vec<String> =
                    ours.iter().map(|ours| format!("the world has {ours}")).collect();
                lines.push(format!("kube-apiserver has {theirs}"));
                return Ok(lines);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn state_of_world(&self, world: &mut World, read: &[Step]) -> Value {
        let seen = self.seen();
        let answers = read.iter().map(|step| ask_world(world, step, &seen).body);
        json!(answers.map(|body| state(&body)).collect::<Vec<_>>())
    }

    async fn state_of_real(&self, read: &[Step]) -> Result<Value> {
        let seen = self.seen();
        let mut out = Vec::new();
        for step in read {
            out.push(state(&ask_real(&self.client, step, &seen).await?.body));
        }
        Ok(json!(out))
    }

    /// Removes what a sequence left on the real server.
    async fn sweep_settled(&self, read: &[Step]) -> Result<()> {
        let seen = self.seen();
        for list in read.iter().filter(|step| step.path != HOME) {
            let listed = ask_real(&self.client, list, &seen).await?;
            for item in ours(&listed.body) {
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{}/{name}", list.path);
                if item["metadata"]["finalizers"].is_array() {
                    self.release(&path).await?;
                }
                if item["metadata"]["deletionTimestamp"].is_null() {
                    self.delete(&path).await?;
                }
            }
        }
        if read.iter().all(|step| step.path != HOME) {
            return Ok(());
        }
        self.delete(HOME).await?;
        let gone = Step::new("GET", HOME);
        olm_harness::eventually(CLEANED, "the namespace of a sequence is gone", async || {
            let answer = ask_real(&self.client, &gone, &seen).await?;
            anyhow::ensure!(answer.status == 404, "{}", answer.body);
            Ok(())
        })
        .await
    }
}

/// Returns true if only the garbage collector acts on what a sequence reads.
fn collects(read: &[Step]) -> bool {
    read.iter().all(|step| step.path.starts_with(LISTS))
}

/// Returns the worlds in which the controllers can come to rest. The end of a namespace has one outcome.
fn rests(world: &World, read: &[Step]) -> Vec<World> {
    let now = Timestamp::now();
    if collects(read) {
        return world.outcomes(now, OUTCOMES);
    }
    let mut world = world.clone();
    world.settle(now, ROUNDS);
    vec![world]
}

/// Returns the requests that read what a sequence is about: lists, and its namespace if it has one of its own.
fn reads(steps: &[Step]) -> Vec<Step> {
    let namespaced = steps.iter().any(|step| step.path.starts_with(HOME));
    let home = if namespaced { "{w}-home" } else { "{ns}" };
    let lists = PLURALS
        .iter()
        .map(|(_, plural)| format!("/api/v1/namespaces/{home}/{plural}"));
    let paths = lists.chain(namespaced.then(|| HOME.to_owned()));
    paths.map(|path| Step::new("GET", path)).collect()
}

/// Returns the objects of the sequences in a list.
fn ours(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten().filter(|item| {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        name.starts_with("t-")
    })
}

/// Returns what the controllers decide about: existence, deletion, finalizers, owners, the status of a CRD.
fn state(answer: &Value) -> Value {
    let one = |object: &Value| {
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        json!({
            "name": metadata["name"], "deleting": metadata["deletionTimestamp"].is_string(),
            "finalizers": metadata["finalizers"], "phase": object["status"]["phase"],
            "owners": owners.map(|owner| owner["name"].clone()).collect::<Vec<_>>(),
        })
    };
    if answer["kind"] == "Status" {
        return json!(answer["code"]);
    }
    if answer.is_string() {
        // The path is not served.
        return json!("unserved");
    }
    if answer["kind"] == "CustomResourceDefinition" {
        return crate::crds::state(answer);
    }
    match answer.get("items") {
        None => one(answer),
        Some(_) => json!(ours(answer).map(one).collect::<Vec<_>>()),
    }
}
