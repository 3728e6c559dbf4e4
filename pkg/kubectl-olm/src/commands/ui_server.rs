//! `ui-server`: web pages about the cluster for readers with tokens, as a server in the cluster.

use std::collections::BTreeMap;
use std::io;

use axum::Router;
use kube::{Client, Config};
use olm_runtime::client::connect;
use olm_runtime::health::{self, Health};
use olm_runtime::metrics::access::Access;
use olm_runtime::serve::{self, Limits, ServeError};
use olm_runtime::tls::{OwnCertificate, ServingCert, TlsError, UI_OWN_CERT};
use olm_runtime::{shutdown, telemetry};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::PullHosts;
use crate::cli::ui::UiServerArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::{CatalogdAddress, Cluster, SourceError};
use crate::ui::{Door, Server, TokenDoor, TokenSettings};

/// Name of the Service of the pages.
const SERVICE: &str = "olmv1-ui";
/// Limits of the server: a page that follows the cluster holds a request for hours, and readers behind a proxy have one address.
const LIMITS: Limits = Limits {
    http2_streams: 100,
    connections: 512,
    per_client: 512,
    requests: 512,
    ..Limits::DEFAULT
};

/// Serves the pages until it is stopped.
pub(crate) async fn run(args: UiServerArgs) -> Result<Report, Failure> {
    telemetry::init_with(args.log_format, args.log_level).map_err(|error| unusable(&error))?;
    let stop = shutdown::token();
    let config = Cluster::config(&args.access)?;
    let client = connect(config.clone()).map_err(|error| SourceError::Kubeconfig {
        offline: false,
        source: Box::new(error),
    })?;
    let names = names(&args.access.system_namespace);
    let certificate = certificate(&args, client.clone(), &names, stop.clone());
    let certificate = certificate.await.map_err(|error| unusable(&error))?;
    let router = Server::new(Door::Tokens(Box::new(door(&args, config, client, names, &stop)))).router();
    let served = serve(&args, router, &certificate, stop.clone()).await;
    stop.cancel();
    served.map_err(|error| unusable(&error))?;
    Ok(Report::new(json!({}), String::new()))
}

fn unusable(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::Usage(olm_text::chain(error))
}

/// Returns the host names of the pages inside the cluster and of a forwarded port.
fn names(namespace: &str) -> Vec<String> {
    vec![
        format!("{SERVICE}.{namespace}.svc"),
        format!("{SERVICE}.{namespace}.svc.cluster.local"),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
    ]
}

async fn certificate(
    args: &UiServerArgs,
    client: Client,
    names: &[String],
    stop: CancellationToken,
) -> Result<ServingCert, TlsError> {
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        return ServingCert::from_files(certificate.clone(), key.clone(), stop).await;
    }
    let label = ("app.kubernetes.io/name".to_owned(), SERVICE.to_owned());
    let own = OwnCertificate {
        namespace: args.access.system_namespace.clone(),
        secret: UI_OWN_CERT.to_owned(),
        names: names.iter().chain(&args.allowed_hosts).cloned().collect(),
        labels: BTreeMap::from([label]),
    };
    ServingCert::own(client, own, stop).await
}

fn door(
    args: &UiServerArgs,
    config: Config,
    client: Client,
    names: Vec<String>,
    stop: &CancellationToken,
) -> TokenDoor {
    let namespace = &args.access.system_namespace;
    let host = args.catalogd_address.clone();
    let mut images = args.access.clone();
    images.hosts = PullHosts::Public(args.allow_registry_host.clone());
    TokenDoor::new(TokenSettings {
        config,
        access: Access::new(client),
        catalogd: CatalogdAddress {
            host: host.unwrap_or_else(|| format!("catalogd-service.{namespace}.svc")),
            ca_file: args.access.ca_file.clone(),
            cas_dir: args.catalogd_cas_dir.clone(),
        },
        images,
        hosts: names
            .into_iter()
            .chain(args.allowed_hosts.iter().cloned())
            .collect(),
        shutdown: stop.clone(),
    })
}

async fn serve(
    args: &UiServerArgs,
    router: Router,
    certificate: &ServingCert,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let health = Health::new();
    health.ready_until("shutdown", &stop);
    let probes = health::serve(args.health_probe_bind_address, health, stop.clone());
    let Some(listener) = serve::listen("pages", args.bind_address)? else {
        return Err(ServeError::Failed {
            name: "pages".to_owned(),
            source: io::Error::from(io::ErrorKind::AddrNotAvailable),
        });
    };
    let pages = serve::tls_on("pages", listener, router, certificate, LIMITS, stop);
    tokio::try_join!(probes, pages)?;
    Ok(())
}
