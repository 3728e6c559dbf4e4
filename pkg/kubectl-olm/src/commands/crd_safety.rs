//! `crd-safety`: all findings of an upgrade of CRDs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use olm_applier::stored::{Limits, Survey, survey};
use olm_bundle::crd_safety::{self, Rules};
use olm_bundle::crd_schema;
use olm_resolve::resolve;
use olm_text::counted;
use serde_json::{Value, json};

use super::bundle::{Configuration, InstallInto, rendered_files};
use super::common::{progress, warn};
use super::crd_files::{by_name, read};
use super::plan::checks::gate_decides;
use super::plan::cluster::newest;
use super::plan::place::install_namespace;
use super::served;
use crate::absent;
use crate::advice::{FindingAdvice, advise, write_findings};
use crate::cli::SourceArgs;
use crate::cli::bundle::Issuer;
use crate::cli::crd_safety::CrdSafetyArgs;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::report::Report;
use crate::resolution_input::ResolutionInput;
use crate::source::{Cluster, SourceError, bundle_of_image};
use crate::style::{Paint, Style};
use crate::table::clean;

/// Compares every CRD that both sides have; positive if nothing would break.
pub(crate) async fn run(args: CrdSafetyArgs, style: Style) -> Result<Report, Failure> {
    if args.stored_objects && args.paths.len() > 1 {
        return Err(Failure::Usage(
            "--stored-objects compares with the cluster: omit OLD".to_owned(),
        ));
    }
    let (mut cluster, mut gates) = (None, None);
    let new = match (&args.extension, args.paths.as_slice()) {
        (Some(name), _) => {
            let (new, known) = of_extension(&args.source, name).await?;
            gates = Some(known);
            new
        }
        (None, [.., new]) => read(new)?,
        (None, []) => return Err(Failure::Usage("give one or two paths, or --extension".to_owned())),
    };
    let old = if let [old, _] = args.paths.as_slice() {
        read(old)?
    } else {
        let connected = Cluster::connect(&args.source.access).await?;
        let mut old = BTreeMap::new();
        for name in new.keys() {
            if let Some(crd) = connected.crd(name).await? {
                old.insert(name.clone(), crd);
            }
        }
        if gates.is_none() {
            gates = Some(connected.gates().await);
        }
        cluster = Some(connected);
        old
    };
    if new.is_empty() {
        return Err(Failure::NegativeAnswer(
            "there is no CustomResourceDefinition to compare".to_owned(),
        ));
    }
    // The flag wins over the gate.
    let gates = gates.filter(|_| !args.upstream);
    let rules = if args.upstream {
        Rules::Upstream
    } else {
        gates.as_ref().map_or_else(Rules::default, Gates::crd_rules)
    };
    let mut by_gate = false;
    let mut text = String::new();
    let mut crds = Vec::new();
    let mut breaking = 0;
    for (name, new) in &new {
        let shown = clean(name);
        let Some(old) = old.get(name) else {
            let _ = writeln!(text, "{shown}: new");
            crds.push(json!({"crd": name, "new": true, "findings": []}));
            continue;
        };
        let served = served::verdict(cluster.as_ref(), old, new, rules).await?;
        let mut findings = crd_safety::check(old, new, rules);
        findings.extend(served.findings);
        by_gate |= gate_decides(old, new, rules, &findings);
        breaking += findings.len();
        if findings.is_empty() {
            let _ = writeln!(text, "{shown}: {}", style.paint(Paint::Good, "safe"));
        } else {
            let count = counted(findings.len(), "finding");
            let _ = writeln!(text, "{shown}: {}", style.paint(Paint::Bad, &count));
        }
        let advised = advise(name, &findings);
        write_findings(&mut text, &advised, args.stored_objects, style);
        let steps = crd_safety::migration(old, new);
        if let Some(steps) = &steps {
            let _ = writeln!(text, "  {}.", clean(steps));
        }
        for warning in &served.warnings {
            let head = style.paint(Paint::Warn, "warning:");
            let _ = writeln!(text, "  {head} {}", clean(warning));
        }
        let findings: Vec<Value> = advised.iter().map(FindingAdvice::value).collect();
        let mut value = json!({"crd": name, "new": false, "findings": findings, "warnings": served.warnings, "steps": steps});
        if let Some(cluster) = cluster.as_ref().filter(|_| args.stored_objects) {
            let stored = Stored::survey(cluster, &args, old, new).await?;
            breaking += stored.broken();
            stored.write(&mut text, style);
            if let Value::Object(map) = &mut value {
                map.insert("storedObjects".to_owned(), stored.value());
            }
        }
        crds.push(value);
    }
    if let Some(assumption) = gates.and_then(|gates| gates.assumption()).filter(|_| by_gate) {
        warn(&assumption);
    }
    Ok(Report::new(json!({"crds": crds}), text).positive(breaking == 0))
}

