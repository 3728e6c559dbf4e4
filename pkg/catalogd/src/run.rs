//! The process: everything started, and ended together.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use kube::Client;
use olm_image::{ImageConfig, PullSecrets, Puller};
use olm_runtime::{
    Binary,
    args::Checked,
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
    controller::{self, Claims, Context},
    gc::Collector,
    metrics::Metrics,
    server,
    storage::Store,
};

/// Upstream's name of the lease.
const LEASE: &str = "catalogd-operator-lock";
/// Where metrics are served when a certificate is given but no address.
const METRICS_PORT: u16 = 7443;
/// Folder of served content below the cache directory.
const CATALOGS: &str = "catalogs";
/// Folder of unpacked images below the cache directory.
pub(crate) const UNPACK: &str = "unpack";

/// Runs catalogd until a signal ends it. The TLS provider must be installed.
///
/// # Errors
/// Something could not be started, or ended by itself.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let shutdown = olm_runtime::shutdown::token();
    let ended = run_until(args, shutdown.clone()).await;
    shutdown.cancel();
    ended
}

/// Runs catalogd until `shutdown`, for tests and for [`run`].
///
/// # Errors
/// Something could not be started, or ended by itself.
pub async fn run_until(args: Args, shutdown: CancellationToken) -> anyhow::Result<()> {
    build_info::log("catalogd");
    let checked = args.common.check(Binary::Catalogd)?;
    let registry = metrics::Registry::new();
    let client = olm_runtime::measured_client(&args.common, &registry)
        .await
        .context("cannot reach a cluster")?;
    let certificate = certificate(&args, &checked, &client, &shutdown).await?;
    let health = Health::new();
    let started = health.ready_flag("catalog-server", "catalog server not yet started");
    health.ready_until("shutdown", &shutdown);
    // First readers are told to go elsewhere; the servers end when they have had the time to.
    let closing = serve::later(&shutdown, args.shutdown_delay);
    let requests = registry.register(server::Metrics::register);

    // Probes answer while the content is still verified.
    let mut tasks = JoinSet::new();
    let probes = args.common.health_probe_bind_address;
    spawn(&mut tasks, "health probes", {
        let (health, closing) = (health.clone(), closing.clone());
        async move { Ok(health::serve(probes, health, closing).await?) }
    });
    let store = content(&args).await?;
    let figures = registry.register(|registry| Metrics::register(registry, store.clone(), &args.cache_dir));

    let listener = serve::listen("catalog content", args.catalogs_server_addr)?;
    if let Some(listener) = listener {
        let options = server::Options {
            graphql: args.common.features().enabled(Feature::GraphQlCatalogQueries),
            access: args
                .catalogs_server_require_token
                .then(|| Access::new(client.clone()).audience(server::AUDIENCE)),
        };
        let router = server::router_with(store.clone(), requests, &options);
        let router = server::leaving(router, shutdown.clone());
        let (certificate, closing) = (certificate.clone(), closing.clone());
        let traffic = server::traffic(
            args.catalogs_server_max_connections,
            args.catalogs_server_max_connections_per_client,
        );
        spawn(&mut tasks, "catalog server", async move {
            Ok(server::serve(listener, router, &certificate, traffic, closing).await?)
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
    let puller = puller(&mut tasks, &args, &client, &shutdown);
    profiles(&mut tasks, &args, &shutdown);
    let collector = Collector {
        client: client.clone(),
        store: store.clone(),
        puller: puller.clone(),
        unpacked: args.cache_dir.join(UNPACK),
    };
    let claims = Claims::default();
    let (interval, collecting) = (args.gc_interval, shutdown.clone());
    let vanished = claims.vanished();
    spawn(&mut tasks, "garbage collection", async move {
        collector.run(interval, vanished, collecting).await;
        Ok(())
    });
    checks(&mut tasks, &args, &store, &figures, &shutdown);
    let base_url = format!("https://{}", args.external_address);
    let leading = Arc::new(AtomicBool::new(false));
    health.ready_check("catalog-content", {
        let (claims, store, leading) = (claims.clone(), store.clone(), leading.clone());
        move || claims.met(&store, leading.load(Ordering::Relaxed))
    });
    started.set_ready();
    spawn(&mut tasks, "watch of catalogs", {
        let (claims, client, shutdown) = (claims.clone(), client.clone(), shutdown.clone());
        async move {
            claims.watch(client, shutdown).await;
            Ok(())
        }
    });
    let context = Context::new(client.clone(), store, puller, figures, base_url, shutdown.clone())
        .measured(&metrics::Reconciles::register(&registry), args.concurrency);
    let context = Arc::new(context);
    spawn(&mut tasks, "catalogs that are gone", {
        let forgetting = controller::forget_vanished(context.clone(), claims.vanished(), shutdown.clone());
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
        lead(client, context, claims, leading, lease, shutdown.clone()),
    );

    all(tasks, shutdown).await
}

/// The content on disk, verified.
async fn content(args: &Args) -> anyhow::Result<Arc<Store>> {
    let (catalogs, limits) = (args.cache_dir.join(CATALOGS), args.caps.limits());
    let open = move || Store::open(catalogs).map(|store| store.within(limits));
    let store = tokio::task::spawn_blocking(open)
        .await
        .context("the cache directory cannot be opened")?
        .map_err(|error| anyhow::anyhow!(olm_runtime::telemetry::chain(&error)))?;
    Ok(Arc::new(store))
}

/// The one puller, which keeps the pulls of one catalog apart.
fn puller(
    tasks: &mut JoinSet<Ended>,
    args: &Args,
    client: &Client,
    shutdown: &CancellationToken,
) -> Arc<Puller> {
    let pull_secrets = pull_secrets(tasks, args, client, shutdown);
    // What it unpacks is stored at once, synced, and then removed.
    let puller = Puller::new(ImageConfig {
        durable: false,
        ..args.images.config(&args.cache_dir, &args.common, pull_secrets)
    });
    if let Some(warning) = puller.warning() {
        tracing::warn!("{warning}");
    }
    Arc::new(puller)
}

/// Follows the leader until leading, then reconciles.
async fn lead(
    client: Client,
    context: Arc<Context>,
    claims: Claims,
    leads: Arc<AtomicBool>,
    lease: Option<LeaseConfig>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let following = shutdown.child_token();
    let follower = lease
        .is_some()
        .then(|| tokio::spawn(controller::follow(context.clone(), claims, following.clone())));
    lease::run_when_leader(client, lease, shutdown, |leading| async move {
        following.cancel();
        if let Some(follower) = follower {
            let _ = follower.await;
        }
        leads.store(true, Ordering::Relaxed);
        controller::run(context, leading).await;
    })
    .await?;
    Ok(())
}

/// Starts to follow the Secrets with registry credentials.
fn pull_secrets(
    tasks: &mut JoinSet<Ended>,
    args: &Args,
    client: &Client,
    shutdown: &CancellationToken,
) -> PullSecrets {
    let followed = PullSecrets::awaited();
    let (client, shutdown) = (client.clone(), shutdown.clone());
    let (named, secrets) = (args.common.global_pull_secret.clone(), followed.clone());
    spawn(tasks, "pull secrets", async move {
        olm_image::follow_pull_secrets(client, named, secrets, shutdown).await;
        Ok(())
    });
    followed
}

/// Starts to look whether stored content is what was stored.
fn checks(
    tasks: &mut JoinSet<Ended>,
    args: &Args,
    store: &Arc<Store>,
    figures: &Metrics,
    shutdown: &CancellationToken,
) {
    let checker = Checker {
        store: store.clone(),
        metrics: figures.clone(),
    };
    let (interval, shutdown) = (args.content_check_interval, shutdown.clone());
    spawn(tasks, "checks of content", async move {
        checker.run(interval, shutdown).await;
        Ok(())
    });
}

/// Starts what stands in for Go's profiles.
fn profiles(tasks: &mut JoinSet<Ended>, args: &Args, shutdown: &CancellationToken) {
    let (address, shutdown) = (args.common.pprof_bind_address, shutdown.clone());
    spawn(tasks, "profiles", async move {
        Ok(pprof::serve(address, shutdown).await?)
    });
}

async fn certificate(
    args: &Args,
    checked: &Checked,
    client: &Client,
    shutdown: &CancellationToken,
) -> anyhow::Result<ServingCert> {
    let namespace = args.common.system_namespace();
    let own = OwnCertificate {
        names: names(&args.external_address, &namespace),
        namespace,
        secret: CATALOGD_OWN_CERT.to_owned(),
        labels: BTreeMap::from([("app.kubernetes.io/name".to_owned(), "catalogd".to_owned())]),
    };
    ServingCert::by_flags(checked, client.clone(), own, shutdown.clone())
        .await
        .context("no serving certificate")
}

/// What the content is reached by.
fn names(external: &str, namespace: &str) -> Vec<String> {
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

type Ended = (&'static str, anyhow::Result<()>);

fn spawn(
    tasks: &mut JoinSet<Ended>,
    what: &'static str,
    task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) {
    tasks.spawn(async move { (what, task.await) });
}

/// Waits for all tasks; the first that fails ends the others.
async fn all(mut tasks: JoinSet<Ended>, shutdown: CancellationToken) -> anyhow::Result<()> {
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
            names("catalogd-service.olmv1-system.svc", "olmv1-system"),
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
                names(external, "ns").first().map(String::as_str),
                Some(host),
                "{external}"
            );
        }
    }
}
