//! `upgrade`: changes version, channels or policy of an extension and waits until it is ready.

use olm_api::ClusterExtension;
use olm_version::RequestedRange;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::common::{progress, unless_unreadable, warn};
use super::extension::{one, until_settled};
use crate::absent;
use crate::cli::act::{DryRun, UpgradeArgs};
use crate::cli::{Policy, RequestArgs, SourceArgs};
use crate::controllers::title;
use crate::failure::Failure;
use crate::manifests::{documents, list};
use crate::report::Report;
use crate::resolution_input::ResolutionInput;
use crate::resolve_report::{ResolveReport, installed_text};
use crate::source::Cluster;
use crate::style::Style;

/// Upgrades an extension; positive if it is ready at the end.
pub(crate) async fn run(args: UpgradeArgs, style: Style) -> Result<Report, Failure> {
    let name = args.name.clone();
    let patch = patch(&args);
    if args.write.dry_run == Some(DryRun::Client) {
        let objects = [patch];
        return Ok(Report::new(list(&objects), documents(&objects)?));
    }
    announce(&args).await?;
    let cluster = Cluster::connect(&args.access).await?;
    let kinds = cluster.kinds(std::slice::from_ref(&patch)).await?;
    let dry_run = args.write.dry_run.is_some();
    let Some(written) = cluster.merge(&patch, &patch, &kinds, dry_run).await? else {
        return Err(Failure::NegativeAnswer(absent::extension(&cluster, &name).await));
    };
    progress(&format!("{} changed", title(&patch)));
    let written: Option<ClusterExtension> = serde_json::to_value(written)
        .and_then(serde_json::from_value)
        .ok();
    let objects = [written.as_ref().map_or(patch, manifest)];
    if dry_run || args.write.no_wait {
        return Ok(Report::new(list(&objects), documents(&objects)?));
    }
    let deadline = Instant::now() + args.write.timeout;
    let ready = until_settled(&cluster, &name, Some(deadline)).await?;
    Ok(Report {
        value: list(&objects),
        ..one(&ready, style)
    })
}

/// Returns the merge patch, a null for each field that goes.
fn patch(args: &UpgradeArgs) -> Value {
    let mut catalog = Map::new();
    if args.latest {
        catalog.insert("version".to_owned(), Value::Null);
    } else if let Some(version) = &args.version {
        catalog.insert("version".to_owned(), json!(version));
    }
    if args.any_channel {
        catalog.insert("channels".to_owned(), Value::Null);
    } else if !args.channels.is_empty() {
        catalog.insert("channels".to_owned(), json!(args.channels));
    }
    if let Some(policy) = args.policy {
        let policy = match policy {
            Policy::CatalogProvided => "CatalogProvided",
            Policy::SelfCertified => "SelfCertified",
        };
        catalog.insert("upgradeConstraintPolicy".to_owned(), json!(policy));
    }
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": args.name},
        "spec": {"source": {"catalog": catalog}}})
}

/// Returns an extension as a manifest: name, labels and spec.
fn manifest(extension: &ClusterExtension) -> Value {
    let mut metadata = json!({"name": extension.metadata.name});
    if let Some(labels) = &extension.metadata.labels {
        metadata["labels"] = json!(labels);
    }
    json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": metadata,
        "spec": extension.spec})
}

/// Says which bundle the change selects.
///
/// # Errors
/// The extension does not exist, or the change selects no bundle; then nothing is changed.
async fn announce(args: &UpgradeArgs) -> Result<(), Failure> {
    let source = SourceArgs {
        access: args.access.clone(),
        ..SourceArgs::default()
    };
    let input = ResolutionInput::of_extension(&source, &args.name, &RequestArgs::default()).await;
    let Some(ResolutionInput {
        mut request,
        inputs,
        extension,
        assumption,
        ..
    }) = unless_unreadable(input)?
    else {
        return Ok(());
    };
    let rollout = extension.and_then(|extension| extension.spec.rollout);
    if let Some(to) = rollout.and_then(|rollout| rollout.roll_back_to) {
        return Err(Failure::NegativeAnswer(format!(
            "nothing is changed: spec.rollout.rollBackTo holds the extension at the content of revision {to}. End the rollback first: \
             kubectl olm rollback {} --end",
            args.name
        )));
    }
    if args.latest {
        request.range = None;
    } else if let Some(version) = &args.version {
        request.range = RequestedRange::new(version);
    }
    if args.any_channel {
        request.channels = Vec::new();
    } else if !args.channels.is_empty() {
        request.channels.clone_from(&args.channels);
    }
    if let Some(policy) = args.policy {
        request.self_certified = policy == Policy::SelfCertified;
    }
    if let Some(assumption) = assumption {
        warn(&assumption);
    }
    let before = request.installed.as_ref().map(installed_text);
    let report = ResolveReport::new(request, &inputs, None);
    match &report.result {
        Ok(chosen) => {
            let before = before.unwrap_or_else(|| "nothing".to_owned());
            progress(&format!(
                "{before} → {} ({}) from catalog {}",
                chosen.bundle, chosen.version, chosen.catalog
            ));
            Ok(())
        }
        Err(error) => Err(Failure::NegativeAnswer(format!(
            "nothing is changed: {error}. `kubectl olm why {} --want VERSION` names the way to a version",
            args.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn spec(line: &str) -> Result<Value, clap::Error> {
        let words = ["kubectl-olm", "upgrade", "kite"]
            .into_iter()
            .chain(line.split_whitespace());
        let Command::Upgrade(args) = Cli::try_parse_from(words)?.command else {
            panic!("{line}");
        };
        Ok(patch(&args)["spec"]["source"]["catalog"].take())
    }

    #[test]
    fn a_patch_has_only_what_was_asked_for() {
        for (line, catalog) in [
            ("--version 2.x", json!({"version": "2.x"})),
            ("--latest", json!({"version": null})),
            ("--channel a --channel b", json!({"channels": ["a", "b"]})),
            (
                "--any-channel --latest",
                json!({"channels": null, "version": null}),
            ),
            (
                "--policy CatalogProvided",
                json!({"upgradeConstraintPolicy": "CatalogProvided"}),
            ),
        ] {
            assert_eq!(spec(line).unwrap(), catalog, "{line}");
        }
        for line in ["", "--latest --version 1", "--any-channel --channel a"] {
            assert!(spec(line).is_err(), "{line}");
        }
    }
}
