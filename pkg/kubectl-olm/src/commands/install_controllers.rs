//! `install-controllers`: applies the embedded manifests and waits until the controllers run.

use kube::api::DynamicObject;
use olm_manifests::{Component, NAMESPACE, image_of, is_crd};
use olm_text::object::ObjectId;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::{progress, warn};
use crate::cli::controllers::InstallArgs;
use crate::controllers::plan::Plan;
use crate::controllers::{is_ours, managers, observe, preflight, take_over, title, wait};
use crate::failure::Failure;
use crate::finding::{self, Finding, has_error};
use crate::manifests::{self, list};
use crate::report::Report;
use crate::source::{Apply, Cluster, Kinds};
use crate::style::{Paint, Style};
use crate::table::Table;

/// Installs or upgrades the controllers; negative if the cluster is not fit for it.
pub(crate) async fn run(args: InstallArgs, style: Style) -> Result<Report, Failure> {
    if args.access.system_namespace != NAMESPACE {
        return Err(Failure::Usage(format!(
            "the manifests install into namespace {NAMESPACE}; --system-namespace cannot change it"
        )));
    }
    let plan = Plan::new(&args)?;
    if args.export {
        let text = manifests::documents(&plan.objects)?;
        return Ok(Report::new(list(&plan.objects), text));
    }
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = cluster.kinds(&plan.objects).await?;
    let observed = observe::observe(&cluster, &plan.objects, &kinds, &plan.superfluous).await?;
    let findings = preflight::check(&observed, &plan.overlays, args.force_conflicts);
    if has_error(&findings) {
        let text = format!("nothing is installed:\n{}", finding::table(&findings, style));
        return Ok(Report::new(json!({"installed": false, "findings": findings}), text).positive(false));
    }
    for Finding {
        object, cause, next, ..
    } in &findings
    {
        warn(&format!("{object}: {cause}; {next}"));
    }
    if args.dry_run {
        if args.force_conflicts {
            take_over::take_over(&cluster, &plan.objects, &kinds, true).await?;
        }
        let kinds = cluster.kinds(&plan.superfluous).await?;
        let left = left_over(&cluster, &plan.superfluous, &kinds).await?;
        return Ok(dry(&plan.objects, &left, style));
    }
    let deadline = Instant::now() + args.timeout;
    let (crds, others): (Vec<Value>, Vec<Value>) = plan.objects.iter().cloned().partition(is_crd);
    apply(&cluster, &crds, &kinds, args.force_conflicts).await?;
    wait::until_ready(&cluster, &crds, &kinds, deadline).await?;
    if args.force_conflicts {
        take_over::take_over(&cluster, &others, &kinds, false).await?;
    }
    apply(&cluster, &others, &kinds, args.force_conflicts).await?;
    prune(&cluster, &plan.superfluous).await?;
    if !args.no_wait {
        wait::until_ready(&cluster, &others, &kinds, deadline).await?;
    }
    Ok(Report::new(
        list(&plan.objects),
        summary(&plan.objects, args.no_wait),
    ))
}

async fn apply(cluster: &Cluster, objects: &[Value], kinds: &Kinds, force: bool) -> Result<(), Failure> {
    let options = Apply {
        force,
        dry_run: false,
    };
    for object in objects {
        match cluster.apply(object, kinds, options).await {
            Ok(_) => progress(&format!("{} applied", title(object))),
            Err(error) => {
                return Err(match error.conflict() {
                    Some(source) => Failure::NegativeAnswer(format!(
                        "{}: {source}. Add --force-conflicts to take these fields over; what is already applied stays",
                        title(object)
                    )),
                    None => error.into(),
                });
            }
        }
    }
    Ok(())
}

/// Deletes objects of overlays that a former installation chose and this one does not.
async fn prune(cluster: &Cluster, superfluous: &[Value]) -> Result<(), Failure> {
    let kinds = cluster.kinds(superfluous).await?;
    for (object, present) in left_over(cluster, superfluous, &kinds).await? {
        cluster.delete(object, &present, &kinds).await?;
        progress(&format!(
            "{} deleted: the chosen overlays do not have it",
            title(object)
        ));
    }
    Ok(())
}

