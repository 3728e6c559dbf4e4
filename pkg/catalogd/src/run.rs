//! Process lifecycle: starts all tasks and stops them together.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use kube::Client;
use olm_api::keys;
use olm_image::{ImageConfig, PullSecrets, Puller};
use olm_runtime::{
    Binary,
    args::CheckedArgs,
    build_info,
    features::Feature,
    health::{self, Health},
    lease::{self, LeaseConfig},
    metrics::{self, access::Access},
    pprof, serve,
    tls::{CATALOGD_OWN_CERT, OwnCertificate, ServingCert},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    args::Args,
    check::Checker,
    controller::{self, CatalogWatch, Context},
    gc::Collector,
    metrics::{Metrics, UNPACK},
    server,
    storage::Store,
};

/// Upstream's name of the lease.
const LEASE: &str = "catalogd-operator-lock";
/// Port of the metrics server if a certificate but no address is given.
const METRICS_PORT: u16 = 7443;
/// Directory of served content below the cache directory.
const CATALOGS: &str = "catalogs";

/// Runs catalogd until a stop signal. The TLS provider must be installed.
///
/// # Errors
/// Fails if a task cannot start or ends by itself.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let shutdown = olm_runtime::shutdown::token();
    let ended = run_until(args, shutdown.clone()).await;
    shutdown.cancel();
    ended
}

/// Runs catalogd until `shutdown`.
///
/// # Errors
/// Fails if a task cannot start or ends by itself.
pub async fn run_until(args: Args, shutdown: CancellationToken) -> anyhow::Result<()> {
    build_info::log("catalogd");
    let checked = args.common.check(Binary::Catalogd)?;
    let registry = metrics::Registry::new();
    let client = olm_runtime::measured_client(&args.common, &registry)
        .await
        .context("cannot reach a cluster")?;
    let certificate = serving_certificate(&args, &checked, &client, &shutdown).await?;
    let health = Health::new();
    let started = health.ready_flag("catalog-server", "catalog server not yet started");
    health.ready_until("shutdown", &shutdown);
    // Readiness fails first; the servers close after the delay, when clients have moved to other replicas.
    let closing = serve::cancelled_after(&shutdown, args.shutdown_delay);
    let requests = registry.register(server::Metrics::register);

    // Probes answer while the content is being verified.
    let mut tasks = JoinSet::new();
    let probes = args.common.health_probe_bind_address;
    spawn(&mut tasks, "health probes", {
        let (health, closing) = (health.clone(), closing.clone());
        async move { Ok(health::serve(probes, health, closing).await?) }
    });
    let store = open_store(&args).await?;
    let metrics = registry.register(|registry| Metrics::register(registry, store.clone(), &args.cache_dir));

    let listener = serve::listen("catalog content", args.catalogs_server_addr)?;
    if let Some(listener) = listener {
        let options = server::Options {
            graphql: args.common.features().enabled(Feature::GraphQlCatalogQueries),
            access: args
                .catalogs_server_require_token
                .then(|| Access::new(client.clone()).audience(server::AUDIENCE)),
        };
        let router = server::router_with(store.clone(), requests.clone(), &options);
        let router = server::close_connections_on(router, shutdown.clone());
        let app = server::app(router, requests);
        let (certificate, closing) = (certificate.clone(), closing.clone());
        let traffic = server::traffic(
            args.catalogs_server_max_connections,
            args.catalogs_server_max_connections_per_client,
        );
        spawn(&mut tasks, "catalog server", async move {
            Ok(server::serve(listener, app, &certificate, traffic, closing).await?)
        });
    }
    let measured = args
        .common
        .metrics_bind_address
        .resolve(METRICS_PORT, checked.tls_files.is_some());
    spawn(&mut tasks, "metrics", {
        let (client, registry) = (client.clone(), registry.clone());
        async move { Ok(metrics::serve(measured, registry, client, &certificate, closing).await?) }
    });
    let puller = new_puller(&mut tasks, &args, &client, &shutdown);
    spawn_pprof(&mut tasks, &args, &shutdown);
    let collector = Collector {
        client: client.clone(),
        store: store.clone(),
        puller: puller.clone(),
        unpacked: args.cache_dir.join(UNPACK),
    };
    let catalogs = CatalogWatch::default();
    let (interval, collecting) = (args.gc_interval, shutdown.clone());
    let deleted = catalogs.deleted();
    spawn(&mut tasks, "garbage collection", async move {
        collector.run(interval, deleted, collecting).await;
        Ok(())
    });
    spawn_checks(&mut tasks, &args, &store, &metrics, &shutdown);
    let base_url = format!("https://{}", args.external_address);
    let is_leader = Arc::new(AtomicBool::new(false));
    health.ready_check("catalog-content", {
        let (catalogs, store, is_leader) = (catalogs.clone(), store.clone(), is_leader.clone());
        move || catalogs.check_serving(&store, is_leader.load(Ordering::Relaxed))
    });
    started.set_ready();
    spawn(&mut tasks, "catalog watch", {
        let (catalogs, client, shutdown) = (catalogs.clone(), client.clone(), shutdown.clone());
        async move {
            catalogs.run(client, shutdown).await;
            Ok(())
        }
    });
    let context = Context::new(client.clone(), store, puller, metrics, base_url, shutdown.clone())
        .with_workers(&metrics::ReconcileMetrics::register(&registry), args.concurrency);
    let context = Arc::new(context);
    spawn(&mut tasks, "history of deleted catalogs", {
        let forgetting = controller::forget_deleted(context.clone(), catalogs.deleted(), shutdown.clone());
        async move {
            forgetting.await;
            Ok(())
        }
    });
    let lease = args
        .common
        .leader_elect
        .then(|| LeaseConfig::new(args.common.system_namespace(), LEASE).measured(&registry));
    spawn(
        &mut tasks,
        "controller",
        run_controller(client, context, catalogs, is_leader, lease, shutdown.clone()),
    );

    join_all(tasks, shutdown).await
}

