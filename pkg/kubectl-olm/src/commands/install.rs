//! `install`: creates a ClusterExtension and waits until it is ready.

use olm_api::names::Segment;
use olm_packages::{Installation, default_namespace};
use olm_resolve::Resolution;
use olm_text::object::metadata_name;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::common::{package, progress, unless_unread, unless_unreadable, warn};
use super::extension::{one, until_settled};
use crate::cli::act::{DryRun, InstallPackageArgs};
use crate::cli::{Policy, RequestArgs, SourceArgs};
use crate::controllers::title;
use crate::failure::Failure;
use crate::manifests::{documents, list};
use crate::report::Report;
use crate::resolve_report::{ResolveReport, request};
use crate::source::{Apply, Cluster, Kinds, gates_of};
use crate::style::Style;

/// Installs a package; positive if the extension is ready at the end.
pub(crate) async fn run(args: InstallPackageArgs, style: Style) -> Result<Report, Failure> {
    let name = args.name.as_deref().unwrap_or(&args.package).to_owned();
    let namespace = if args.suggested_namespace {
        None
    } else {
        Some(namespace(&args)?)
    };
    if Segment::new(&name).is_err() {
        return Err(Failure::Usage(format!(
            "{name:?} cannot be the name of a ClusterExtension: choose one with --name"
        )));
    }
    let extension = extension(&args, &name, namespace.as_deref());
    let space =
        namespace.map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let mut objects = vec![extension.clone()];
    if args.create_namespace {
        objects.splice(0..0, space.clone());
    }
    if args.write.dry_run == Some(DryRun::Client) {
        return Ok(Report::new(list(&objects), documents(&objects)?));
    }
    let cluster = Cluster::connect(&args.access).await?;
    if cluster.one_extension(&name).await?.is_some() {
        return Err(Failure::NegativeAnswer(format!(
            "ClusterExtension {name:?} exists: change it with `kubectl olm upgrade {name}`, or install the package once more \
             with --name"
        )));
    }
    let written: Vec<Value> = space.iter().chain([&extension]).cloned().collect();
    let kinds = cluster.kinds(&written).await?;
    if let Some((version, kind)) = kinds.unserved().next() {
        return Err(Failure::NegativeAnswer(format!(
            "the cluster does not serve {kind} {version}: install the controllers with `kubectl olm install-controllers`"
        )));
    }
    let missing = match space {
        Some(space) if cluster.present(&space, &kinds).await?.is_none() => Some(space),
        _ => None,
    };
    if let Some(space) = missing.as_ref().filter(|_| !args.create_namespace) {
        return Err(Failure::NegativeAnswer(format!(
            "namespace {:?} does not exist: add --create-namespace, or name another one with --namespace",
            metadata_name(space)
        )));
    }
    announce(&args).await?;
    let options = Apply {
        dry_run: args.write.dry_run.is_some(),
        ..Apply::default()
    };
    if let Some(space) = &missing {
        apply(&cluster, space, &kinds, options).await?;
    }
    apply(&cluster, &extension, &kinds, options).await?;
    if options.dry_run || args.write.no_wait {
        return Ok(Report::new(list(&objects), documents(&objects)?));
    }
    let deadline = Instant::now() + args.write.timeout;
    let ready = until_settled(&cluster, &name, Some(deadline)).await?;
    let shown = one(&ready, style);
    Ok(Report {
        value: list(&objects),
        ..shown
    })
}

/// Applies an object whose kind is served.
async fn apply(cluster: &Cluster, object: &Value, kinds: &Kinds, options: Apply) -> Result<(), Failure> {
    if cluster.apply(object, kinds, options).await?.is_none() {
        return Err(Failure::Usage(format!(
            "nothing is applied: no API server accepts the name of {}",
            title(object)
        )));
    }
    progress(&format!("{} applied", title(object)));
    Ok(())
}

/// Returns the namespace of the extension's objects.
fn namespace(args: &InstallPackageArgs) -> Result<String, Failure> {
    if let Some(namespace) = &args.namespace {
        return Ok(namespace.clone());
    }
    default_namespace(&args.package).ok_or_else(|| {
        Failure::Usage(format!(
            "{:?} cannot be the name of a namespace: choose one with --namespace",
            format!("{}-system", &*args.package)
        ))
    })
}