/// Returns the superfluous objects that a former installation applied, in the order of their deletion. Objects that another tool
/// applied stay; a warning names them.
async fn left_over<'a>(
    cluster: &Cluster,
    superfluous: &'a [Value],
    kinds: &Kinds,
) -> Result<Vec<(&'a Value, DynamicObject)>, Failure> {
    let mut left = Vec::new();
    for object in superfluous.iter().rev() {
        let Some(present) = cluster.present(object, kinds).await? else {
            continue;
        };
        if is_ours(&present) {
            left.push((object, present));
        } else {
            let managers: Vec<&str> = managers(&present).collect();
            warn(&format!(
                "{} is left: the chosen overlays do not have it, but {} applied it; delete it if it belongs to a \
                 former installation",
                title(object),
                managers.join(", ")
            ));
        }
    }
    Ok(left)
}

fn dry(objects: &[Value], left: &[(&Value, DynamicObject)], style: Style) -> Report {
    let mut table = Table::new(&["WOULD APPLY"]);
    for object in objects {
        table.row(Paint::Plain, [title(object)]);
    }
    let mut text = table.text(style, "");
    if !left.is_empty() {
        let mut table = Table::new(&["WOULD DELETE"]);
        for (object, _) in left {
            table.row(Paint::Warn, [title(object)]);
        }
        text.push('\n');
        text.push_str(&table.text(style, ""));
    }
    let mut value = list(objects);
    let deleted = left.iter().map(|(object, _)| {
        let id = ObjectId::of(object);
        json!({"kind": id.kind, "namespace": id.namespace, "name": id.name})
    });
    value["wouldDelete"] = deleted.collect();
    Report::new(value, text)
}

fn summary(objects: &[Value], no_wait: bool) -> String {
    let images: Vec<&str> = Component::ALL
        .iter()
        .filter_map(|component| image_of(objects, *component))
        .collect();
    let state = if no_wait {
        "applied, not awaited"
    } else {
        "installed and available"
    };
    format!(
        "The controllers are {state}: {}\n\nNext:\n  \
         kubectl olm doctor                                   checks the installation\n  \
         kubectl apply -f catalog.yaml                        a ClusterCatalog, such as config/samples/clustercatalog.yaml\n  \
         kubectl olm search WORD                              finds a package\n  \
         kubectl apply -f extension.yaml                      a ClusterExtension, such as \
         config/samples/clusterextension.yaml\n  \
         kubectl olm status EXTENSION --watch                 waits until it is installed\n",
        images.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Format;
    use crate::source::stand_in;

    #[tokio::test]
    async fn a_dry_run_names_the_objects_to_delete() {
        const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        let binding = |name: &str| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name}})
        };
        let present = |name: &str, manager: &str| {
            let mut found = binding(name);
            found["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Apply"}]);
            (format!("{BINDINGS}/{name}"), found)
        };
        let (ours, theirs) = (present("ours", "kubectl-olm"), present("theirs", "kubectl"));
        let kinds = stand_in::resources(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "clusterrolebindings",
            false,
        );
        let cluster = stand_in::cluster(&[
            ("/apis/rbac.authorization.k8s.io/v1", 200, kinds),
            (&ours.0, 200, ours.1),
            (&theirs.0, 200, theirs.1),
        ])
        .await;
        let superfluous = ["absent", "ours", "theirs"].map(binding);
        let kinds = cluster.kinds(&superfluous).await.unwrap();
        let left = left_over(&cluster, &superfluous, &kinds).await.unwrap();
        let report = dry(&[binding("new")], &left, Style::of_stdout(Format::Json));
        assert_eq!(
            report.text,
            "WOULD APPLY\nClusterRoleBinding new\n\nWOULD DELETE\nClusterRoleBinding ours\n"
        );
        let deleted = json!([{"kind": "ClusterRoleBinding", "namespace": "", "name": "ours"}]);
        assert_eq!(report.value["wouldDelete"], deleted);
        assert_eq!(report.value["items"], json!([binding("new")]));
    }
}
