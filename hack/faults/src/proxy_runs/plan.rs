//! Plans of schedules: the stages and their faults, as a pure function of the seed.

use crate::Stage;
use crate::proxy::{Class, Fault, Rule, TunnelFault, Verb};
use crate::scenario::Version;
use crate::seeded::Seeded;

/// Maximum number of faults of requests in a stage.
const FAULTS: u32 = 4;
/// Resources whose lists and watches are disturbed.
const WATCHED: [&str; 7] = [
    "clusterextensions",
    "clusterobjectsets",
    "clustercatalogs",
    "customresourcedefinitions",
    "configmaps",
    "deployments",
    "serviceaccounts",
];
/// Writes that a controller sends: verb and resource.
const WRITTEN: [(Verb, &str); 13] = [
    (Verb::Patch, "clusterextensions"),
    (Verb::Patch, "clusterextensions/status"),
    (Verb::Create, "clusterobjectsets"),
    (Verb::Patch, "clusterobjectsets"),
    (Verb::Patch, "clusterobjectsets/status"),
    (Verb::Delete, "clusterobjectsets"),
    (Verb::Create, "secrets"),
    (Verb::Patch, "customresourcedefinitions"),
    (Verb::Patch, "configmaps"),
    (Verb::Patch, "deployments"),
    (Verb::Delete, "configmaps"),
    (Verb::Delete, "deployments"),
    (Verb::Delete, "customresourcedefinitions"),
];

/// A stage with its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The stage.
    pub stage: Stage,
    /// Faults of requests to the API server.
    pub rules: Vec<Rule>,
    /// Faults of connections to the registry.
    pub registry: Vec<TunnelFault>,
    /// Faults of connections to catalogd.
    pub catalogd: Vec<TunnelFault>,
}