/// Opens and verifies the content on disk.
async fn open_store(args: &Args) -> anyhow::Result<Arc<Store>> {
    let (catalogs, limits) = (args.cache_dir.join(CATALOGS), args.caps.limits());
    let open = move || Store::open(catalogs).map(|store| store.with_limits(limits));
    let store = tokio::task::spawn_blocking(open)
        .await
        .context("the cache directory cannot be opened")?
        .map_err(|error| anyhow::anyhow!(olm_text::chain(&error)))?;
    Ok(Arc::new(store))
}

/// Creates the puller; it separates the pulls of different catalogs.
fn new_puller(
    tasks: &mut JoinSet<TaskResult>,
    args: &Args,
    client: &Client,
    shutdown: &CancellationToken,
) -> Arc<Puller> {
    let pull_secrets = watch_pull_secrets(tasks, args, client, shutdown);
    // Unpacked images need no sync: their content is stored and synced at once, then they are removed.
    let puller = Puller::new(ImageConfig {
        durable: false,
        ..args.images.config(&args.cache_dir, &args.common, pull_secrets)
    });
    if let Some(warning) = puller.warning() {
        tracing::warn!("{warning}");
    }
    Arc::new(puller)
}

/// Follows the leader until this replica leads, then reconciles.
async fn run_controller(
    client: Client,
    context: Arc<Context>,
    catalogs: CatalogWatch,
    is_leader: Arc<AtomicBool>,
    lease: Option<LeaseConfig>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let following = shutdown.child_token();
    let follower = lease
        .is_some()
        .then(|| tokio::spawn(controller::follow(context.clone(), catalogs, following.clone())));
    lease::run_when_leader(client, lease, shutdown, |leading| async move {
        following.cancel();
        if let Some(follower) = follower {
            let _ = follower.await;
        }
        is_leader.store(true, Ordering::Relaxed);
        controller::run(context, leading).await;
    })
    .await?;
    Ok(())
}

