//! Sequences that the control plane's controllers act on: garbage collection and namespaces. Both servers are compared after they
//! have come to rest.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::rng::Rng;
use crate::run::{Pair, ask_real, ask_world};
use crate::step::Step;

/// Limit for the real controllers to come to rest.
const LIMIT: Duration = Duration::from_secs(30);
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
        let mut world = self.world.clone();
        let (mut seen_world, mut seen_real) = (self.seen(), self.seen());
        let read = reads(steps);
        for step in steps {
            let ours = ask_world(&mut world, step, &seen_world);
            let theirs = ask_real(&self.client, step, &seen_real).await?;
            seen_world.record(&ours.body);
            seen_real.record(&theirs.body);
            // The controllers of the real server may act between two requests.
            if ours.status != theirs.status && step.method != "DELETE" {
                self.sweep_settled(&read).await?;
                return Ok(vec![format!("{step}: {} and {}", ours.status, theirs.status)]);
            }
            world.settle(Timestamp::now(), 50);
            if step.method == "DELETE" {
                let found = self.at_rest(&mut world, &read).await?;
                if !found.is_empty() {
                    self.sweep_settled(&read).await?;
                    return Ok(found);
                }
            }
        }
        self.sweep_settled(&read).await?;
        Ok(Vec::new())
    }

    /// Waits until the real server is as the world, and stays so; returns the differences after a time limit.
    pub(crate) async fn at_rest(&self, world: &mut olm_world::World, read: &[Step]) -> Result<Vec<String>> {
        let ours = self.state_of_world(world, read);
        let collects = read.iter().all(|step| step.path.starts_with(LISTS));
        let limit = if collects { STUCK } else { LIMIT };
        let mut changed = tokio::time::Instant::now();
        let end = changed + LIMIT;
        let mut last = Value::Null;
        let mut pause = PAUSE;
        loop {
            let mut theirs = self.state_of_real(read).await?;
            if theirs != last {
                changed = tokio::time::Instant::now();
                last.clone_from(&theirs);
            }
            if ours == theirs {
                tokio::time::sleep(QUIET).await;
                theirs = self.state_of_real(read).await?;
                if ours == theirs {
                    return Ok(Vec::new());
                }
            }
            if changed.elapsed() > limit || tokio::time::Instant::now() > end {
                return Ok(vec![
                    format!("the world has {ours}"),
                    format!("kube-apiserver has {theirs}"),
                ]);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn state_of_world(&self, world: &mut olm_world::World, read: &[Step]) -> Value {
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
        olm_harness::eventually(LIMIT, "the namespace of a sequence is gone", async || {
            let answer = ask_real(&self.client, &gone, &seen).await?;
            anyhow::ensure!(answer.status == 404, "{}", answer.body);
            Ok(())
        })
        .await
    }
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