/// Returns the manifest of the extension; without a namespace, the bundle suggests one.
fn extension(args: &InstallPackageArgs, name: &str, namespace: Option<&str>) -> Value {
    let installation = Installation {
        name,
        package: &args.package,
        namespace,
        version: args.version.as_deref().unwrap_or_default(),
        channels: &args.channels,
        self_certified: args.policy == Policy::SelfCertified,
        catalog: args.catalog.as_deref(),
        service_account: args.service_account.as_deref(),
    };
    installation.manifest()
}

/// Says which bundle will be installed. Catalogs that the user cannot read do not stop the installation, because the controller
/// reads them with rights of its own.
///
/// # Errors
/// The catalogs can be read and have no suitable bundle, so that the controller would find none either.
async fn announce(args: &InstallPackageArgs) -> Result<(), Failure> {
    let source = SourceArgs {
        only: args.catalog.iter().cloned().collect(),
        access: args.access.clone(),
        ..SourceArgs::default()
    };
    let Some(inputs) = unless_unreadable(package(&source, &args.package).await)? else {
        return Ok(());
    };
    let wanted = RequestArgs {
        range: args.version.clone(),
        channels: args.channels.clone(),
        policy: args.policy,
        ..RequestArgs::default()
    };
    let gates = gates_of(&source).await;
    if let Some(assumption) = gates.assumption_on_releases(&inputs) {
        warn(&assumption);
    }
    let report = ResolveReport::new(request(&args.package, &wanted, &inputs, &gates)?, &inputs, None);
    match &report.result {
        Ok(Resolution { version, catalog, .. }) => {
            progress(&format!(
                "package {}: version {version} of catalog {catalog}",
                &*args.package
            ));
            if let Some(text) = report.unreadable_dependency() {
                warn(&text);
            }
            Ok(())
        }
        Err(error) => unless_unread(
            error,
            format!(
                "nothing is installed: {error}. `kubectl olm why --package {}` says more",
                &*args.package
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::source::stand_in;

    fn args(line: &str) -> InstallPackageArgs {
        let words = ["kubectl-olm", "install"]
            .into_iter()
            .chain(line.split_whitespace());
        let Command::Install(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("{line}");
        };
        args
    }

    #[test]
    fn a_manifest_has_only_what_was_asked_for() {
        let plain = args("kite");
        assert_eq!(namespace(&plain).unwrap(), "kite-system");
        assert_eq!(
            extension(&plain, "kite", Some("kite-system"))["spec"],
            json!({"namespace": "kite-system", "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}}})
        );
        let full = args(
            "kite --name k -n sky --version 1.x --channel a --channel b --policy SelfCertified --catalog c \
             --service-account pilot",
        );
        assert_eq!(
            extension(&full, "k", Some(&namespace(&full).unwrap())),
            json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "k"},
                "spec": {"namespace": "sky", "serviceAccount": {"name": "pilot"}, "source": {"sourceType": "Catalog",
                    "catalog": {"packageName": "kite", "version": "1.x", "channels": ["a", "b"],
                        "upgradeConstraintPolicy": "SelfCertified",
                        "selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": "c"}}}}}})
        );
    }

    #[test]
    fn a_suggested_namespace_is_left_out() {
        let suggested = args("kite --suggested-namespace");
        assert!(suggested.suggested_namespace);
        assert!(
            extension(&suggested, "kite", None)["spec"]
                .get("namespace")
                .is_none()
        );
        let both = [
            "kubectl-olm",
            "install",
            "kite",
            "--suggested-namespace",
            "-n",
            "sky",
        ];
        assert!(Cli::try_parse_from(both).is_err());
    }

    #[tokio::test]
    async fn an_impossible_name_is_refused() {
        for flags in ["", "--no-wait", "--dry-run"] {
            let refused = run(args(&format!("kite --name a/b {flags}")), Style::plain())
                .await
                .unwrap_err();
            assert_eq!(refused.code(), 2, "{flags}");
            assert!(
                refused.message().contains("\"a/b\" cannot be the name"),
                "{}",
                refused.message()
            );
        }
        let names = stand_in::resources("v1", "Namespace", "namespaces", false);
        let cluster = stand_in::cluster(&[("/api/v1", 200, names)]).await;
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a/b"}});
        let kinds = cluster.kinds(std::slice::from_ref(&space)).await.unwrap();
        let refused = apply(&cluster, &space, &kinds, Apply::default())
            .await
            .unwrap_err();
        assert_eq!(refused.code(), 2);
    }

    #[test]
    fn an_impossible_namespace_is_refused() {
        for package in ["a.b", &"k".repeat(60)] {
            let refused = namespace(&args(package)).unwrap_err();
            assert_eq!(refused.code(), 2);
        }
    }
}
