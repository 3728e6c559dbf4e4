//! The demo: a catalog, an extension, an install and an upgrade, with all components real except nodes.
//!
//! It acts like a user: anybody can apply the same objects with kubectl.

mod cluster;
mod console;
mod content;
mod graph;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use cluster::Cluster;
pub use console::Console;
use content::Content;

use crate::{
    Catalogd, ControlPlane, OperatorController, PodStandIn, Registry, build_controllers, install_crds,
};

/// Name of the catalog and of the namespace that the demo creates.
const CATALOG: &str = "demo";
const NAMESPACE: &str = "demo";

/// Arguments of the demo.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "demo",
    about = "Install and upgrade an operator on a control plane made for it"
)]
pub struct Args {
    /// Exit after success instead of staying up until Ctrl-C.
    #[arg(long, env = "ONCE", value_parser = clap::builder::FalseyValueParser::new(),
          num_args = 0..=1, require_equals = true, default_value = "0", default_missing_value = "1")]
    pub once: bool,
    /// Directory of file-based catalogs. By default the demo uses its own sample.
    #[arg(long, value_name = "DIR", requires = "bundles", requires = "package")]
    pub catalog: Option<PathBuf>,
    /// Bundles of the catalog: directories with `manifests` and `metadata`, at a depth of up to three.
    #[arg(long, value_name = "DIR", requires = "catalog")]
    pub bundles: Option<PathBuf>,
    /// Package to install from the catalog.
    #[arg(long, value_name = "NAME", requires = "catalog")]
    pub package: Option<String>,
    /// Maximum duration of each install or upgrade in minutes.
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    pub patience: u64,
}

/// Running components. Dropping them stops their processes.
struct Environment {
    catalogd: Catalogd,
    operator_controller: OperatorController,
    _pods: PodStandIn,
    registry: Registry,
    control_plane: ControlPlane,
}

/// Runs the demo; returns after its success and, unless `once`, when `interrupted` completes.
///
/// # Errors
/// The first error, with the tails of the controllers' logs.
pub async fn run(args: &Args, console: &Console, interrupted: impl Future<Output = ()>) -> Result<()> {
    tokio::pin!(interrupted);
    let mut environment = tokio::select! {
        () = &mut interrupted => return Ok(()),
        environment = Environment::start(console) => environment?,
    };
    let finished = tokio::select! {
        () = &mut interrupted => return Ok(()),
        finished = environment.run(args, console) => finished,
    };
    if let Err(error) = finished {
        return Err(environment.with_logs(&error));
    }
    if args.once {
        return Ok(());
    }
    console.plain("\nIt stays up until Ctrl-C.");
    interrupted.await;
    Ok(())
}

impl Environment {
    async fn start(console: &Console) -> Result<Self> {
        console.line("building catalogd and operator-controller");
        build_controllers().await?;
        console.line("starting etcd, kube-apiserver, kube-controller-manager");
        let control_plane = ControlPlane::start().await?;
        console.line("control plane ready; starting the registry");
        let registry = Registry::start().await?;
        let client = control_plane.client();
        install_crds(&client).await?;
        let pods = PodStandIn::start(client);
        console.line("starting catalogd and operator-controller");
        let catalogd = Catalogd::start(&control_plane, &registry).await?;
        let operator_controller = OperatorController::start(&control_plane, &registry).await?;
        console.line("all up (there is no node: a stand-in marks pods ready, no container runs)");
        Ok(Self {
            catalogd,
            operator_controller,
            _pods: pods,
            registry,
            control_plane,
        })
    }

    async fn run(&mut self, args: &Args, console: &Console) -> Result<()> {
        let timeout = Duration::from_mins(args.patience);
        let content = match (&args.catalog, &args.bundles, &args.package) {
            (Some(catalog), Some(bundles), Some(package)) => {
                Content::from_folders(&self.registry, console, catalog, bundles, package).await?
            }
            (None, None, None) => Content::sample(&self.registry, console).await?,
            _ => bail!("--catalog, --bundles and --package belong together"),
        };
        let cluster = Cluster::new(self.control_plane.client(), console, timeout);
        let extension = content.package.clone();
        cluster.namespace(NAMESPACE).await?;
        if let Some(watched) = &content.other_namespace {
            cluster.namespace(watched).await?;
        }
        let mut targets = content.targets.iter();
        let first = targets.next().context("there is nothing to install")?;
        cluster.catalog(CATALOG, &first.catalog).await?;
        cluster.served(CATALOG, &first.catalog).await?;
        cluster.extension(&extension, NAMESPACE, &content, first).await?;
        cluster.installed(&extension, &first.version).await?;
        console.line(&format!("installed: {} {}", content.package, first.version));
        let mut before = first;
        for target in targets {
            if target.catalog == before.catalog {
                console.line(&format!("asking for {}", target.version));
            } else {
                console.line(&format!("the catalog brings {}", target.version));
                cluster.catalog(CATALOG, &target.catalog).await?;
            }
            cluster.extension(&extension, NAMESPACE, &content, target).await?;
            cluster.installed(&extension, &target.version).await?;
            console.line(&format!(
                "upgraded: {} {} -> {}",
                content.package, before.version, target.version
            ));
            before = target;
        }
        let kubeconfig = self.control_plane.kubeconfig().display();
        console.plain(&format!(
            "\n  export KUBECONFIG={kubeconfig}\n\n\
             \x20 kubectl get clustercatalogs,clusterextensions,clusterobjectsets\n\
             \x20 kubectl get clusterextension {extension} -o yaml\n\
             \x20 kubectl -n {NAMESPACE} get deployments,pods,configmaps,serviceaccounts\n\
             \x20 kubectl delete clusterextension {extension}"
        ));
        Ok(())
    }

    /// Adds the tails of the controllers' logs to the error, and keeps the logs.
    fn with_logs(&mut self, error: &anyhow::Error) -> anyhow::Error {
        let mut tails = Vec::new();
        for controller in [self.catalogd.controller(), self.operator_controller.controller()] {
            tails.push(controller.tail(25));
            controller.keep_logs();
        }
        self.control_plane.keep_logs();
        anyhow!("{error:#}\n{}", tails.join("\n"))
    }
}
