//! Pairs of specs: the state after A → B is the state of B alone, and A → B → A leads back.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use olm_api::ClusterExtension;
use olm_proof::{Report, Violation};
use olm_runtime::clock;
use olm_world::World;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::check::Expected;
use crate::clock::VirtualClock;
use crate::fault::Schedule;
use crate::model::{Chosen, Goal};
use crate::rng::Rng;
use crate::run::Run;
use crate::scenario::extension;
use crate::simulate::Stage;
use crate::user::{self, Action};

/// Time without a write after which a spec counts as followed.
const QUIET: Duration = Duration::from_secs(20);
/// Longest time of one transition.
const LIMIT: Duration = Duration::from_mins(40);
/// Transitions from one empty cluster.
const WALK: usize = 40;

/// Fields that keep a spec from being followed until somebody acts, or by the time of day.
const WAITING: [&str; 9] = [
    "approval",
    "approvedPlan",
    "automatic",
    "jointPlan",
    "paused",
    "requireApprovalFor",
    "rollBackTo",
    "soak",
    "windows",
];

/// Returns the specs: every choice of a bundle, and with some of them every other field of the CRD's schema.
pub(crate) fn specs(world: &World) -> Vec<Value> {
    let mut sources = Vec::new();
    // Without the version that never becomes available.
    for version in ["1.0.0", "1.1.0", "2.0.0", "<2.0.0", ">=1.1.0 <2.1.0", "<=2.0.0"] {
        for channels in [None, Some("stable"), Some("edge")] {
            for policy in [None, Some("CatalogProvided"), Some("SelfCertified")] {
                for catalog in [None, Some("first"), Some("second")] {
                    let mut source = json!({"packageName": "alpha"});
                    let mut set = |name: &str, value: Option<Value>| {
                        if let Some(value) = value {
                            source[name] = value;
                        }
                    };
                    set("version", Some(version.into()));
                    set("channels", channels.map(|channel| json!([channel])));
                    set("upgradeConstraintPolicy", policy.map(Value::from));
                    let label =
                        |catalog| json!({"matchLabels": {"olm.operatorframework.io/metadata.name": catalog}});
                    set("selector", catalog.map(label));
                    sources.push(source);
                }
            }
        }
    }
    let crd = world.objects().map(|(_, object)| object);
    let crd = crd
        .into_iter()
        .find(|object| object["metadata"]["name"] == "clusterextensions.olm.operatorframework.io");
    let schema = crd.and_then(|crd| {
        crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
            .cloned()
    });
    let mut others = Vec::new();
    leaves(&schema.unwrap_or_default(), &mut Vec::new(), &mut others);
    let mut specs: Vec<Value> = sources
        .iter()
        .map(|source| extension("alpha", source, &json!({})))
        .collect();
    for (at, other) in others.iter().enumerate() {
        // A few sources for each field, others for each.
        for source in sources.iter().skip(at % 7).step_by(13) {
            specs.push(extension("alpha", source, other));
        }
    }
    specs
}

/// Adds an object for each value of each optional field.
fn leaves(schema: &Value, path: &mut Vec<String>, out: &mut Vec<Value>) {
    let values: Vec<Value> = match (schema["type"].as_str(), path.last().map(String::as_str)) {
        (_, Some("source" | "namespace" | "serviceAccount" | "configType")) => Vec::new(),
        (_, Some(name)) if WAITING.contains(&name) => Vec::new(),
        (_, Some("inline")) => {
            let inline = |inline: Value| json!({"configType": "Inline", "inline": inline});
            for config in [
                json!({"watchNamespace": "ops"}),
                json!({"deploymentConfig": {"nodeSelector": {"disk": "fast"}}}),
                json!({"deploymentConfig": {"env": [{"name": "MODE", "value": "loud"}]}}),
            ] {
                out.push(json!({"config": inline(config)}));
            }
            Vec::new()
        }
        (Some("string"), _) => schema["enum"].as_array().cloned().unwrap_or_default(),
        (Some("boolean"), _) => vec![json!(true), json!(false)],
        (Some("integer"), _) => schema["minimum"].as_i64().map(Value::from).into_iter().collect(),
        (Some("object"), _) => {
            let first = out.len();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                path.push(name.clone());
                leaves(schema, path, out);
                path.pop();
            }
            complete(schema, path, &mut out[first..]);
            Vec::new()
        }
        _ => Vec::new(),
    };
    let wrapped = |value: Value| path.iter().rev().fold(value, |value, name| json!({name: value}));
    out.extend(values.into_iter().map(wrapped));
}

/// Adds the first choice of each required field that an object at `path` lacks.
fn complete(schema: &Value, path: &[String], objects: &mut [Value]) {
    let pointer = path
        .iter()
        .fold(String::new(), |pointer, name| pointer + "/" + name);
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        let choice = &schema["properties"][name]["enum"][0];
        for object in objects
            .iter_mut()
            .filter_map(|object| object.pointer_mut(&pointer))
        {
            if object[name].is_null() && !choice.is_null() {
                object[name] = choice.clone();
            }
        }
    }
}

/// What walks found together.
#[derive(Default)]
struct Found {
    /// Transitions by the numbers of their specs.
    pairs: BTreeSet<(usize, usize)>,
    refused: usize,
    returns: usize,
    /// Managed objects by spec and bundle.
    states: BTreeMap<(usize, String), u64>,
    violations: Vec<Violation>,
}

