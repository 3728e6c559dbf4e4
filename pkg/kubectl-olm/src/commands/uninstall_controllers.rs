//! `uninstall-controllers`: removes what `install-controllers` applied, in the reverse order.

use std::fmt::Write as _;

use kube::ResourceExt as _;
use olm_api::API_VERSION;
use olm_manifests::is_crd;
use olm_text::list;
use olm_text::object::ObjectId;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::progress;
use crate::cli::controllers::UninstallArgs;
use crate::controllers::remove::{self, Step};
use crate::controllers::{title, wait};
use crate::failure::Failure;
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};
use crate::table::Table;

/// Most names of each kind in a refusal.
const NAMED: usize = 10;
/// Kinds whose objects the controllers must handle before they go.
const USED: [&str; 3] = ["ClusterExtension", "ClusterCatalog", "ClusterObjectSet"];

/// Removes the controllers; refused while extensions or catalogs exist.
pub(crate) async fn run(args: UninstallArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    refuse_while_used(&cluster).await?;
    let steps = remove::steps(&cluster, args.delete_crds).await?;
    if args.dry_run {
        return Ok(report(&steps, style, true));
    }
    let deadline = Instant::now() + args.timeout;
    let objects: Vec<Value> = steps.iter().map(|step| step.object.clone()).collect();
    let kinds = cluster.kinds(&objects).await?;
    // Pods need their rights until they have stopped.
    let (workloads, others) = steps.split_at(steps.partition_point(Step::is_workload));
    for part in [workloads, others] {
        let mut gone = Vec::new();
        for step in part {
            let (Some(present), None) = (&step.present, &step.kept) else {
                continue;
            };
            cluster.delete(&step.object, present, &kinds).await?;
            progress(&format!("{} deleted", title(&step.object)));
            gone.push((step.object.clone(), present.metadata.uid.clone()));
        }
        if !args.no_wait {
            wait::until_gone(&cluster, &gone, &kinds, deadline).await?;
        }
    }
    Ok(report(&steps, style, false))
}

/// Fails if the controllers still have work: without them, finalizers would hold these objects for ever.
async fn refuse_while_used(cluster: &Cluster) -> Result<(), Failure> {
    let mut used = Vec::new();
    for kind in USED {
        let found = cluster.list(API_VERSION, kind, None).await?;
        let names: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
        if !names.is_empty() {
            used.push(format!("{kind} {}", list(&names, NAMED)));
        }
    }
    if used.is_empty() {
        return Ok(());
    }
    Err(Failure::NegativeAnswer(format!(
        "the controllers are in use: {}. Delete these objects first (an extension's deletion removes its operator), and \
         wait until they are gone",
        used.join("; ")
    )))
}

fn report(steps: &[Step], style: Style, dry: bool) -> Report {
    let mut table = Table::new(&["OBJECT", "STATE"]);
    let mut rows = Vec::new();
    for step in steps {
        let deleted = if dry { "would be deleted" } else { "deleted" };
        let (paint, state) = match &step.kept {
            None => (Paint::Plain, deleted.to_owned()),
            Some(why) => (Paint::Warn, format!("kept: {why}")),
        };
        table.row(paint, [title(&step.object), state]);
        let id = ObjectId::of(&step.object);
        rows.push(
            json!({"kind": id.kind, "namespace": id.namespace, "name": id.name,
            "deleted": step.kept.is_none() && !dry, "kept": step.kept}),
        );
    }
    let mut text = if table.is_empty() {
        "nothing to remove: the controllers are not installed\n".to_owned()
    } else {
        table.text(style, "")
    };
    let namespace = |step: &&Step| ObjectId::of(&step.object).kind == "Namespace" && step.kept.is_some();
    if let Some(step) = steps
        .iter()
        .find(namespace)
        .and_then(|step| step.present.as_ref())
    {
        let _ = writeln!(text, "\nNamespace {} stays.", step.name_any());
    }
    if steps
        .iter()
        .any(|step| is_crd(&step.object) && step.kept.is_some())
    {
        text.push_str("\nThe CRDs stay. Delete them, too: kubectl olm uninstall-controllers --delete-crds\n");
    }
    Report::new(json!({"objects": rows}), text)
}
