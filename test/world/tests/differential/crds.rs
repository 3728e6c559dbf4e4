//! The life of a CRD: created, established, and deleted with its custom resources.

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::crd;
use crate::rng::Rng;
use crate::run::{Pair, ask_real, ask_world};
use crate::settle::CLEANED;
use crate::step::Step;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "gadgets{w}.world.test";
const NAMES: [&str; 3] = ["a", "b", "c"];
const MERGE: &str = "application/merge-patch+json";

/// Returns the requests of a seed. Both servers come to rest after each.
pub(crate) fn sequence(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed ^ 0x00c4_d5ee);
    let scope = rng.pick(&["Namespaced", "Cluster"]);
    let list = list(scope);
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = crd("Gadget{w}", "gadgets{w}", scope, &schema, rng.chance(50));
    let mut out = vec![Step::new("POST", CRDS).body(crd)];
    let object = |name: &str, held: bool| {
        let mut object = json!({"apiVersion": "world.test/v1", "kind": "Gadget{w}",
            "metadata": {"name": format!("t-{name}")}});
        if held {
            object["metadata"]["finalizers"] = json!(["world.test/f1"]);
        }
        Step::new("POST", &list).body(object)
    };
    let held = rng.chance(60);
    for name in NAMES.iter().take(rng.below(NAMES.len() + 1)) {
        out.push(object(name, held && rng.chance(60)));
    }
    out.push(Step::new("DELETE", format!("{CRDS}/{NAME}")));
    // Refused: the CRD terminates, or is gone.
    out.push(object("c", false));
    for name in NAMES {
        let release = json!({"metadata": {"finalizers": null}});
        let mut release = Step::new("PATCH", format!("{list}/t-{name}")).body(release);
        release.content_type = MERGE;
        out.push(release);
    }
    out
}

fn list(scope: &str) -> String {
    let home = if scope == "Namespaced" {
        "namespaces/{ns}/"
    } else {
        ""
    };
    format!("/apis/world.test/v1/{home}gadgets{{w}}")
}

/// Returns what the API server's controllers decide about a CRD.
pub(crate) fn state(crd: &Value) -> Value {
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    let conditions =
        conditions.map(|condition| json!([condition["type"], condition["status"], condition["reason"]]));
    json!({
        "deleting": crd["metadata"]["deletionTimestamp"].is_string(), "finalizers": crd["metadata"]["finalizers"],
        "generation": crd["metadata"]["generation"], "spec": crd["spec"]["names"],
        "names": crd["status"]["acceptedNames"], "versions": crd["status"]["storedVersions"],
        "conditions": conditions.collect::<Vec<_>>(),
    })
}

impl Pair {
    /// Runs a sequence on both servers; both come to rest after each request. Returns the first differences.
    pub(crate) async fn life_of_crd(&self, steps: &[Step]) -> Result<Vec<String>> {
        let result = self.compared_life(steps).await;
        let seen = self.seen();
        let path = format!("{CRDS}/{NAME}");
        ask_real(&self.client, &Step::new("DELETE", &path), &seen).await?;
        for step in steps.iter().filter(|step| step.method == "PATCH") {
            ask_real(&self.client, step, &seen).await?;
        }
        let gone = Step::new("GET", &path);
        olm_harness::eventually(CLEANED, "the CRD of a sequence is gone", async || {
            let answer = ask_real(&self.client, &gone, &seen).await?;
            anyhow::ensure!(answer.status == 404, "{}", answer.body);
            Ok(())
        })
        .await?;
        result
    }

    async fn compared_life(&self, steps: &[Step]) -> Result<Vec<String>> {
        let scope = steps[0].body.as_ref().and_then(|crd| crd.pointer("/spec/scope"));
        let list = list(scope.and_then(Value::as_str).unwrap_or_default());
        let read = [Step::new("GET", format!("{CRDS}/{NAME}")), Step::new("GET", list)];
        let mut worlds = vec![self.world.clone()];
        let seen = self.seen();
        for step in steps {
            let ours = ask_world(&mut worlds[0], step, &seen);
            let theirs = ask_real(&self.client, step, &seen).await?;
            worlds[0].settle(Timestamp::now(), 50);
            let mut lines = self.at_rest(&mut worlds, &read).await?;
            if ours.status != theirs.status {
                lines.insert(0, format!("{} and {}: {}", ours.body, theirs.status, theirs.body));
            }
            if !lines.is_empty() {
                lines.insert(0, format!("after {step}"));
                return Ok(lines);
            }
        }
        Ok(Vec::new())
    }
}
