//! `tree`: the objects of an extension by phase, with their health.

use std::fmt::Write as _;

use kube::ResourceExt as _;
use olm_api::LifecycleState;
use olm_api::condition::external::{Crd, Workload as WorkloadCondition};
use olm_api::condition::{types, untyped};
use olm_applier::probe::Prober;
use olm_applier::workload::Workload;
use olm_text::object::{ObjectId, text as text_of};
use serde_json::{Value, json};

use crate::absent;
use crate::cli::ExtensionArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::clean;

/// Conditions that decide if an object is healthy, by the conventions of most kinds.
const DECISIVE: [&str; 3] = [
    types::Extension::Ready.as_str(),
    WorkloadCondition::Available.as_str(),
    Crd::Established.as_str(),
];

/// Shows the newest revision that is kept up; positive when every object is there and healthy.
pub(crate) async fn run(args: ExtensionArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let revisions = cluster.revisions(Some(&args.name)).await?;
    let newest = revisions
        .iter()
        .rev()
        .find(|set| set.spec.lifecycle_state != LifecycleState::Archived);
    let Some(set) = newest else {
        if cluster.one_extension(&args.name).await?.is_none() {
            return Err(Failure::NegativeAnswer(
                absent::extension(&cluster, &args.name).await,
            ));
        }
        return Err(Failure::NegativeAnswer(format!(
            "ClusterExtension {:?} has no revision that is kept up",
            args.name
        )));
    };
    // The controller reports probes that cannot be read.
    let probes = Prober::new(set.spec.progression_probes.as_deref().unwrap_or_default()).unwrap_or_default();
    let mut healthy = true;
    let mut text = format!("{} → {}\n", clean(&args.name), clean(&set.name_any()));
    let mut phases = Vec::new();
    let all = cluster.objects(set).await?;
    let objects: Vec<Value> = all
        .iter()
        .flat_map(|phase| phase.objects.iter().cloned())
        .collect();
    let kinds = cluster.kinds(&objects).await?;
    for (place, phase) in all.iter().enumerate() {
        let (branch, stem) = branch(place, all.len());
        let name = style.paint(Paint::Bold, &clean(&phase.name));
        let _ = writeln!(text, "{branch} {name}");
        let mut objects = Vec::new();
        for (place, object) in phase.objects.iter().enumerate() {
            let (branch, _) = self::branch(place, phase.objects.len());
            let live = cluster.present(object, &kinds).await?;
            let found = live.map(|live| serde_json::to_value(live).unwrap_or_default());
            let (paint, state, mut why) = health(found.as_ref(), &probes);
            if paint != Paint::Good
                && let Some(workload) = found.as_ref().and_then(Workload::of)
                && let Some(reason) = cluster.diagnosis(&workload).await.clause()
            {
                why = reason;
            }
            healthy &= paint == Paint::Good;
            let ObjectId {
                kind,
                namespace,
                name,
                ..
            } = ObjectId::of(object);
            let namespace = if kinds.is_cluster_scoped(object) {
                ""
            } else {
                namespace
            };
            let title = if namespace.is_empty() {
                format!("{kind} {name}")
            } else {
                format!("{kind} {namespace}/{name}")
            };
            let told = if why.is_empty() {
                String::new()
            } else {
                format!(": {why}")
            };
            let state_text = style.paint(paint, state);
            let _ = writeln!(
                text,
                "{stem}  {branch} {} {state_text}{}",
                clean(&title),
                clean(&told)
            );
            objects.push(
                json!({"kind": kind, "apiVersion": text_of(object, "/apiVersion"), "namespace": namespace,
                "name": name, "health": state, "message": why}),
            );
        }
        phases.push(json!({"name": phase.name, "objects": objects}));
    }
    let value = json!({"extension": args.name, "revision": set.name_any(), "phases": phases});
    Ok(Report::new(value, text).positive(healthy))
}

/// Returns the line before the item at `place` of `count`, and the line that continues below it.
fn branch(place: usize, count: usize) -> (&'static str, &'static str) {
    if place + 1 == count {
        ("└─", " ")
    } else {
        ("├─", "│")
    }
}

/// Health of an object by what most kinds have, its conditions and the generation they are of, and by the revision's probes.
fn health(object: Option<&Value>, probes: &Prober) -> (Paint, &'static str, String) {
    let Some(object) = object else {
        return (Paint::Bad, "missing", String::new());
    };
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return (Paint::Warn, "going", String::new());
    }
    let observed = &object["status"]["observedGeneration"];
    if !observed.is_null() && *observed != object["metadata"]["generation"] {
        return (Paint::Warn, "progressing", String::new());
    }
    let found = untyped::all(object).find(|condition| DECISIVE.contains(&condition.type_));
    match found {
        Some(found) if !found.is_true() => {
            let why = found.message.unwrap_or_default();
            (Paint::Warn, "not ready", why.to_owned())
        }
        _ => match probes.check(object) {
            result if result.ready => (Paint::Good, "healthy", String::new()),
            result => (Paint::Warn, "not ready", result.messages.join(" and ")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_item_ends_its_branch() {
        let branches: Vec<_> = (0..3).map(|place| branch(place, 3)).collect();
        assert_eq!(branches, [("├─", "│"), ("├─", "│"), ("└─", " ")]);
    }

    #[test]
    fn conditions_decide() {
        let probes = Prober::new(&olm_applier::plan::default_probes()).unwrap();
        let word = |object: Value| health(Some(&object), &probes).1;
        assert_eq!(health(None, &probes).1, "missing");
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"generation": 1},
            "status": {"observedGeneration": 1}});
        let (_, state, why) = health(Some(&set), &probes);
        assert_eq!(
            (state, why.as_str()),
            ("not ready", "0 of 1 replicas are available")
        );
        assert_eq!(word(json!({"metadata": {}})), "healthy");
        assert_eq!(
            word(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}})),
            "progressing"
        );
        let not =
            json!({"metadata": {}, "status": {"conditions": [{"type": "Available", "status": "False"}]}});
        assert_eq!(word(not), "not ready");
        assert_eq!(word(json!({"metadata": {"deletionTimestamp": "x"}})), "going");
    }
}
