//! `upgrade`: changes version, channels or policy of an extension and waits until it is ready.

use olm_api::ClusterExtension;
use olm_version::RequestedRange;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::common::{progress, unless_unread, unless_unreadable, warn};
use super::extension::{one, until_settled};
use crate::absent::{self, existing};
use crate::cli::act::{DryRun, UpgradeArgs};
use crate::cli::{Policy, SourceArgs};
use crate::controllers::title;
use crate::failure::Failure;
use crate::kept::Kept;
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
    let cluster = Cluster::connect(&args.access).await?;
    announce(&cluster, &args).await?;
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

/// Says which bundle the change selects. Catalogs and revisions that the user cannot read do not stop the upgrade, because the
/// controller reads them with rights of its own.
///
/// # Errors
/// The extension does not exist or cannot be read, a rollback holds it, or the catalogs can be read and have no suitable bundle. Then
/// nothing is changed.
async fn announce(cluster: &Cluster, args: &UpgradeArgs) -> Result<(), Failure> {
    let extension = existing(cluster, &args.name).await?;
    let rollout = extension.spec.rollout.as_ref();
    if let Some(to) = rollout.and_then(|rollout| rollout.roll_back_to) {
        return Err(Failure::NegativeAnswer(format!(
            "nothing is changed: spec.rollout.rollBackTo holds the extension at the content of revision {to}. End the rollback first: \
             kubectl olm rollback {} --end",
            args.name
        )));
    }
    let source = SourceArgs {
        access: args.access.clone(),
        ..SourceArgs::default()
    };
    let input = async {
        let installed = cluster.installed(&extension).await?;
        let gates = cluster.gates().await;
        ResolutionInput::of(cluster, &source, extension, installed, &gates).await
    };
    let Some(ResolutionInput {
        mut request,
        inputs,
        assumption,
        extension,
        ..
    }) = unless_unreadable(input.await)?
    else {
        return Ok(());
    };
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
    let range = request.range.clone();
    let report = ResolveReport::new(request, &inputs, None);
    match &report.result {
        Ok(chosen) => {
            let before = before.unwrap_or_else(|| "nothing".to_owned());
            progress(&format!(
                "{before} → {} ({}) from catalog {}",
                chosen.bundle, chosen.version, chosen.catalog
            ));
            if let Some(text) = report.unreadable_dependency() {
                warn(&text);
            }
            Ok(())
        }
        Err(error) => {
            if let Some(extension) = &extension
                && let Some(kept) = Kept::find(cluster, extension, range.as_ref()).await?
            {
                progress(&format!("no catalog is selected: bundle {} stays", kept.title()));
                return Ok(());
            }
            unless_unread(
                error,
                format!(
                    "nothing is changed: {error}. `kubectl olm why {} --want VERSION` names the way to a version",
                    args.name
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::source::stand_in;

    const OLM: &str = "/apis/olm.operatorframework.io/v1";

    fn args(line: &str) -> Result<UpgradeArgs, clap::Error> {
        let words = ["kubectl-olm", "upgrade", "kite"]
            .into_iter()
            .chain(line.split_whitespace());
        let Command::Upgrade(args) = Cli::try_parse_from(words)?.command else {
            panic!("{line}");
        };
        Ok(args)
    }

    fn spec(line: &str) -> Result<Value, clap::Error> {
        Ok(patch(&args(line)?)["spec"]["source"]["catalog"].take())
    }

    /// Announces an upgrade of an extension with this rollout to a user who gets these answers to the lists of catalogs and
    /// revisions.
    async fn announced(
        rollout: Value,
        catalogs: (u16, Value),
        revisions: (u16, Value),
    ) -> Result<(), Failure> {
        let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "kite"},
            "spec": {"namespace": "sky", "rollout": rollout,
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}}}});
        let cluster = stand_in::cluster(&[
            (&format!("{OLM}/clusterextensions/kite"), 200, extension),
            (&format!("{OLM}/clustercatalogs"), catalogs.0, catalogs.1),
            (&format!("{OLM}/clusterobjectsets"), revisions.0, revisions.1),
        ])
        .await;
        announce(&cluster, &args("--latest").unwrap()).await
    }

    fn list_of(kind: &str, items: &Value) -> (u16, Value) {
        (
            200,
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": format!("{kind}List"), "metadata": {},
            "items": items}),
        )
    }

    fn forbidden() -> (u16, Value) {
        (403, stand_in::failure(403, "forbidden"))
    }

    #[tokio::test]
    async fn catalogs_that_the_user_cannot_read_stop_no_upgrade() {
        let none = || list_of("ClusterObjectSet", &json!([]));
        announced(json!({}), forbidden(), none()).await.unwrap();
        announced(json!({}), list_of("ClusterCatalog", &json!([])), forbidden())
            .await
            .unwrap();
        // Nobody answers at the address, and the API server's proxy does not either.
        let unread = json!([{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "sky"},
            "spec": {"source": {"type": "Image", "image": {"ref": "example.com/sky:v1"}}},
            "status": {"urls": {"base": "https://127.0.0.1:1/catalogs/sky"},
                "resolvedSource": {"type": "Image", "image": {"ref": "example.com/sky@sha256:ab"}},
                "conditions": [{"type": "Serving", "status": "True", "reason": "Available", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}]);
        announced(json!({}), list_of("ClusterCatalog", &unread), none())
            .await
            .unwrap();
        let empty = announced(json!({}), list_of("ClusterCatalog", &json!([])), none()).await;
        assert_eq!(empty.unwrap_err().code(), 1, "catalogs that can be read decide");
    }

    #[tokio::test]
    async fn without_catalogs_the_installed_bundle_stays() {
        let revision = json!([{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "kite-1", "labels": {"olm.operatorframework.io/owner-name": "kite"}, "annotations": {
                "olm.operatorframework.io/bundle-name": "kite.v1.0.0", "olm.operatorframework.io/bundle-version": "1.0.0"}},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"}}]);
        let catalogs = |labels: Value| {
            json!([{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "sky", "labels": labels}, "spec": {"availabilityMode": "Unavailable",
                "source": {"type": "Image", "image": {"ref": "example.com/sky:v1"}}}}])
        };
        let revisions = || list_of("ClusterObjectSet", &revision);
        announced(json!({}), list_of("ClusterCatalog", &json!([])), revisions())
            .await
            .unwrap();
        // A catalog that is selected and unavailable is one that has no bundle.
        let unavailable = list_of("ClusterCatalog", &catalogs(json!({})));
        let refused = announced(json!({}), unavailable, revisions()).await.unwrap_err();
        assert_eq!(refused.code(), 1);
    }

    #[tokio::test]
    async fn a_rollback_holds_whatever_the_user_may_read() {
        let refused = announced(json!({"rollBackTo": 1}), forbidden(), forbidden()).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), 1);
        assert!(
            refused
                .message()
                .starts_with("nothing is changed: spec.rollout.rollBackTo holds")
        );
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
