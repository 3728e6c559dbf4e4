//! One schedule: its stages under faults, and the check of the invariants.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use olm_proof::Violation;

use super::{Options, figures, step, steps, trace, violation};
use crate::results::Tally;
use crate::{Judge, Run, Scenario, World};

/// Runs the schedule with this seed, prints one line about it, and returns its violations.
pub(super) async fn run(
    world: &mut World,
    judge: &mut Judge,
    (run, options): (&Run, &Options),
    seed: u64,
    tally: &mut Tally,
) -> Result<Vec<Violation>> {
    let client = world.client();
    // The catalog is pulled before the first stage, so this pull already gets the stage's faults of the registry.
    if let Some(first) = steps(seed, options.changes).first() {
        world.registry_tunnel.set_faults(&first.registry);
    }
    let mut scenario = Scenario::publish(world, &format!("s{seed:x}"), run.promises).await?;
    let limits = step::Limits {
        converge: Duration::from_secs(options.limit),
        quiet: Duration::from_millis(options.quiet),
    };
    let mut line = format!("seed {seed}:");
    let mut violations = Vec::new();
    for (number, step) in steps(seed, options.changes).into_iter().enumerate() {
        let injector = world.proxy.injector();
        injector.note(&format!("STAGE {}, faults: {}", step.stage, step.faults()));
        if number > 0 {
            world.registry_tunnel.set_faults(&step.registry);
        }
        world.catalogd_tunnel.set_faults(&step.catalogd);
        let outcome = step::perform(world, &mut scenario, &step, limits).await?;
        tally.add("stages", 1);
        tally.add("kills", outcome.kills);
        let _ = write!(line, " {} {:.1} s,", step.stage, outcome.converged.as_secs_f64());
        if let Some(text) = outcome.failure {
            let text = format!("{}: {text}; faults: {}", step.stage, step.faults());
            violations.push(violation("convergence", seed, text));
            break;
        }
        tally.time(figures::CONVERGENCE, outcome.converged);
    }
    violations.extend(judge.violations(&seed.to_string()).await);
    if violations.is_empty() {
        eprintln!("{line} kept");
    } else {
        if let Some(dir) = &options.traces {
            trace::write(dir, seed, world, &scenario).await?;
        }
        let told = violations
            .iter()
            .map(|found| format!("\n  {}: {}", found.invariant, found.text));
        eprintln!("{line} BROKEN{}", told.collect::<String>());
    }
    scenario.retire(&client).await?;
    Ok(violations)
}