/// Returns the rendered CRDs of the bundle that an extension of the cluster would install next, and the gates that decide it.
async fn of_extension(source: &SourceArgs, name: &str) -> Result<(BTreeMap<String, Value>, Gates), Failure> {
    let cluster = Cluster::connect(&source.access).await?;
    let Some((extension, installed)) = cluster.extension(name).await? else {
        return Err(Failure::NegativeAnswer(absent::extension(&cluster, name).await));
    };
    let gates = cluster.gates().await;
    let question = ResolutionInput::of(&cluster, source, extension, installed, &gates).await?;
    if let Some(assumption) = &question.assumption {
        warn(assumption);
    }
    let found = resolve(&question.request, &question.inputs)
        .map_err(|error| Failure::NegativeAnswer(error.to_string()))?;
    let newest = newest(&cluster, name).await?;
    let extension = question.extension.unwrap_or_default();
    let chosen = install_namespace(&extension, newest.as_ref());
    let spec = &extension.spec;
    let config = Configuration {
        inline: spec.inline_config(),
        // CRDs do not depend on the namespaces that the operator watches.
        selected: Some(vec![chosen.unwrap_or("default").to_owned()]),
        permitted: gates.permitted(),
    };
    let files = bundle_of_image(&found.image, &source.access).await?.files;
    let place = match &spec.namespace {
        Some(namespace) => InstallInto::Existing(namespace),
        None => InstallInto::Created(chosen),
    };
    let rendered = rendered_files(&files, place, config, Issuer::Own)?;
    Ok((by_name(rendered.objects), gates))
}

/// Result of reading the stored objects of one CRD.
struct Stored {
    /// Surveys by the version whose schema the objects were compared with.
    versions: Vec<(String, Survey)>,
    /// Objects that could not be read.
    notes: Vec<String>,
}

impl Stored {
    async fn survey(
        cluster: &Cluster,
        args: &CrdSafetyArgs,
        old: &Value,
        new: &Value,
    ) -> Result<Self, Failure> {
        let limits = Limits {
            named: args.named,
            time: args.timeout,
            ..Limits::default()
        };
        let plan = crd_schema::plan(old, new);
        let mut versions = Vec::new();
        for target in plan.targets {
            let target = Arc::new(target);
            let version = target.version.clone();
            progress(&format!(
                "checking {}.{} in version {version}",
                plan.plural, plan.group
            ));
            let mut found = survey(
                cluster.client(),
                &plan.group,
                &plan.plural,
                Arc::clone(&target),
                &limits,
            )
            .await
            .map_err(SourceError::from)?;
            if found.objects > 0 {
                found.unknown.extend(target.unknown().cloned());
            }
            versions.push((version, found));
        }
        Ok(Self {
            versions,
            notes: plan.notes,
        })
    }

    fn broken(&self) -> usize {
        self.versions.iter().filter(|(_, found)| found.broken > 0).count()
    }

    fn write(&self, text: &mut String, style: Style) {
        if self.versions.is_empty() && self.notes.is_empty() {
            let _ = writeln!(text, "  stored objects: their schemas do not change");
        }
        for (version, found) in &self.versions {
            let at_least = if found.stopped { "at least " } else { "" };
            let count = format!("{at_least}{} of {} would break", found.broken, found.objects);
            let paint = if found.broken > 0 { Paint::Bad } else { Paint::Good };
            let _ = writeln!(
                text,
                "  stored objects, {}: {}",
                clean(version),
                style.paint(paint, &count)
            );
            for object in &found.named {
                for fault in &object.faults {
                    let _ = writeln!(
                        text,
                        "    {}: {}",
                        clean(&object.to_string()),
                        clean(&fault.to_string())
                    );
                }
            }
            let unnamed = found.broken.saturating_sub(found.named.len() as u64);
            if unnamed > 0 {
                let _ = writeln!(text, "    and {unnamed} more; --named COUNT shows more");
            }
            for unknown in &found.unknown {
                let head = style.paint(Paint::Warn, "not checked:");
                let _ = writeln!(text, "    {head} {}", clean(unknown));
            }
        }
        for note in &self.notes {
            let head = style.paint(Paint::Warn, "not checked:");
            let _ = writeln!(text, "  {head} {}", clean(note));
        }
    }

    fn value(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|(version, found)| {
                let objects: Vec<Value> = found
                    .named
                    .iter()
                    .map(|object| {
                        let faults = object.faults.iter();
                        let faults: Vec<Value> = faults
                            .map(|fault| json!({"path": fault.path, "cause": fault.cause}))
                            .collect();
                        json!({"namespace": object.namespace, "name": object.name, "faults": faults})
                    })
                    .collect();
                json!({
                    "version": version,
                    "objects": found.objects,
                    "broken": found.broken,
                    "complete": !found.stopped,
                    "named": objects,
                    "notChecked": found.unknown,
                })
            })
            .collect();
        json!({"versions": versions, "notChecked": self.notes})
    }
}