/// Walks over pairs of specs for about `limit`.
#[must_use]
pub fn pairs(stage: &Stage, seed: u64, limit: Duration) -> Report {
    let specs = specs(&stage.world);
    let until = Instant::now() + limit;
    let found = Mutex::new(Found::default());
    let next = AtomicU64::new(seed);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while Instant::now() < until {
                    walk(stage, &specs, next.fetch_add(1, Ordering::Relaxed), until, &found);
                }
            });
        }
    });
    let found = found.into_inner();
    let of = specs.len() * specs.len();
    let figures = [
        ("valid specs from the schema of the CRD", specs.len().to_string()),
        ("pairs A → B", format!("{} of {of}", found.pairs.len())),
        ("returns A → B → A", found.returns.to_string()),
        ("pairs that the API server refuses", found.refused.to_string()),
        ("distinct final states", found.states.len().to_string()),
    ];
    Report {
        title: "Pairs of specs".to_owned(),
        about: "One ClusterExtension goes from spec to spec. After each step the cluster must be what the resolver and the renderer \
                say, and equal to every other visit of the same spec with the same bundle."
            .to_owned(),
        figures: figures.map(|(name, value)| (name.to_owned(), value)).into(),
        violations: found.violations,
        not_covered: vec![
            "After a spec that cannot be fulfilled from what is installed, only the status is compared.".to_owned(),
            "Fields that make a rollout wait for a person or for the time of day are left out of the specs.".to_owned(),
        ],
        ..Report::default()
    }
}

fn walk(stage: &Stage, specs: &[Value], seed: u64, until: Instant, found: &Mutex<Found>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
    else {
        return;
    };
    fastrand::seed(seed);
    runtime.block_on(async {
        let _clock = clock::replace(Box::new(VirtualClock::start(seed)));
        let schedule = Schedule::default();
        let mut run = Run::start(Arc::clone(&stage.content), stage.world.clone(), schedule, false);
        run.wait(QUIET, None, LIMIT).await;
        let mut rng = Rng::new(seed);
        let mut expected = Expected::new(Arc::clone(&stage.content));
        let mut trail: Vec<usize> = Vec::new();
        for step in 0..WALK {
            if Instant::now() >= until {
                break;
            }
            // Every third step goes back to where the second came from.
            let back = trail.len().checked_sub(2).and_then(|at| trail.get(at).copied());
            let to = match back {
                Some(back) if step % 3 == 2 => back,
                _ => rng.below(specs.len()),
            };
            let Some(spec) = specs.get(to) else {
                break;
            };
            if run.send(&user::request(&Action::Apply(spec.clone()))) >= 400 {
                found.lock().refused += 1;
                continue;
            }
            run.wait(QUIET, None, LIMIT).await;
            let problems = expected.only(spec, &run.objects());
            let hash = run.managed_hash("alpha");
            let mut found = found.lock();
            if let Some(from) = trail.last() {
                found.pairs.insert((*from, to));
                found.returns += usize::from(step % 3 == 2);
            }
            let words = |trail: &[usize]| {
                trail
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            trail.push(to);
            let mut add = |invariant: &str, text: String| {
                let violation = Violation {
                    invariant: invariant.to_owned(),
                    seed: format!("pairs seed={seed} step={step}: {}", words(&trail)),
                    text: format!("{text}; spec {}", spec["spec"]),
                };
                if found.violations.len() < 40 {
                    found.violations.push(violation);
                }
            };
            for problem in &problems {
                add("convergence", problem.clone());
            }
            for violation in std::mem::take(&mut run.cluster.violations) {
                add(&violation.invariant, violation.text);
            }
            if let Some(bundle) = expected.complete_bundle() {
                let known = *found.states.entry((to, bundle)).or_insert(hash);
                if known != hash {
                    let violation = Violation {
                        invariant: "equal-states".to_owned(),
                        seed: format!("pairs seed={seed} step={step}: {}", words(&trail)),
                        text: format!(
                            "spec {to} led to another state than at an earlier visit: {}",
                            spec["spec"]
                        ),
                    };
                    found.violations.push(violation);
                }
            }
            if !problems.is_empty() {
                break;
            }
        }
        run.stop();
    });
    runtime.shutdown_background();
}

impl Expected {
    /// Follows a spec from what the cluster is, and returns a sentence for each difference.
    fn only(&mut self, spec: &Value, objects: &[Arc<Value>]) -> Vec<String> {
        let Ok(extension) = serde_json::from_value::<ClusterExtension>(spec.clone()) else {
            return vec!["the spec cannot be read".to_owned()];
        };
        let before = self
            .extensions
            .pop()
            .and_then(|(_, goals)| goals.into_iter().next());
        let bundle: Option<Chosen> = before.and_then(|goal| goal.bundle);
        let mut goal: Goal = self.goal(&extension, bundle);
        // What cannot be resolved changes nothing: the objects stay those of an earlier spec.
        goal.stuck |= !goal.complete;
        let out = self.differences_to(&extension, &goal, objects);
        self.extensions.push((extension, vec![goal]));
        out
    }

    /// Returns the bundle if the spec is fulfilled.
    fn complete_bundle(&self) -> Option<String> {
        let (_, goals) = self.extensions.first()?;
        let goal = goals.first().filter(|goal| goal.complete)?;
        goal.bundle
            .as_ref()
            .map(|bundle| bundle.installed.name.as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_gives_enough_specs() {
        let stage = Stage::new().unwrap();
        let specs = specs(&stage.world);
        assert!(specs.len() >= 300, "{}", specs.len());
        let mut world = stage.world;
        for spec in &specs {
            let mut request = user::request(&Action::Apply(spec.clone()));
            request.query.push_str("&dryRun=All");
            let answer = world.handle(&request, jiff::Timestamp::UNIX_EPOCH);
            assert!(
                matches!(
                    answer,
                    olm_world::Answer::Response {
                        status: 200 | 201,
                        ..
                    }
                ),
                "{answer:?}"
            );
        }
    }
}