/// Starts the watch of Secrets with registry credentials.
fn watch_pull_secrets(
    tasks: &mut JoinSet<TaskResult>,
    args: &Args,
    client: &Client,
    shutdown: &CancellationToken,
) -> PullSecrets {
    let followed = PullSecrets::unloaded();
    let (client, shutdown) = (client.clone(), shutdown.clone());
    let (named, secrets) = (args.common.global_pull_secret.clone(), followed.clone());
    spawn(tasks, "pull secrets", async move {
        olm_image::watch_pull_secrets(client, named, secrets, shutdown).await;
        Ok(())
    });
    followed
}

/// Starts the periodic check of stored content.
fn spawn_checks(
    tasks: &mut JoinSet<TaskResult>,
    args: &Args,
    store: &Arc<Store>,
    metrics: &Metrics,
    shutdown: &CancellationToken,
) {
    let checker = Checker {
        store: store.clone(),
        metrics: metrics.clone(),
    };
    let (interval, shutdown) = (args.content_check_interval, shutdown.clone());
    spawn(tasks, "checks of content", async move {
        checker.run(interval, shutdown).await;
        Ok(())
    });
}

/// Starts the server that replaces Go's pprof endpoints.
fn spawn_pprof(tasks: &mut JoinSet<TaskResult>, args: &Args, shutdown: &CancellationToken) {
    let (address, shutdown) = (args.common.pprof_bind_address, shutdown.clone());
    spawn(tasks, "profiles", async move {
        Ok(pprof::serve(address, shutdown).await?)
    });
}

async fn serving_certificate(
    args: &Args,
    checked: &CheckedArgs,
    client: &Client,
    shutdown: &CancellationToken,
) -> anyhow::Result<ServingCert> {
    let namespace = args.common.system_namespace();
    let own = OwnCertificate {
        names: certificate_names(&args.external_address, &namespace),
        namespace,
        secret: CATALOGD_OWN_CERT.to_owned(),
        labels: BTreeMap::from([(keys::APPLICATION_NAME_LABEL.to_owned(), "catalogd".to_owned())]),
    };
    checked
        .serving_certificate(client.clone(), own, shutdown.clone())
        .await
        .context("no serving certificate")
}

/// Returns the DNS names and addresses in the serving certificate.
fn certificate_names(external: &str, namespace: &str) -> Vec<String> {
    let host = match external.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => external,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let service = format!("catalogd-service.{namespace}.svc");
    let mut names = vec![host.to_owned()];
    for name in [
        service.clone(),
        format!("{service}.cluster.local"),
        "localhost".to_owned(),
    ] {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

type TaskResult = (&'static str, anyhow::Result<()>);

fn spawn(
    tasks: &mut JoinSet<TaskResult>,
    what: &'static str,
    task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) {
    tasks.spawn(async move { (what, task.await) });
}

/// Waits for all tasks. The first failure stops the others.
async fn join_all(mut tasks: JoinSet<TaskResult>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut first = Ok(());
    while let Some(ended) = tasks.join_next().await {
        let result = match ended {
            Ok((what, result)) => result.with_context(|| format!("{what} ended")),
            Err(error) => Err(error).context("a task ended abnormally"),
        };
        if let Err(error) = result {
            shutdown.cancel();
            if first.is_ok() {
                first = Err(error);
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_certificate() {
        assert_eq!(
            certificate_names("catalogd-service.olmv1-system.svc", "olmv1-system"),
            [
                "catalogd-service.olmv1-system.svc",
                "catalogd-service.olmv1-system.svc.cluster.local",
                "localhost",
            ]
        );
        for (external, host) in [
            ("127.0.0.1:8443", "127.0.0.1"),
            ("[::1]:8443", "::1"),
            ("::1", "::1"),
            ("localhost:1", "localhost"),
        ] {
            assert_eq!(
                certificate_names(external, "ns").first().map(String::as_str),
                Some(host),
                "{external}"
            );
        }
    }
}
