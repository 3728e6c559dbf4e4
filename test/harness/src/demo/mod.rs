//! The demo: a catalog, an extension, an install and an upgrade, with all components real except nodes.
//!
//! It acts like a user: anybody can apply the same objects with kubectl.

mod console;
mod content;
mod graph;
mod steps;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

pub use console::Console;
use content::Content;
use steps::Cluster;

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
struct Stage {
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
    let mut stage = tokio::select! {
        () = &mut interrupted => return Ok(()),
        stage = Stage::set(console) => stage?,
    };
    let shown = tokio::select! {
        () = &mut interrupted => return Ok(()),
        shown = stage.show(args, console) => shown,
    };
    if let Err(error) = shown {
        return Err(stage.explain(&error));
    }
    if args.once {
        return Ok(());
    }
    console.plain("\nIt stays up until Ctrl-C.");
    interrupted.await;
    Ok(())
}

impl Stage {
    async fn set(console: &Console) -> Result<Self> {
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

    async fn show(&mut self, args: &Args, console: &Console) -> Result<()> {
        let patience = Duration::from_mins(args.patience);
        let content = match (&args.catalog, &args.bundles, &args.package) {
            (Some(catalog), Some(bundles), Some(package)) => {
                Content::given(&self.registry, console, catalog, bundles, package).await?
            }
            (None, None, None) => Content::sample(&self.registry, console).await?,
            _ => bail!("--catalog, --bundles and --package belong together"),
        };
        let cluster = Cluster::new(self.control_plane.client(), console, patience);
        let extension = content.package.clone();
        cluster.namespace(NAMESPACE).await?;
        if let Some(watched) = &content.other_namespace {
            cluster.namespace(watched).await?;
        }
        let mut steps = content.steps.iter();
        let first = steps.next().context("there is nothing to install")?;
        cluster.catalog(CATALOG, &first.catalog).await?;
        cluster.served(CATALOG, &first.catalog).await?;
        cluster.extension(&extension, NAMESPACE, &content, first).await?;
        cluster.installed(&extension, &first.version).await?;
        console.line(&format!("installed: {} {}", content.package, first.version));
        let mut before = first;
        for step in steps {
            if step.catalog == before.catalog {
                console.line(&format!("asking for {}", step.version));
            } else {
                console.line(&format!("the catalog brings {}", step.version));
                cluster.catalog(CATALOG, &step.catalog).await?;
            }
            cluster.extension(&extension, NAMESPACE, &content, step).await?;
            cluster.installed(&extension, &step.version).await?;
            console.line(&format!(
                "upgraded: {} {} -> {}",
                content.package, before.version, step.version
            ));
            before = step;
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
    fn explain(&mut self, error: &anyhow::Error) -> anyhow::Error {
        let mut tails = Vec::new();
        for controller in [self.catalogd.controller(), self.operator_controller.controller()] {
            tails.push(controller.tail(25));
            controller.keep_logs();
        }
        self.control_plane.keep_logs();
        anyhow!("{error:#}\n{}", tails.join("\n"))
    }
}