impl Step {
    /// Returns the text form of all faults.
    #[must_use]
    pub fn faults(&self) -> String {
        let rules = self.rules.iter().map(ToString::to_string);
        let registry = self.registry.iter().map(|fault| format!("registry: {fault}"));
        let catalogd = self.catalogd.iter().map(|fault| format!("catalogd: {fault}"));
        rules
            .chain(registry)
            .chain(catalogd)
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// Returns the steps for a seed: an installation, a number of changes and an uninstallation.
#[must_use]
pub fn steps(seed: u64, changes: u32) -> Vec<Step> {
    let mut seeded = Seeded::new(seed);
    let mut version: Option<Version> = None;
    let mut steps = Vec::new();
    let mut add = |stage: Stage, version: &mut Option<Version>, seeded: &mut Seeded| {
        *version = stage.leads_to(*version);
        steps.push(Step {
            stage,
            rules: rules(seeded),
            registry: tunnel_faults(seeded, true),
            catalogd: tunnel_faults(seeded, false),
        });
    };
    add(Stage::Install, &mut version, &mut seeded);
    for _ in 0..changes {
        let overtaken = Stage::Overtaken(seeded.millis(0, 1500));
        let fitting: Vec<Stage> = [
            Stage::Upgrade,
            overtaken,
            Stage::RollBack,
            Stage::Drift,
            Stage::CatalogGone,
        ]
        .into_iter()
        .filter(|stage| stage.fits(version))
        .collect();
        if let Some(stage) = seeded.pick(&fitting) {
            add(*stage, &mut version, &mut seeded);
        }
    }
    add(Stage::Uninstall, &mut version, &mut seeded);
    steps
}

/// Returns the faults of requests in one stage.
fn rules(seeded: &mut Seeded) -> Vec<Rule> {
    let count = 1 + seeded.below(FAULTS);
    let mut rules: Vec<Rule> = (0..count).filter_map(|_| rule(seeded)).collect();
    // At most one kill for each stage: further kills would mostly hit the start of the new process.
    let mut killed = false;
    rules.retain(|rule| {
        let kills = matches!(rule.fault, Fault::KillBefore | Fault::KillAfter);
        let keep = !(kills && killed);
        killed |= kills;
        keep
    });
    rules
}

/// Returns a random fault of a request or an event.
fn rule(seeded: &mut Seeded) -> Option<Rule> {
    let short = Fault::Delay(seeded.millis(50, 2000));
    let (class, nth, fault) = match seeded.below(10) {
        0..=2 => (Class::Writes, 1 + seeded.below(14), write_fault(seeded)?),
        3..=4 => {
            let (verb, resource) = *seeded.pick(&WRITTEN)?;
            (
                Class::Requests(verb, resource),
                1 + seeded.below(3),
                write_fault(seeded)?,
            )
        }
        5 => {
            let faults = [
                short,
                Fault::Refuse(429),
                Fault::Refuse(500),
                Fault::Lose,
                Fault::Truncate,
            ];
            (Class::Reads, 1 + seeded.below(12), *seeded.pick(&faults)?)
        }
        6 => {
            let resource = *seeded.pick(&WATCHED)?;
            (Class::Requests(Verb::List, resource), 1, Fault::OldAnswer)
        }
        7 => {
            let faults = [Fault::Expire, Fault::Refuse(500), Fault::Lose, short];
            (Class::Watches, 1 + seeded.below(3), *seeded.pick(&faults)?)
        }
        _ => {
            let held = Fault::HoldEvent(seeded.millis(100, 3000));
            let faults = [held, Fault::CutAtEvent, Fault::ExpireAtEvent];
            (
                Class::Events(seeded.pick(&WATCHED)?),
                1 + seeded.below(4),
                *seeded.pick(&faults)?,
            )
        }
    };
    Some(Rule { class, nth, fault })
}

/// Returns the faults of connections to one server in one stage: none in half of the cases, and at most two. `plain` is true for
/// a server without TLS.
fn tunnel_faults(seeded: &mut Seeded, plain: bool) -> Vec<TunnelFault> {
    let count = seeded.below(4).saturating_sub(1);
    let fault = |seeded: &mut Seeded| {
        let bytes = usize::try_from(100 + seeded.below(3000)).unwrap_or_default();
        let last = if plain {
            TunnelFault::Fail
        } else {
            TunnelFault::Refuse
        };
        let faults = [
            TunnelFault::Refuse,
            TunnelFault::Delay(seeded.millis(50, 2000)),
            TunnelFault::CutAfter(bytes),
            TunnelFault::Slow,
            last,
        ];
        seeded.pick(&faults).copied()
    };
    (0..count).filter_map(|_| fault(seeded)).collect()
}

/// Returns a random fault of a write.
fn write_fault(seeded: &mut Seeded) -> Option<Fault> {
    let faults = [
        Fault::Delay(seeded.millis(50, 2000)),
        Fault::Refuse(409),
        Fault::Refuse(429),
        Fault::Refuse(500),
        Fault::Lose,
        Fault::ApplyAndLose,
        Fault::ApplyAndRefuse(500),
        Fault::ApplyAndRefuse(504),
        Fault::Truncate,
        Fault::KillBefore,
        Fault::KillAfter,
        Fault::KillAfter,
    ];
    seeded.pick(&faults).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_its_steps_and_every_chain_ends_with_the_uninstallation() {
        for seed in 0..200 {
            let chain = steps(seed, 2);
            assert_eq!(chain, steps(seed, 2));
            assert_eq!(chain.first().unwrap().stage, Stage::Install);
            assert_eq!(chain.last().unwrap().stage, Stage::Uninstall);
            let mut version = None;
            for step in &chain {
                assert!(step.stage.fits(version), "{} in seed {seed}", step.stage);
                version = step.stage.leads_to(version);
            }
        }
    }

    #[test]
    fn the_first_schedules_have_every_kind_of_fault() {
        let kinds: std::collections::BTreeSet<&str> = (0..200)
            .flat_map(|seed| steps(seed, 2))
            .flat_map(|step| step.rules)
            .map(|rule| rule.fault.kind())
            .collect();
        assert_eq!(kinds.len(), 15, "{kinds:?}");
    }
}
