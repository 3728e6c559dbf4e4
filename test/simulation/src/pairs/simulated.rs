//! Walks over pairs of specs in simulation, on all processors. Every walk starts from the small world.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use olm_proof::Report;
use olm_runtime::clock;
use parking_lot::Mutex;
use serde_json::Value;

use super::managed;
use super::ways::{Ways, state};
use crate::check::Expected;
use crate::clock::VirtualClock;
use crate::fault::Schedule;
use crate::rng::Rng;
use crate::run::{Options, Run};
use crate::simulate::Stage;
use crate::specs::specs;
use crate::user::{self, Action};

/// Virtual time without a write after which the controllers count as done with a spec.
const QUIET: Duration = Duration::from_secs(20);
/// Maximum virtual time of a transition from one spec to the next.
const LIMIT: Duration = Duration::from_mins(40);
/// Number of transitions in one walk.
const WALK: usize = 60;

/// Walks pairs of specs until all of them are walked, for about `limit` at most.
#[must_use]
pub fn pairs(stage: &Stage, seed: u64, limit: Duration) -> Report {
    let specs = specs(&stage.world);
    let until = Instant::now() + limit;
    let ways = Mutex::new(Ways::new(specs.len()));
    let next = AtomicU64::new(seed);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while Instant::now() < until && !ways.lock().is_complete() {
                    walk(stage, &specs, next.fetch_add(1, Ordering::Relaxed), until, &ways);
                }
            });
        }
    });
    let ways = ways.into_inner();
    Report {
        title: "Pairs of specs".to_owned(),
        about: "One ClusterExtension goes from spec to spec. After each step the cluster must be what the resolver and the renderer \
                say, and equal to every other visit of the same spec with the same bundle."
            .to_owned(),
        figures: ways.figures(),
        violations: ways.violations,
        not_covered: vec![
            "After a spec that cannot be fulfilled from what is installed, only the status is compared.".to_owned(),
            "Fields that make a rollout wait for a person or for the time of day are left out of the specs.".to_owned(),
        ],
        ..Report::default()
    }
}

/// Carries out one walk, up to its first difference.
fn walk(stage: &Stage, specs: &[Value], seed: u64, until: Instant, ways: &Mutex<Ways>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let (Ok(runtime), Ok(server)) = (runtime, stage.server(None)) else {
        return;
    };
    fastrand::seed(seed);
    runtime.block_on(async {
        let _clock = clock::replace(Box::new(VirtualClock::start(seed)));
        let schedule = Schedule::default();
        let mut run = Run::start(Arc::clone(&stage.content), server, schedule, Options::default());
        run.wait(QUIET, None, LIMIT).await;
        let mut rng = Rng::new(seed);
        let mut expected = Expected::new(Arc::clone(&stage.content));
        let mut trail: Vec<usize> = Vec::new();
        for step in 0..WALK {
            if Instant::now() >= until {
                break;
            }
            let to = ways.lock().next(&trail, &mut rng);
            let Some(spec) = specs.get(to) else {
                break;
            };
            if run.send(&user::request(&Action::Apply(spec.clone()))) >= 400 {
                ways.lock().refuse(&trail, to);
                continue;
            }
            trail.push(to);
            run.wait(QUIET, None, LIMIT).await;
            let (objects, place) = (run.objects(), || {
                format!("pairs seed={seed} step={step}: {}", words(&trail))
            });
            let mut ways = ways.lock();
            let (extension, goal) = match expected.only(spec) {
                Ok(goal) => goal,
                Err(error) => {
                    ways.differ(&[format!("{error:#}")], spec, &place());
                    break;
                }
            };
            ways.walk(&trail);
            let problems = expected.differences_to(&extension, &goal, &objects);
            ways.differ(&problems, spec, &place());
            for violation in std::mem::take(&mut run.cluster.violations) {
                ways.violate(&violation.invariant, place(), violation.text);
            }
            if let Some(bundle) = goal.complete_bundle() {
                let reached = state(managed(&objects, "alpha"));
                ways.compare(to, spec, bundle, reached, place());
            }
            if !problems.is_empty() {
                break;
            }
        }
        run.stop();
    });
    runtime.shutdown_background();
}

fn words(trail: &[usize]) -> String {
    let words: Vec<String> = trail.iter().map(ToString::to_string).collect();
    words.join(" ")
}
